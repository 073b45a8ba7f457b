"""Requests of the player other than songs: the songs that follow the last one, plays and skips."""

import shutil

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.api import filter_routes
from musicsim.api.routes import routes


def test_radio_returns_reasons_and_no_recently_played_songs(client, tiny_library):
    lately = [song.id for song in tiny_library.songs()][:6]
    tracks = client.get("/radio", params={"song": lately[0], "lately": lately}).json()
    assert len(tracks) == 5
    assert not {track["song_id"] for track in tracks} & set(lately)
    assert any(track["reason"] for track in tracks)
    for track in tracks:
        (song,) = tiny_library.songs([track["song_id"]])
        assert (track["title"], track["artist"], track["loudness"]) == (song.title, song.by, song.loudness)
        assert track["url"] == f"/songs/{song.id}/audio?library=library"
    assert client.get("/radio", params={"song": lately[0], "model": "Codewords"}).status_code == 200


def test_small_library_excludes_half_that_played_last(client, tiny_library):
    lately = [song.id for song in tiny_library.songs()]
    tracks = client.get("/radio", params={"song": lately[0], "lately": lately}).json()
    assert {track["song_id"] for track in tracks} < set(lately[6:])


def test_radio_is_empty_without_files(client, tiny_library, own_music):
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


def test_plays_and_skips_are_stored_unless_switched_off(client, tiny_library):
    song = tiny_library.songs()[0].id
    assert client.post("/plays", params={"song": song, "kind": "play"}).status_code == 204
    for _ in range(2):
        assert client.post("/plays", params={"song": song, "kind": "skip"}).status_code == 204
    assert tiny_library.listening.play_counts() == {song: 1}
    assert tiny_library.player_plays.often_skipped() == [song]
    tiny_library.set_setting("keep_plays", False)
    assert client.post("/plays", params={"song": song, "kind": "play"}).status_code == 204
    assert tiny_library.listening.play_counts() == {song: 1}


def test_skip_stores_seconds_and_the_choice_it_belongs_to(client, tiny_library):
    song = tiny_library.songs()[0].id
    for details in ({"seconds": 7, "choice": 31}, {"seconds": "x", "choice": "-1"}):
        assert client.post("/plays", params={"song": song, "kind": "skip", **details}).status_code == 204
    assert [skip.context for skip in tiny_library.judgments.all("skip")] == [{"seconds": 7, "choice": 31}, {}]


@pytest.mark.parametrize(
    ("asked", "status"),
    [("song=999&kind=play", 404), ("song=x&kind=play", 422), ("song=1&kind=no", 422), ("", 422), ("song=1", 422)],
)
def test_invalid_play_is_no_server_error(client, tiny_library, asked, status):
    assert client.post(f"/plays?{asked}").status_code == status
    assert tiny_library.listening.play_counts() == {}


def test_visitors_store_no_plays(tiny_library, monkeypatch):
    tiny_library.close()
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    with TestClient(Starlette(routes=filter_routes(routes()))) as visitor:
        assert visitor.post("/plays?song=1&kind=play").status_code in (404, 405)
