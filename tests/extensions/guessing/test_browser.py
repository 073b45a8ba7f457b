"""Tests of guessed labels in the browser: accepting affects the marked rows only, and no song after them."""

import pytest
from playwright.sync_api import expect

from musicsim.library import Library
from tests.browser.actions import show_tab, visit

ROW = 35  # pixels


@pytest.fixture
def nameless(home):
    """Remove the artist from one song of each artist."""
    with Library.open(home / "library") as library:
        ids = list({song.artist: song.id for song in library.songs()}.values())
        library.edits.edit(ids, {"artist": None})
        yield library, ids
        library.edits.undo(ids)


def test_marks_stay_with_their_rows(page, address, nameless):
    library, ids = nameless
    visit(page, address, "library")
    show_tab(page, "Tidy up", "Artists")
    page.get_by_text("Guess artists from similar songs").click()
    table = page.get_by_test_id("stDataFrame").first
    table.locator("canvas").first.wait_for()
    expect(page.get_by_role("button", name="Accept 3")).to_be_visible()
    table.click(position={"x": ROW / 2, "y": 1.5 * ROW})
    page.get_by_role("button", name="Accept 1").click()
    expect(page.get_by_role("button", name="Undo 1 artist")).to_be_visible()
    expect(page.get_by_role("button", name="Accept 2")).to_be_visible()  # no marks: the button means both
    assert sum(song.artist is None for song in library.songs(ids)) == 2
