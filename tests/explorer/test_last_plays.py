"""Tests of the time of each song's last play."""

import time

from musicsim.explorer.snapshot.last_plays import read_last_plays
from tests.plays import add_listens


def test_last_play_is_latest_of_imports_and_player(tiny_library):
    first, second, third = (song.id for song in tiny_library.songs()[:3])
    listens = [(first, "me", [30, 20]), (first, "you", [25]), (second, "me", [40]), (third, "me", [])]
    add_listens(tiny_library, listens)
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
