"""Pages offer files: to their session, made at the click, and with a sentence if this fails."""

import gc

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from musicsim.api import filter_routes
from musicsim.errors import LibraryError
from musicsim.ui.base.offered_files import file_routes
from tests.pages.actions import downloads
from tests.waiting import PATIENCE_S


def page() -> AppTest:
    def draw():
        import streamlit as st

        from musicsim.ui.base.offered_files import download

        wanted = st.session_state.wanted
        download("Save", wanted.make, wanted.name, "text/csv", key="save")

    return AppTest.from_function(draw, default_timeout=PATIENCE_S)


class Wanted:
    def __init__(self, content, name="songs.csv"):
        self.content, self.name = content, name

    def make(self):
        if isinstance(self.content, Exception):
            raise self.content
        return self.content


def offer(app: AppTest, content: object, name: str = "songs.csv") -> str:
    """Run the page with a file, and return the file's address."""
    app.session_state["wanted"] = Wanted(content, name)
    app.run()
    assert not app.exception
    return downloads(app)["Save"]


def get(address: str):
    with TestClient(Starlette(routes=filter_routes(file_routes("/base"))), base_url="http://localhost") as client:
        return client.get(f"/base/{address}")


def test_visitor_gets_file_with_its_name(monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    app = page()
    answer = get(offer(app, b"a,b", 'Évening → "night"\r\n.csv'))
    assert answer.content == b"a,b"
    assert answer.headers["Content-Disposition"] == (
        "attachment; filename*=UTF-8''%C3%89vening%20%E2%86%92%20%22night%22%0D%0A.csv"
    )
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Content-Type"].startswith("text/csv")


def test_click_during_a_run_gets_newest_file():
    app = page()
    before = offer(app, b"old")
    assert offer(app, b"new", "new.csv") == before
    answer = get(before)
    assert (answer.content, answer.headers["Content-Disposition"]) == (b"new", "attachment; filename*=UTF-8''new.csv")


def test_sessions_do_not_share_files():
    one, other = page(), page()
    addresses = [offer(one, b"one"), offer(other, b"other")]
    assert [get(address).content for address in addresses] == [b"one", b"other"]
    assert all(len(address.rpartition("/")[2]) == 32 for address in addresses), "192 bits"


def test_file_ends_with_its_session():
    app = page()
    address = offer(app, b"a")
    del app
    gc.collect()
    answer = get(address)
    assert (answer.status_code, answer.json()) == (404, {"error": "this file is no longer offered: reload the page."})


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (LibraryError("the disk is full"), 409, "the disk is full"),
        (OSError("/home/me/secret"), 500, "the file could not be made. The app's log says why."),
    ],
)
def test_failure_is_a_sentence(error, status, words):
    app = page()
    answer = get(offer(app, error))
    assert (answer.status_code, answer.json()) == (status, {"error": words})
