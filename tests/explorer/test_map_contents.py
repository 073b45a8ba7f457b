"""The contents of the map: each song is in one group, and typical songs are the nearest to the mean of their group."""

import numpy as np
import pytest

from musicsim.explorer.snapshot import map_contents as contents
from musicsim.explorer.snapshot.map_contents import N_TYPICAL, map_contents
from musicsim.explorer.snapshot.snapshot import take_snapshot


@pytest.fixture
def clustered(tiny_library):
    """Put four songs of a genre and two others in a region, and the other songs in small regions without a name."""
    codes = take_snapshot(tiny_library).columns.genre.codes
    clusters = np.where(codes == codes[0], 0, 1)
    clusters[np.flatnonzero(clusters)] = [0, 0, 1, 1, 2, 2, -1, -1]

    def take():
        now = take_snapshot(tiny_library)
        now.__dict__["clusters"] = {"3": clusters}
        return now

    return take


def find_typical(snapshot, rows) -> list[int]:
    """Sort the songs of some rows by their distance to the mean, one by one."""
    center = sum(snapshot.X[row].astype(float) for row in rows) / len(rows)
    distances = {int(snapshot.row_ids[row]): float(np.sqrt(((snapshot.X[row] - center) ** 2).sum())) for row in rows}
    return sorted(distances, key=lambda song_id: distances[song_id])


def test_every_song_is_in_a_group_of_its_region(clustered):
    now = clustered()
    found = map_contents(now)
    assert [one.region.n_songs for one in found.regions] == [6, 6]
    assert found.regions[-1].region.name == "other songs"
    assert found.by == "genre"
    groups = [(one.region, group) for one in found.regions for group in one.groups]
    genres, is_in_region = now.columns.genre.texts(), now.clusters["3"] == 0
    for code, (region, group) in enumerate(groups):
        rows = np.flatnonzero(found.codes == code)
        assert len(rows) == group.n_songs
        assert {genres[row] for row in rows.tolist()} == {group.name}
        assert (is_in_region[rows] == (region is found.regions[0].region)).all()
    assert sum(group.n_songs for _, group in groups) == now.n_indexed


def test_typical_songs_are_nearest_to_the_mean(clustered):
    now = clustered()
    found = map_contents(now)
    region = found.regions[0]
    assert region.region.typical == find_typical(now, np.flatnonzero(now.clusters["3"] == 0).tolist())[:N_TYPICAL]
    code = 0
    for one in found.regions:
        for group in one.groups:
            wanted = find_typical(now, np.flatnonzero(found.codes == code).tolist())
            # the two songs of a pair are equally far from its mean
            assert group.typical == wanted or group.n_songs == 2
            code += 1


def test_disliked_songs_are_not_typical_and_visitors_do_not_learn_them(clustered, tiny_library, monkeypatch):
    typical = map_contents(clustered()).regions[0].region.typical
    tiny_library.set_feedback(typical[0], -1)
    tiny_library.set_feedback(typical[1], 1)
    assert map_contents(clustered()).regions[0].region.typical == typical[1:]
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    assert map_contents(clustered()).regions[0].region.typical == typical


def test_contents_of_a_large_library_are_bounded(clustered, tiny_library, monkeypatch):
    for song in tiny_library.songs():
        tiny_library.edits.edit([song.id], {"genre": f"genre {song.id:02}"})
    monkeypatch.setattr(contents, "_MAX_GROUPS", 3)
    monkeypatch.setattr(contents, "MAX_SAMPLED", 2)
    groups = map_contents(clustered()).regions[-1].groups
    assert [group.n_songs for group in groups][:2] == [1, 1]
    assert len(groups) == 3
    assert groups[-1].name == "others"
    assert len(groups[-1].typical) == 2


def test_songs_without_genres_are_grouped_by_folder_and_for_visitors_by_artist(clustered, tiny_library, monkeypatch):
    tiny_library.edits.edit([song.id for song in tiny_library.songs()], {"genre": ""})
    assert map_contents(clustered()).by == "folder"
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    assert map_contents(clustered()).by == "artist"
