"""Tests of playlists for ListenBrainz, with a local server that checks requests against the API documentation."""

import json
import re
import stat
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from musicsim.errors import ServerError
from musicsim.extensions.listenbrainz.client import has_token, save_token, send_playlist
from musicsim.library.db import schema
from tests.command import run

TOKEN = "6f1d2c3b-aaaa-4bbb-8ccc-123456789abc"
LIST = "0b1c2d3e-1111-4222-8333-abcdefabcdef"
RECORDING = re.compile(r"https://musicbrainz\.org/recording/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
EXTENSION = "https://musicbrainz.org/doc/jspf#playlist"


class Checking(BaseHTTPRequestHandler):
    """A server that checks POST /1/playlist/create, and stores the playlists that it accepts."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.answer is not None:
            return self._say(*self.server.answer)
        if self.path != "/1/playlist/create":
            return self._say(404, {"code": 404, "error": "not found"})
        if self.headers["Authorization"] != f"Token {TOKEN}":
            return self._say(401, {"code": 401, "error": "Invalid authorization token."})
        playlist = json.loads(body)["playlist"]
        is_whole = (
            self.headers["Content-Type"] == "application/json"
            and playlist["title"]
            and isinstance(playlist["extension"][EXTENSION]["public"], bool)
            and all(RECORDING.fullmatch(track["identifier"]) for track in playlist["track"])
        )
        if not is_whole:
            return self._say(400, {"code": 400, "error": "JSPF is not valid."})
        self.server.taken.append(playlist)
        return self._say(200, {"status": "ok", "playlist_mbid": LIST})

    def _say(self, code, said, headers=()):
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextmanager
def serving():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Checking)
    server.taken, server.answer = [], None
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def server(monkeypatch):
    with serving() as running:
        monkeypatch.setenv("MUSICSIM_LISTENBRAINZ_URL", f"http://127.0.0.1:{running.server_port}/")
        yield running


@pytest.fixture
def songs(tiny_library):
    """Add four songs. Every song except the last has a MusicBrainz id."""
    first = tiny_library.songs()[:4]
    with tiny_library.write() as connection:
        for n, song in enumerate(first[:3]):
            values = {"mb_recording_id": f"12345678-1234-4234-8234-12345678900{n}"}
            connection.execute(schema.songs.update().where(schema.songs.c.id == song.id).values(**values))
    return tiny_library.songs([song.id for song in first])


@pytest.mark.long
def test_sent_playlist_names_songs_without_id(server, songs, tiny_library):
    save_token(tiny_library, f" {TOKEN}\n")
    sent = send_playlist(tiny_library, "Evening", songs)
    assert sent.lacking == (songs[3],)
    assert sent.address == f"https://listenbrainz.org/playlist/{LIST}"
    (taken,) = server.taken
    assert (taken["title"], taken["extension"][EXTENSION]["public"]) == ("Evening", False)
    assert [track["identifier"][-36:] for track in taken["track"]] == [s.mb_recording_id for s in songs[:3]]
    assert [track["title"] for track in taken["track"]] == [song.title for song in songs[:3]]
    assert str(songs[0].path.parent) not in json.dumps(taken), "no path of this machine leaves it"


@pytest.mark.long
def test_token_is_private(server, songs, tiny_library):
    with pytest.raises(ServerError, match="has no ListenBrainz token"):
        send_playlist(tiny_library, "Evening", songs)
    for text in ("two words", "tök", "a\r\nX: y"):
        with pytest.raises(ServerError, match="not a valid token") as problem:
            save_token(tiny_library, text)
        assert text not in str(problem.value)
    save_token(tiny_library, "wrong-token")
    (file,) = tiny_library.folder.glob("*.token")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    server.answer = 401, {"code": 401, "error": "no user has wrong-token"}
    with pytest.raises(ServerError, match=r"refused the playlist \(401: no user has …\)") as problem:
        send_playlist(tiny_library, "Evening", songs)
    assert "wrong-token" not in str(problem.value)
    save_token(tiny_library, "")
    assert not has_token(tiny_library)


@pytest.mark.long
def test_redirect_does_not_leak_token(server, songs, tiny_library):
    save_token(tiny_library, TOKEN)
    with serving() as other:
        server.answer = 307, {}, [("Location", f"http://127.0.0.1:{other.server_port}/1/playlist/create")]
        with pytest.raises(ServerError, match="307"):
            send_playlist(tiny_library, "Evening", songs)
        assert other.taken == []


@pytest.mark.long
@pytest.mark.parametrize(
    "answer", [(500, b"<html>"), (200, b"{"), (200, b"[]"), (200, {"status": "ok"}), (200, {"playlist_mbid": "../x"})]
)
def test_server_failures_give_clear_error(server, songs, tiny_library, answer):
    save_token(tiny_library, TOKEN)
    server.answer = answer
    with pytest.raises(ServerError, match="ListenBrainz"):
        send_playlist(tiny_library, "Evening", songs)


def test_unsendable_playlists_fail_before_sending(server, songs, tiny_library, monkeypatch):
    save_token(tiny_library, TOKEN)
    with pytest.raises(ServerError, match="none of these songs has a MusicBrainz id"):
        send_playlist(tiny_library, "Evening", songs[3:])
    with pytest.raises(ServerError, match="has no name"):
        send_playlist(tiny_library, " ", songs)
    monkeypatch.setenv("MUSICSIM_LISTENBRAINZ_URL", "file:///etc/passwd")
    with pytest.raises(ServerError, match="https://"):
        send_playlist(tiny_library, "Evening", songs)
    assert server.taken == []


@pytest.mark.long
def test_cli_sends_playlist_and_names_omitted_songs(server, songs, tiny_library):
    save_token(tiny_library, TOKEN)
    tiny_library.add_playlists([("Evening", None, [song.id for song in songs])], source="saved")
    out, problem = run(
        "listenbrainz", "send", "Mine", "--saved", "Evening", "--visible", library=tiny_library.folder, expect=3
    )
    assert f"3 songs sent: https://listenbrainz.org/playlist/{LIST}" in out
    assert f"no MusicBrainz id: {songs[3].label}" in problem
    assert server.taken[0]["extension"][EXTENSION]["public"] is True
    assert TOKEN not in out + problem
    run("listenbrainz", "token", "--remove", library=tiny_library.folder)
    assert not has_token(tiny_library)
