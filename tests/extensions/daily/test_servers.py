"""Tests of daily mixes on music servers, which are skipped without that extension."""

import time

import pytest

from musicsim.explorer.playlists.beginnings import count_plays
from musicsim.explorer.snapshot.last_plays import read_last_plays
from musicsim.extensions.daily.mixes import make_daily_mixes, playlist_servers, undo_daily_mixes
from musicsim.extensions.daily.options import DailyOptions, change_settings

_PACKAGE = "musicsim.extensions.music_servers"
connections = pytest.importorskip(f"{_PACKAGE}.connections")
server_songs = pytest.importorskip(f"{_PACKAGE}.server_songs")
serving = pytest.importorskip("tests.extensions.music_servers.serving")


def test_mixes_are_sent_and_removed(tiny_library):
    there = {}

    with serving.scripted(serving.store_playlists(there)) as server:
        connections.Connections(tiny_library).put(server.connection())
        songs = [server_songs.ServerSong(f"so-{song.id}", song_id=song.id) for song in tiny_library.songs()]
        server_songs.ServerSongs(tiny_library).write("home", songs)
        assert list(playlist_servers(tiny_library)) == ["home"]
        make_daily_mixes(tiny_library)
        assert there == {}, "no server was chosen"
        change_settings(tiny_library, DailyOptions(servers=("home", "gone")))
        run = make_daily_mixes(tiny_library)
        assert sorted(there.values()) == sorted(mix.name for mix in run.mixes)
        assert set(run.written.problems) == {
            "gone: this music server is not connected. Choose another one for daily mixes."
        }
        undo_daily_mixes(tiny_library)
        assert there == {}


def test_plays_on_servers_count(tiny_library):
    now = time.time()
    first, second, third = (song.id for song in tiny_library.songs()[:3])
    song = server_songs.ServerSong
    server_songs.ServerSongs(tiny_library).write(
        "home",
        [
            song("a", song_id=first, played_at=now - 60),
            song("b", song_id=second, played_at=1.0),
            song("c", song_id=third),
        ],
    )
    tiny_library.player_plays.add_play(second)
    last = read_last_plays(tiny_library)
    assert count_plays(tiny_library, now - 3600, last) == {first: 1, second: 1}
    assert last[first] == pytest.approx(now - 60, abs=1e-5)  # times are read to the microsecond
    assert last[second] >= now
    assert third not in last
