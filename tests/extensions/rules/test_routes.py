"""Tests of rules over HTTP, and of programs that receive a rule's songs by its name."""

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.api import routes
from musicsim.cli.playlist import load_or_generate
from musicsim.errors import NotFoundError
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.extensions.rules.rule import RuleRequest
from musicsim.extensions.rules.store import RuleStore


def test_rule_is_saved_followed_and_deleted(client, tiny_library):
    artist = tiny_library.songs()[0].artist
    asked = {"where": [f"artist:='{artist}'", "minutes:<100"], "order": "year", "songs": 2}
    saved = client.put("/api/rules/My rule", params=asked)
    assert saved.status_code == 200
    assert saved.json()["conditions"] == f"artist:='{artist}' minutes:<100"
    assert client.get("/api/rules").json() == [saved.json()]
    songs = client.get("/api/rules/My rule/songs").json()
    assert [song["artist"] for song in songs] == [artist] * 2
    assert client.delete("/api/rules/My rule").json() == saved.json()
    assert client.get("/api/rules").json() == []
    assert client.get("/api/rules/My rule/songs").status_code == 404
    assert client.delete("/api/rules/My rule").status_code == 404


@pytest.mark.parametrize(
    ("name", "params", "reason"),
    [
        ("x", {"where": "tempo:fast"}, "must be followed by a number"),
        ("x", {"songs": 0}, "greater than or equal to 1"),
        ("x" * 101, {}, "1 to 100 printable characters"),
    ],
)
def test_invalid_rule_is_refused(client, name, params, reason):
    refused = client.put(f"/api/rules/{name}", params=params)
    assert (refused.status_code, reason in refused.text) == (422, True)
    assert client.get("/api/rules").json() == []


def test_visitors_may_not_use_rules(client, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    with TestClient(Starlette(routes=routes())) as visitor:
        assert visitor.get("/api/rules").status_code == 404
        assert visitor.put("/api/rules/x").status_code == 404


def test_programs_receive_current_songs_of_rule(tiny_library):
    songs = tiny_library.songs()
    RuleStore(tiny_library).save("Loved", RuleRequest(where=("thumb:up",)).rule())
    for song in songs[:2]:
        tiny_library.set_feedback(song.id, 1)
        received = load_or_generate(tiny_library, PlaylistRequest(), "Loved", None).songs
        assert song.id in {one.id for one in received}
    assert {one.id for one in received} == {song.id for song in songs[:2]}
    tiny_library.add_playlists([("Loved", None, [songs[5].id])], "saved")
    playlist = load_or_generate(tiny_library, PlaylistRequest(), "Loved", None).songs
    assert [one.id for one in playlist] == [songs[5].id], "a saved playlist comes first"
    with pytest.raises(NotFoundError):
        load_or_generate(tiny_library, PlaylistRequest(), "Hated", None)
