"""Tests of listening tests on the Research page and behind their links, without a browser."""

import json
import shutil

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.extensions.listening_tests.pooling import ListeningTestRequest, make_test
from musicsim.extensions.listening_tests.routes import listen_routes
from musicsim.extensions.listening_tests.store import ListeningTestStore
from tests.pages.actions import labels, open_page


@pytest.fixture
def test(full):
    """Make a small test of the tiny library with two listeners, and return its number."""
    made = make_test(full, ListeningTestRequest(models=("Sound", "Codewords"), queries=2, checks=1))
    number = ListeningTestStore(full).add(made.name, made.digest, made.to_json())
    ListeningTestStore(full).invite(number, ["Anna", "Bert"])
    return number


@pytest.fixture
def link(full, test):
    """Open the link of the first listener."""
    token = ListeningTestStore(full).listeners(test)[0].token
    with TestClient(Starlette(routes=listen_routes()), base_url="http://localhost") as client:
        yield lambda path="", said=None: client.request(
            "GET" if said is None else "POST", f"/listen/{token}{path}", json=said
        )


def test_link_plays_pair_anonymously(link, full, own_music):
    page = link()
    assert page.status_code == 200
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert link("/sound/0/0").status_code == 404, "not before they agreed"
    state = link("/consent", {}).json()
    assert (state["place"], state["n_graded"], len(state["starts"])) == (0, 0, 2)
    sound = link("/sound/0/1")
    assert sound.status_code == 200
    assert sound.headers["content-type"].startswith("audio/")
    assert "content-disposition" not in sound.headers
    assert link("/sound/1/0").status_code == 404, "not before it is its turn"
    shutil.rmtree(own_music)
    gone = link("/sound/0/1")
    assert (gone.status_code, gone.json()) == (410, {"error": "this song cannot be played."})
    said = json.dumps(link("/state").json())
    assert not [song for song in full.songs() if song.title in said or (song.artist or "?") in said]


def test_rejects_invalid_grades(link, full, test):
    link("/consent", {})
    for wrong in (
        [], {}, {"place": 0}, {"place": 0, "category": 1}, {"place": 0, "category": True, "fine": 5},
        {"place": 0, "category": 3, "fine": 5}, {"place": 0, "category": 1, "fine": 101}, {"place": "0"},
        {"place": 0, "category": 1, "fine": 5.5}, {"place": 0, "category": 1, "fine": 5, "more": "x" * 2000},
    ):  # fmt: skip
        is_nothing = wrong == {"place": 0}
        assert link("/grades", wrong).status_code == (200 if is_nothing else 422), wrong
        if is_nothing:  # reports that the pair cannot be heard; a grade follows
            assert link("/grades", {"place": 0, "category": 1, "fine": 5}).status_code == 200
    assert link("/grades", {"place": 5, "category": 1, "fine": 5}).status_code == 404
    assert link("/state?place=x").status_code == 422
    (grades, _) = ListeningTestStore(full).grades(test).values()
    assert [(grade.category, grade.fine) for grade in grades] == [(1, 5)]


def test_unknown_token_gives_404(link):
    with TestClient(Starlette(routes=listen_routes()), base_url="http://localhost") as client:
        for path in ("state", "sound/0/0"):
            assert client.get(f"/listen/nobody/{path}").status_code == 404
        for path in ("consent", "grades"):
            assert client.post(f"/listen/nobody/{path}", json={"place": 0}).status_code == 404


def test_page_shows_form_and_newest_test_links(full, test):
    app = open_page("research", "tests")
    assert not app.exception
    assert app.selectbox(key="listening_test").value == test
    assert not next(box for box in app.expander if box.label == "New listening test").proto.expanded
    app.button(key="listening_more").click().run()
    assert [one.name for one in ListeningTestStore(full).listeners(test)] == ["Anna", "Bert", "Listener 3"]


def test_visitors_cannot_see_tests(full, test, monkeypatch):
    full.close()
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    app = open_page("research", "tests")
    assert not app.exception
    assert "Listening tests" not in labels(app)
