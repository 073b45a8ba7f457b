"""Tests of similar albums and of walks, against distances computed for all pairs."""

import numpy as np
import pytest

from musicsim.errors import NotFoundError
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.albums.catalogue import find_album, list_albums
from musicsim.extensions.albums.request import AlbumPlaylistRequest, SimilarAlbumsRequest
from musicsim.extensions.albums.similar import find_similar_albums, walk_albums


@pytest.fixture
def snapshot(halves):
    halves.set_setting("hub_reduction", False)
    return take_snapshot(halves)


def all_distances(snapshot):
    """Return the distances between the mean vectors of all albums, keyed by the names of two albums."""
    means = {
        album.name: np.mean([snapshot.X[snapshot.row_of(i)].astype(np.float64) for i in album.song_ids], axis=0)
        for album in list_albums(snapshot)
    }
    return {(a, b): float(np.linalg.norm(means[a] - means[b])) for a in means for b in means}


def test_nearest_albums_come_first(snapshot):
    distances = all_distances(snapshot)
    for album in list_albums(snapshot):
        found = find_similar_albums(snapshot, album, SimilarAlbumsRequest(per_artist=0))
        names = [one.album.name for one in found]
        assert names == sorted({a for a, _ in distances} - {album.name}, key=lambda name: distances[album.name, name])
        assert names[0][:-2] == album.name[:-2], "the other album with the same kind of sound"
        expected = [max(0.0, 1 - distances[album.name, name] ** 2 / 2) for name in names]
        assert [one.similarity for one in found] == pytest.approx(expected, abs=1e-5)  # float32


def test_hub_reduction_of_the_library_applies(snapshot):
    album = list_albums(snapshot)[0]
    request = SimilarAlbumsRequest(per_artist=0)
    plain = find_similar_albums(snapshot, album, request)
    snapshot.library.set_setting("hub_reduction", True)
    reduced = find_similar_albums(take_snapshot(snapshot.library), album, request)
    assert {one.album.id for one in reduced} == {one.album.id for one in plain}
    assert [one.similarity for one in reduced] != pytest.approx([one.similarity for one in plain], abs=1e-6)


def test_artist_limit_and_number(snapshot):
    album = find_album(snapshot, "Tones A")
    found = find_similar_albums(snapshot, album, SimilarAlbumsRequest(per_artist=1))
    assert sorted(one.album.by for one in found) == ["Artist clicks", "Artist noise", "Artist tones"]
    assert len(find_similar_albums(snapshot, album, SimilarAlbumsRequest(k=2, per_artist=0))) == 2
    with pytest.raises(ValueError, match="k=0 must be between 1 and 100"):
        SimilarAlbumsRequest(k=0)


def test_walk_always_goes_to_the_nearest_new_album(snapshot):
    distances = all_distances(snapshot)
    start = find_album(snapshot, "Noise B")
    expected = [start.name]
    while len(expected) < 6:
        expected.append(min({a for a, _ in distances} - set(expected), key=lambda name: distances[expected[-1], name]))
    steps = walk_albums(snapshot, start, AlbumPlaylistRequest(length=50, per_artist=0))
    assert [step.album.name for step in steps] == expected, "no album occurs twice"
    steps = walk_albums(snapshot, start, AlbumPlaylistRequest(length=3))
    assert sorted(step.album.by for step in steps) == ["Artist clicks", "Artist noise", "Artist tones"]
    assert len(walk_albums(snapshot, start, AlbumPlaylistRequest(length=4))) == 3, "one album per artist"


def test_album_without_vectors_is_explained(store, collection):
    store.add(collection / "Artist tones", n_workers=1)
    snapshot = take_snapshot(store)
    album = list_albums(snapshot)[0]
    with pytest.raises(NotFoundError, match="has not been compared yet"):
        find_similar_albums(snapshot, album, SimilarAlbumsRequest())
