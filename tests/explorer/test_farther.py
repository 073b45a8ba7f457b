"""The share of songs that are farther from the seed than a song of the queue: equal to brute force over all songs."""

import numpy as np
import pytest

from musicsim.explorer.playlists.farther import share_farther
from musicsim.explorer.playlists.queue import QueueItem, QueueRequest
from musicsim.explorer.search.query import Examples
from musicsim.explorer.snapshot.snapshot import take_snapshot


@pytest.mark.parametrize("like", [(1,), (2, 9)])
def test_nearness_is_share_of_songs_that_are_farther(tiny_library, like):
    snapshot = take_snapshot(tiny_library)
    songs = snapshot.songs_by_id(snapshot.row_ids.tolist())
    items = [QueueItem(song) for song in songs]
    found = share_farther(snapshot, QueueRequest(query=Examples(like)), items)
    seeds = snapshot.X[snapshot.rows_of(like)].astype(float)
    distances = np.array([min(((x - s) ** 2).sum() for s in seeds) for x in snapshot.X.astype(float)])
    rows = snapshot.rows_of([song.id for song in songs])
    expected = [1 - np.mean(distances < distances[row] - 1e-9) for row in rows]
    assert found == pytest.approx(expected, abs=1.5 / len(songs))
    assert found[[song.id for song in songs].index(like[0])] == 1
    assert np.argsort(found)[0] == np.argmax(distances[rows])


def test_words_have_no_nearness(tiny_library):
    snapshot = take_snapshot(tiny_library)
    items = [QueueItem(song) for song in snapshot.songs_by_id(snapshot.row_ids[:2].tolist())]
    assert share_farther(snapshot, QueueRequest(), items) == [None, None]
    assert share_farther(snapshot, QueueRequest(query=1), []) == []
