"""Playlists, tags and files that the owner saves over HTTP; a new playlist replaces no other."""

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.api.http import http_interface
from musicsim.explorer import jobs
from musicsim.explorer.playlists.draft import MAX_NAME, PlaylistDraft
from musicsim.explorer.playlists.walk import Edge
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.stores.playlists import OWN_PLAYLISTS

SOUND = {"content-type": "application/octet-stream"}
BODY = {"name": "From A", "songs": [3, 1, 2], "reasons": ["", "same artist", ""], "pins": [1]}


def names(library):
    return [playlist.name for playlist in library.playlists(source=OWN_PLAYLISTS)]


def test_queue_is_saved_with_its_reasons_and_pins(client, tiny_library):
    answer = client.post("/api/playlists", json=BODY)
    (saved,) = tiny_library.playlists(source=OWN_PLAYLISTS)
    assert (answer.status_code, answer.json()) == (201, {"name": "From A", "id": saved.id, "n_songs": 3})
    draft = PlaylistDraft.from_saved(saved, take_snapshot(tiny_library))
    assert (draft.song_ids, draft.kept) == ((3, 1, 2), {1})
    assert draft.edges == {(3, 1): Edge("same artist", 0.0)}
    assert not draft.is_edited


def test_name_gets_a_number(client, tiny_library):
    body = {"name": "From A"}
    saved = [client.post("/api/playlists", json=body | {"songs": [n]}).json()["name"] for n in (1, 2, 3)]
    assert saved == ["From A", "From A 2", "From A 3"] == names(tiny_library)
    assert [playlist.song_ids for playlist in tiny_library.playlists(source=OWN_PLAYLISTS)] == [(1,), (2,), (3,)]
    assert client.get("/api/playlists/name?start=A").json() == {"name": "From A 4"}
    assert client.get("/api/playlists/name?start=B").json() == {"name": "From B"}
    long = "x" * MAX_NAME
    for _ in range(2):
        assert len(client.post("/api/playlists", json=BODY | {"name": long}).json()["name"]) <= MAX_NAME
    assert len(client.get("/api/playlists/name", params={"start": long}).json()["name"]) <= MAX_NAME


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ({"songs": [3, 1, 999]}, 404, "song 999 does not exist"),
        ({"songs": []}, 422, "songs:"),
        ({"name": " \n "}, 422, "name:"),
        ({"name": "x" * (MAX_NAME + 1)}, 422, "name:"),
        ({"reasons": ["one"]}, 422, "reasons:"),
        ({"pins": ["1"]}, 422, "pins[0]:"),
        ({"tag": "x"}, 422, "tag is not a field"),
    ],
)
def test_faulty_playlist_is_not_saved(client, tiny_library, body, status, named):
    answer = client.post("/api/playlists", json=BODY | body)
    assert answer.status_code == status
    (sentence,) = answer.json().values()
    assert named in sentence
    assert names(tiny_library) == []


def test_tag_is_added_to_songs(client, tiny_library):
    answer = client.post("/api/tags", json={"tag": " rainy  day", "songs": [2, 5, 2]})
    assert answer.json() == {"tag": "rainy day", "n_songs": 2}
    tags = take_snapshot(tiny_library).tags_of([2, 5, 6])
    assert {i for i, some in tags.items() if ("rainy day", 1.0) in [tuple(one) for one in some]} == {2, 5}


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ({"tag": "x", "songs": [2, 999]}, 404, "song 999 does not exist"),
        ({"tag": " ", "songs": [2]}, 422, "tag:"),
        ({"tag": "x" * 61, "songs": [2]}, 422, "tag:"),
        ({"tag": "x", "songs": []}, 422, "songs:"),
    ],
)
def test_faulty_tag_is_not_added(client, tiny_library, body, status, named):
    before = tiny_library.listening.tag_counts()
    answer = client.post("/api/tags", json=body)
    assert answer.status_code == status
    (sentence,) = answer.json().values()
    assert named in sentence
    assert tiny_library.listening.tag_counts() == before


def test_file_is_kept_and_added_by_a_job(client, tiny_library, monkeypatch):
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append((kind, arguments)) or 7)
    data = tiny_library.song(1).path.read_bytes()
    answer = client.post("/api/songs", params={"name": "../my song.flac"}, content=data, headers=SOUND)
    assert (answer.status_code, answer.json()) == (202, {"job": 7})
    ((kind, arguments),) = started
    (path,) = (tiny_library.folder / "uploads").iterdir()
    assert (kind, arguments) == ("add", {"paths": [str(path)]})
    assert (path.name, path.read_bytes()) == ("my song.flac", data)
    assert list((tiny_library.folder / "scratch").glob("*/*")) == []


def test_form_of_another_site_is_refused(client, tiny_library):
    answer = client.post("/api/songs?name=a.flac", content=b"x", headers={"content-type": "text/plain"})
    assert answer.status_code == 415
    assert not (tiny_library.folder / "uploads").exists()
    for path in ("playlists", "tags"):
        assert client.post(f"/api/{path}", content="{}", headers={"content-type": "text/plain"}).status_code == 415
    assert client.post("/api/songs", content=b"x", headers=SOUND).status_code == 422


def test_visitors_save_nothing(client, tiny_library, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    with TestClient(Starlette(routes=http_interface().routes)) as visitor:
        answers = [
            visitor.post("/playlists", json=BODY),
            visitor.get("/playlists/name?start=A"),
            visitor.post("/tags", json={"tag": "x", "songs": [1]}),
            visitor.post("/songs?name=a.flac", content=b"x", headers=SOUND),
        ]
    assert {answer.status_code for answer in answers} <= {404, 405}
    assert names(tiny_library) == []
    assert not (tiny_library.folder / "uploads").exists()
