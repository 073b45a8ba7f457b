"""Tests of songs without a file on this machine, which are played from their server through the app."""

import re

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.api import routes
from musicsim.extensions.music_servers.connections import Connections, place_of
from musicsim.extensions.music_servers.server_songs import ServerSong, ServerSongs
from tests.extensions.music_servers.serving import enter, scripted

SECRET = "red apple"
DATA = bytes(range(256)) * 40


def file(handler):
    """Send the file, or the requested range of it."""
    asked = re.fullmatch(r"bytes=(\d+)-(\d+)", handler.headers.get("Range", ""))
    start, stop = (int(asked[1]), min(int(asked[2]) + 1, len(DATA))) if asked else (0, len(DATA))
    handler.send_response(206 if asked else 200)
    if asked:
        handler.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(DATA)}")
    handler.send_header("Content-Type", "audio/flac")
    handler.send_header("Content-Length", str(stop - start))
    handler.end_headers()
    handler.wfile.write(DATA[start:stop])


def whole(handler):
    """Send the whole file without a length, whatever range is requested."""
    handler.send_response(200)
    handler.send_header("Content-Type", "audio/flac")
    handler.end_headers()
    handler.wfile.write(DATA)


@pytest.fixture
def heard(store, monkeypatch):
    """Return the response to a browser for a song on the server in `reply`."""
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(store.folder))
    enter(store, 1, place_of(store, "home", "so-1", "Me/One.flac"))
    ServerSongs(store).write("home", [ServerSong("so-1", song_id=1)])

    def ask(reply, **headers):
        with scripted(lambda call, values: reply) as server:
            Connections(store).put(server.connection())
            with TestClient(Starlette(routes=routes())) as client:
                answer = client.get("/songs/1/audio", headers=headers)
        assert SECRET not in answer.text
        assert server.address not in answer.text
        return answer

    return ask


@pytest.mark.parametrize("reply", [file, whole])
def test_range_works_with_any_server(heard, reply):
    part = heard(reply, Range="bytes=100-199")
    assert (part.status_code, part.headers["content-range"]) == (206, f"bytes 100-199/{len(DATA)}")
    assert part.content == DATA[100:200]
    assert part.headers["content-type"] == "audio/flac"
    assert heard(reply, Range="bytes=9000-").content == DATA[9000:]
    assert heard(reply).content == DATA
    behind = heard(whole, Range="bytes=99999-")
    assert (behind.status_code, behind.headers["content-range"]) == (416, f"bytes */{len(DATA)}")


@pytest.mark.parametrize("reply", [(70, "not found"), b"<html>", lambda handler: handler.connection.close()])
def test_failed_streaming_gives_clear_error(heard, reply):
    answer = heard(reply, Range="bytes=0-")
    assert answer.status_code == 502
    assert answer.json()["error"].startswith("One — Me (song 1): the music server did not send the audio.")


def test_song_without_server_is_missing(heard, store):
    ServerSongs(store).forget("home")
    assert heard(file).status_code == 410
