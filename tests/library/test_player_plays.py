"""Plays and skips in the app's player."""

import time

import numpy as np

from musicsim.explorer.playlists.pool import song_weights
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from musicsim.library.stores.player_plays import PLAYER
from tests.library.forgetting import forget


def test_plays_are_counted_without_new_revision(tiny_library: Library):
    first, second = [song.id for song in tiny_library.songs()][:2]
    tiny_library.add_plays([{"listener": "Ann", "song_id": first, "count": 3}])
    before = tiny_library.revision
    for song_id in (first, first, second):
        tiny_library.player_plays.add_play(song_id)
    assert tiny_library.listening.play_counts() == {first: 5, second: 1}
    assert tiny_library.revision == before
    plays = tiny_library.plays()
    assert dict(zip(plays.song_id.tolist(), plays.count.tolist(), strict=True))[second] == 1
    assert PLAYER == "this player"


def test_often_skipped_songs_weigh_less(tiny_library: Library):
    store = tiny_library.player_plays
    once, twice, liked, gone = [song.id for song in tiny_library.songs()][:4]
    for song_id in (once, twice, twice, liked, liked, gone, gone):
        store.add_skip(song_id)
    for _ in range(2):
        store.add_play(liked)
    assert sorted(store.often_skipped()) == [twice, gone]
    forget(tiny_library, gone)
    assert store.often_skipped() == [twice]
    snapshot = take_snapshot(tiny_library)
    weights = song_weights(snapshot, PlaylistRequest(), np.zeros(snapshot.n_indexed))
    assert weights is not None
    row = snapshot.row_of(twice)
    assert weights[row] < 1 == weights[snapshot.row_of(once)] == weights[snapshot.row_of(liked)]
    assert tiny_library.judgments.answers() == [], "a skip is no answer"


def test_times_of_plays_are_stored(tiny_library: Library):
    first, second = [song.id for song in tiny_library.songs()][:2]
    start = time.time()
    for song_id in (second, first, second):
        tiny_library.player_plays.add_play(song_id)
    tiny_library.player_plays.add_skip(first)
    ids, times = tiny_library.player_plays.play_times()
    assert sorted(ids.tolist()) == sorted([second, first, second])
    assert np.all((start <= times) & (times <= time.time()))
    assert tiny_library.judgments.answers() == [], "a play is no answer"
    forget(tiny_library, second)
    assert tiny_library.player_plays.play_times()[0].tolist() == [first]
