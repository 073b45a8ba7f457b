"""Tests of the memory of the songs that players got."""

from musicsim.extensions.player_engine.recent import LASTS_S, MAX_EACH, MAX_PLAYERS, RecentSongs


def test_songs_are_forgotten_after_an_hour():
    now = [0.0]
    recent = RecentSongs(lambda: now[0])
    recent.add("phone", [1, 2])
    now[0] = LASTS_S / 2
    recent.add("phone", [1])
    assert recent.of("phone") == [2, 1]
    assert recent.of("tablet") == []
    now[0] = LASTS_S
    assert recent.of("phone") == [1]


def test_memory_is_bounded():
    recent = RecentSongs()
    for player in range(MAX_PLAYERS + 1):
        recent.add(player, range(MAX_EACH + 10))
    assert recent.of(0) == []
    assert all(recent.of(player) == list(range(10, MAX_EACH + 10)) for player in range(1, MAX_PLAYERS + 1))
