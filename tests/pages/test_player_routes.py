"""Requests of the player other than songs: uploads, and the songs that follow the last one."""

import gc
import shutil

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.api import filter_routes
from musicsim.ui.base.uploads import Upload
from musicsim.ui.components.listening import player_routes, upload_address


@pytest.fixture
def client(full):
    with TestClient(Starlette(routes=player_routes())) as client:
        yield client


def test_radio_returns_reasons_and_no_recently_played_songs(client, full):
    lately = [song.id for song in full.songs()][:6]
    tracks = client.get("/radio", params={"song": lately[0], "lately": lately}).json()
    assert len(tracks) == 5
    assert not {track["song_id"] for track in tracks} & set(lately)
    assert any(track["reason"] for track in tracks)
    for track in tracks:
        (song,) = full.songs([track["song_id"]])
        assert (track["title"], track["artist"], track["loudness"]) == (song.title, song.by, song.loudness)
        assert track["url"] == f"/songs/{song.id}/audio?library=library"
    assert client.get("/radio", params={"song": lately[0], "model": "Codewords"}).status_code == 200


def test_small_library_excludes_half_that_played_last(client, full):
    lately = [song.id for song in full.songs()]
    tracks = client.get("/radio", params={"song": lately[0], "lately": lately}).json()
    assert {track["song_id"] for track in tracks} < set(lately[6:])


def test_radio_is_empty_without_files(client, full, own_music):
    shutil.rmtree(own_music)
    assert client.get("/radio?song=1").json() == []


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("song=999", 404),
        ("song=1&library=no", 404),
        ("song=1&model=no", 404),
        ("", 422),
        ("song=x", 422),
        ("song=1&lately=" + "9" * 5000, 422),
        (f"song=1&lately={10**30}", 200),
    ],
)
def test_bad_parameters_are_no_server_error(client, asked, status):
    assert client.get(f"/radio?{asked}").status_code == status


def test_upload_supports_byte_ranges_while_held(client):
    upload = Upload("mine.flac", bytes(range(200)), "a" * 32)
    address = upload_address(upload)
    whole = client.get(address)
    assert (whole.status_code, whole.headers["content-type"], whole.content) == (200, "audio/flac", upload.data)
    for asked, start, stop in (("0-", 0, 200), ("10-19", 10, 20), ("150-900", 150, 200)):
        part = client.get(address, headers={"Range": f"bytes={asked}"})
        assert (part.status_code, part.content) == (206, upload.data[start:stop])
        assert part.headers["content-range"] == f"bytes {start}-{stop - 1}/200"
    assert client.get(address, headers={"Range": "bytes=200-"}).status_code == 416
    del upload
    gc.collect()
    assert client.get(address).status_code == 404


def test_long_upload_is_sent_in_parts(client):
    upload = Upload("mine.wav", bytes(9 << 20), "b" * 32)
    part = client.get(upload_address(upload), headers={"Range": "bytes=1-"})
    assert part.headers["content-range"] == f"bytes 1-{4 << 20}/{9 << 20}"
    assert len(part.content) == 4 << 20


def test_plays_and_skips_are_stored_unless_switched_off(client, full):
    song = full.songs()[0].id
    assert client.post("/plays", params={"song": song, "kind": "play"}).status_code == 204
    for _ in range(2):
        assert client.post("/plays", params={"song": song, "kind": "skip"}).status_code == 204
    assert full.listening.play_counts() == {song: 1}
    assert full.player_plays.often_skipped() == [song]
    full.set_setting("keep_plays", False)
    assert client.post("/plays", params={"song": song, "kind": "play"}).status_code == 204
    assert full.listening.play_counts() == {song: 1}


def test_skip_stores_seconds_and_the_choice_it_belongs_to(client, full):
    song = full.songs()[0].id
    for details in ({"seconds": 7, "choice": 31}, {"seconds": "x", "choice": "-1"}):
        assert client.post("/plays", params={"song": song, "kind": "skip", **details}).status_code == 204
    assert [skip.context for skip in full.judgments.all("skip")] == [{"seconds": 7, "choice": 31}, {}]


@pytest.mark.parametrize(
    ("asked", "status"),
    [("song=999&kind=play", 404), ("song=x&kind=play", 422), ("song=1&kind=no", 422), ("", 422), ("song=1", 422)],
)
def test_invalid_play_is_no_server_error(client, full, asked, status):
    assert client.post(f"/plays?{asked}").status_code == status
    assert full.listening.play_counts() == {}


def test_visitors_store_no_plays(full, monkeypatch):
    full.close()
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    with TestClient(Starlette(routes=filter_routes(player_routes()))) as visitor:
        assert visitor.post("/plays?song=1&kind=play").status_code in (404, 405)
