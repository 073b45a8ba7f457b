"""Tests of music servers on the command line, with a real one."""

import json
import shutil
from unittest import mock

import pytest

from musicsim.errors import NotFoundError
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.music_servers.client import Subsonic
from musicsim.extensions.music_servers.connections import Connections
from musicsim.extensions.music_servers.lists import encode_request, keep_filled, read_request, refresh_lists
from musicsim.extensions.music_servers.server_songs import ServerSong, ServerSongs
from tests.command import run
from tests.extensions.music_servers.serving import having, playlist_songs, scripted, supysonic
from tests.extensions.music_servers.supysonic_process import PASSWORDS


def test_saved_request_round_trips():
    asked = PlaylistRequest(
        minutes=60, artists=frozenset(["b", "a"]), years=(1990, 1999), like=(3, 1), surprise=0.0, versions_apart=False
    )
    kept = json.loads(json.dumps(encode_request(asked, 10)))
    assert kept["artists"] == ["a", "b"]
    assert "length" not in kept
    assert read_request(kept) == (asked, 10)


@pytest.mark.long
def test_server_can_be_added_synced_and_removed(tiny_library, tmp_path):
    library = tiny_library.folder
    music = tmp_path / "music"
    for song in tiny_library.songs():
        (music / song.path.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(song.path, music / song.path.parent.name)
    n_songs = len(tiny_library)
    tiny_library.add_playlists([("Mine", None, [s.id for s in tiny_library.songs()[:3]])], "saved")
    with supysonic(tmp_path / "state", music) as server:
        secret = mock.patch.dict("os.environ", {"MUSICSIM_SERVER_SECRET": PASSWORDS["anna"]})
        with secret:
            address, user = server.address, ("--user", "anna", "--send-password")
            out, _ = run("server", "add", "home", address, *user, library=library)
            assert "home is connected" in out
            refused = run(
                "server", "add", "home", address, "--user", "ben", "--send-password", library=library, expect=1
            )
            assert "check the user and the password" in refused[1]
        (synced,) = json.loads(run("server", "sync", "--json", library=library)[0])
        assert (synced["n_songs"], synced["matched_by"]) == (n_songs, {"path": n_songs})
        connection = Connections(tiny_library).get("home")
        client = Subsonic(connection)
        assert "Mine: 3 songs on home" in run("server", "save", "home", "Mine", library=library)[0]
        (mine,) = client.playlist_ids("Mine")
        assert [ServerSongs(tiny_library).find_song(i)[1] for i in playlist_songs(client, mine)] == [
            s.id for s in tiny_library.songs()[:3]
        ]
        client.sound(playlist_songs(client, mine)[0], "raw", 0, 9)  # from now on, this is the last play
        kept = ("server", "keep", "home", "Nightly", "--length", 4, "--around-last", 3, "--json")
        first = json.loads(run(*kept, library=library)[0])
        assert len(first["song_ids"]) == 4
        again = json.loads(run("server", "refresh", "--json", library=library)[0])
        assert [(one["name"], one["problem"], one["saved"]["id"]) for one in again] == [("Nightly", "", first["id"])]
        comment = client.ask("getPlaylist", id=first["id"])["playlist"]["comment"]
        assert comment.startswith("musicsim, 20")
        assert f"around {tiny_library.songs()[0].title}" in comment
        (row,) = json.loads(run("server", "list", "--json", library=library)[0])
        assert (row["matched"], row["playlists"]) == (n_songs, {"Mine": "saved", "Nightly": "kept filled"})
        run("server", "delete", "home", "Nightly", library=library)
        assert client.playlist_ids("Nightly") == set()
        assert PASSWORDS["anna"] not in "".join(run("server", "list", library=library))
        run("server", "remove", "home", library=library)
        assert client.playlist_ids("Mine") == {mine}, "nothing changes on the server"
    assert json.loads(run("server", "list", "--json", library=library)[0]) == []
    for verb in ("sync", "refresh"):
        _, problem = run("server", verb, library=library, expect=1)
        assert "no music server is connected" in problem


def test_failing_server_does_not_affect_others(tiny_library):
    listed = [{"id": str(s.id), "title": s.title, "artist": s.artist} for s in tiny_library.songs()]
    with scripted(having(listed)) as good, scripted(lambda *_: b"<html>") as bad:
        for server, name in ((bad, "a"), (good, "b")):
            Connections(tiny_library).put(server.connection(name=name))
        out, problem = run("server", "sync", "--json", library=tiny_library.folder, expect=3)
    assert [synced["server"] for synced in json.loads(out)] == ["b"]
    assert "a: the server at" in problem
    assert "not valid Subsonic JSON" in problem


def test_failed_playlist_does_not_affect_others(tiny_library):
    ids = [s.id for s in tiny_library.songs()]
    lists = {}

    def answer(call, values):
        if call == "createPlaylist":
            lists[values.get("name")] = f"pl-{values.get('name')}"
            return {"playlist": {"id": f"pl-{values.get('name')}"}}
        if call == "getPlaylists":
            return {"playlists": {"playlist": [{"id": i, "name": n} for n, i in lists.items()]}}
        return {}

    with scripted(answer) as server:
        connection = server.connection()
        ServerSongs(tiny_library).write("home", [ServerSong(f"so-{i}", song_id=i) for i in ids])
        now = take_snapshot(tiny_library)
        keep_filled(now, connection, "One", PlaylistRequest(length=3))
        keep_filled(now, connection, "Two", PlaylistRequest(length=3))
        ServerSongs(tiny_library).keep_list("home", "One", "pl-One", {"unknown": 1})
        done = refresh_lists(now, connection)
        assert [(one.name, one.saved is None) for one in done] == [("One", True), ("Two", False)]
        assert "Save the playlist again" in done[0].problem
        songs = [values for call, values, _ in server.asked if call == "createPlaylist"][-1]
        assert songs["playlistId"] == "pl-Two"
        with pytest.raises(NotFoundError, match="no song of this library was played there"):
            keep_filled(now, connection, "Three", PlaylistRequest(length=3), around_last=5)


def test_commands_say_what_is_unmatched_and_that_no_playlist_is_kept(tiny_library):
    listed = [{"id": str(s.id), "title": s.title, "artist": s.artist} for s in tiny_library.songs()]
    listed += [{"id": f"new-{n}", "title": f"New {n}", "artist": "Nobody"} for n in range(7)]
    library = tiny_library.folder
    with scripted(having(listed)) as server:
        connection = server.connection(address=f"{server.address}/a-long-path-below-the-name-of-a-server")
        Connections(tiny_library).put(connection)
        out, _ = run("server", "sync", library=library)
        assert "7 not in the library" in out
        assert "New 0 — Nobody; New 1 — Nobody" in out
        assert "; and 2 more. Analyze them with `musicsim server sync --fetch" in out
        assert "No playlist is kept filled" in run("server", "refresh", library=library)[0]
    out, _ = run("server", "list", library=library)
    assert f"home: {connection.address} · anna · {len(listed)} songs" in out
