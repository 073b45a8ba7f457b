"""The owner's thumbs over HTTP: stored as by the page, all or none."""

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.api.http import http_interface


def save(client, body):
    return client.post("/api/thumbs", json=body)


def test_thumbs_are_those_that_pages_store_and_read(client, tiny_library):
    answer = save(client, {"song": 1, "queue": {"3": 1, "2": -1}, "player": {"4": -1, "5": 1}})
    assert answer.json() == {"queue": {"3": 1, "2": -1}, "player": {"4": -1, "5": 1}}
    assert tiny_library.judgments.ratings_of(1) == {3: 1, 2: -1}
    assert tiny_library.feedback() == {4: -1, 5: 1}
    assert client.get("/api/thumbs?song=1").json() == answer.json()
    assert save(client, {"player": {"4": 0, "5": -1}}).json() == {"queue": None, "player": {"5": -1}}
    assert save(client, {"song": 1, "queue": {"6": 1}}).json()["queue"] == {"6": 1}
    assert save(client, {"song": 1, "queue": {}}).json() == {"queue": {}, "player": {"5": -1}}
    assert client.get("/api/thumbs").json() == {"queue": None, "player": {"5": -1}}
    tiny_library.judgments.rate_results(2, {1: -1})
    assert client.get("/api/thumbs?song=2").json()["queue"] == {"1": -1}


def test_disliked_song_leaves_the_queue(client):
    def ids() -> list[int]:
        answer = client.post("/api/queue", json={"song": 1, "search": {"per_artist": 0}})
        return [item["song"]["id"] for item in answer.json()["items"]]

    first = ids()[0]
    save(client, {"player": {first: -1}})
    assert first not in ids()


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ({"song": 1, "queue": {"2": 1, "999": 1}, "player": {"3": 1}}, 404, "song 999 does not exist"),
        ({"song": 999, "queue": {"2": 1}, "player": {"3": 1}}, 404, "song 999 does not exist"),
        ({"song": 1, "queue": {"2": 1}, "player": {"3": 1, "999": 0}}, 404, "song 999 does not exist"),
        ({"song": 1, "queue": {"1": 1}, "player": {"3": 1}}, 422, "queue:"),
        ({"song": 1, "queue": {"2": 0}, "player": {"3": 1}}, 422, "queue.2:"),
        ({"song": 1, "player": {"3": 1}}, 422, "`queue`"),
        ({"queue": {"2": 1}, "player": {"3": 1}}, 422, "`song`"),
        ({"player": {"3": 1}, "seed": 1}, 422, "seed is not a field"),
    ],
)
def test_faulty_thumbs_store_nothing(client, tiny_library, body, status, named):
    tiny_library.judgments.rate_results(1, {5: 1})
    answer = save(client, body)
    assert answer.status_code == status
    (sentence,) = answer.json().values()
    assert named in sentence
    assert (tiny_library.judgments.ratings_of(1), tiny_library.feedback()) == ({5: 1}, {})


def test_song_deleted_in_the_meantime_stores_nothing(client, tiny_library, monkeypatch):
    monkeypatch.setattr("musicsim.api.thumbs.thumbs_by_id", lambda *_: None)  # at that time, the song still existed
    for body in ({"song": 1, "queue": {"999": 1}, "player": {"3": 1}}, {"player": {"3": 1, "999": 1}}):
        assert save(client, body).status_code == 404
    assert (tiny_library.judgments.ratings_of(1), tiny_library.feedback()) == ({}, {})


def test_other_sites_and_visitors_save_no_thumbs(client, tiny_library, monkeypatch):
    form = client.post("/api/thumbs", content='{"player": {"3": 1}}', headers={"Content-Type": "text/plain"})
    assert form.status_code == 415
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    with TestClient(Starlette(routes=http_interface().routes)) as visitor:
        answers = [visitor.get("/thumbs"), visitor.post("/thumbs", json={"player": {"3": 1}})]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert tiny_library.feedback() == {}
