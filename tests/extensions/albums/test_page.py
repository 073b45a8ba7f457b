"""Tests of the tab Albums without a browser: pages of covers, and the search."""

import pytest

from benchmarks.large_library import write_library
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.albums.catalogue import find_albums
from musicsim.extensions.albums.request import AlbumListRequest
from tests.pages.actions import open_page

N_SONGS = 600


@pytest.fixture
def names(tmp_path, monkeypatch):
    """Open a library of many albums, and return the names of its albums in order."""
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tmp_path / "library"))
    with write_library(tmp_path / "library", N_SONGS) as library:
        return [album.name for album in find_albums(take_snapshot(library), AlbumListRequest())]


def covers(app):
    return [button.label for button in app.button if str(button.key).startswith("cover_all_")]


def test_every_album_is_on_one_page_of_covers(names):
    app = open_page("library", "albums")
    per_page = len(covers(app))
    assert 0 < per_page < len(names)
    found = []
    for page in range(-(-len(names) // per_page)):
        app.session_state["albums_page"] = page + 1
        app.run()
        assert not app.exception
        found += covers(app)
    assert found == names


def test_search_returns_to_the_first_page(names):
    app = open_page("library", "albums")
    app.session_state["albums_page"] = 2
    app.run()
    app.text_input(key="albums_search").set_value(names[0]).run()
    assert not app.exception
    assert names[0] in covers(app)
    app.text_input(key="albums_search").set_value("xyzzy").run()
    assert covers(app) == []
    assert any("No album matches" in caption.value for caption in app.caption)
