"""Names of folders for people: short, never generic, and different for different folders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsim.explorer.snapshot.folder_names import name_folders
from musicsim.explorer.snapshot.map_columns import coloring
from musicsim.explorer.snapshot.snapshot import take_snapshot


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["/m/Nirvana/Nevermind"], ["Nevermind"]),
        (["/m/0ad/music", "/m/clonk/Music.ocg", "/m/menus/titles"], ["0ad", "clonk", "menus"]),
        (["/m/flare/music", "/m/flare/sounds"], ["flare / music", "flare / sounds"]),
        (["/a/one/live", "/a/two/live"], ["one / live", "two / live"]),
        (["/m/Dr.Dre", "/m/will.i.am", "/m/Nevermind.flac"], ["Dr.Dre", "will.i.am", "Nevermind"]),
        (["/music", "/data/music"], ["music", "data / music"]),
        (["/"], ["/"]),
    ],
)
def test_folder_has_shortest_name_that_tells_it_apart(folders, names):
    assert name_folders(folders, {}) == names


def test_folder_of_an_album_has_its_name():
    folders = ["/m/x/cd 1", "/m/x/cd 2", "/m/Queen/hits", "/m/ABBA/hits"]
    albums = dict(zip(folders, ["The Wall", "The wall", "Gold", "Gold"], strict=True))
    assert name_folders(folders, albums) == ["The Wall", "The Wall", "Queen / Gold", "ABBA / Gold"]


PARTS = st.sampled_from(["music", "snd", "live", "a.ocg", "Nevermind", "0ad", "A"])


@given(folders=st.sets(st.lists(PARTS, min_size=1, max_size=4).map(lambda parts: "/".join(["", *parts]))))
def test_different_folders_have_different_names(folders):
    # "/live" has nothing that could tell it from the end of another path, so that each path begins with a number
    paths = [f"/root {i}{folder}" for i, folder in enumerate(sorted(folders))]
    assert len(set(name_folders(paths, {}))) == len(paths)


def test_map_names_folders_after_albums_that_most_songs_share(tiny_library, collection):
    songs = tiny_library.songs()
    place = {
        song.id: collection / ("kept/music" if n < 6 else "ours/snd") / song.path.name for n, song in enumerate(songs)
    }
    with tiny_library.write() as connection:
        for song_id, path in place.items():
            connection.exec_driver_sql(
                "UPDATE files SET path = ?, folder = ? WHERE song_id = ?", (str(path), str(path.parent), song_id)
            )
    ids = [song.id for song in songs]
    tiny_library.edits.edit(ids, {"album": ""})
    tiny_library.edits.edit(ids[:3], {"album": "Space"})
    assert tiny_library.files.albums_of_folders() == {str(place[ids[0]].parent): "Space"}
    assert {entry.name for entry in coloring(take_snapshot(tiny_library), "folder").entries} >= {"Space", "ours"}
    tiny_library.edits.edit(ids[:1], {"album": "Other"})
    assert tiny_library.files.albums_of_folders() == {}, "an album of another song contradicts it"
    tiny_library.edits.edit(ids[:3], {"album": "Unknown album"})
    now = take_snapshot(tiny_library)
    assert "Unknown album" not in now.folder_names, "a generic album says less than the parent"
