"""Tests of the time of each song's last play."""

import time

import numpy as np

from musicsim.explorer.snapshot.last_plays import read_last_plays
from musicsim.library.db import schema


def test_last_play_is_latest_of_imports_and_player(tiny_library):
    first, second, third = (song.id for song in tiny_library.songs()[:3])
    values = {"name": "", "kind": "plays", "format": "", "listener": "", "digest": "", "created_at": 0}
    numbers = dict.fromkeys(("n_rows", "n_songs", "n_matched", "n_plays", "n_skipped"), 0)
    listens = [(first, "me", [30, 20]), (first, "you", [25]), (second, "me", [40]), (third, "me", [])]
    with tiny_library.write() as connection:
        connection.execute(schema.imports.insert().values(id=1, **values, **numbers))
        for song_id, listener, times in listens:
            row = {"import_id": 1, "listener": listener, "song_id": song_id, "times": np.array(times, "<u4").tobytes()}
            connection.execute(schema.listens.insert().values(row))
    assert read_last_plays(tiny_library) == {first: 30, second: 40}
    before, revision = time.time(), tiny_library.revision
    tiny_library.player_plays.add_play(second)
    tiny_library.player_plays.add_skip(third)
    last = read_last_plays(tiny_library)
    assert before <= last.pop(second) <= time.time()
    assert last == {first: 30}, "a skip is not a play"
    assert tiny_library.revision == revision


def test_number_of_latest_play_increases(tiny_library):
    plays, song_id = tiny_library.player_plays, tiny_library.songs()[0].id
    assert plays.latest() == 0
    plays.add_skip(song_id)
    assert plays.latest() == 0
    plays.add_play(song_id)
    first = plays.latest()
    plays.add_play(song_id)
    assert plays.latest() > first > 0
    assert tiny_library.listening.play_counts() == {song_id: 2}
