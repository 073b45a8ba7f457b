"""Duplicates in the browser: only the same recording is offered, and a listener can separate it."""

import pytest
from playwright.sync_api import expect

from musicsim.explorer.refresh.refresh import refresh
from musicsim.library import Library
from tests.browser.actions import APP, rerun, visit
from tests.browser.serving import serve
from tests.sounds import open_library, write_duplicates


@pytest.fixture
def library(tmp_path):
    with open_library(tmp_path / "library") as library:
        library.add(write_duplicates(tmp_path / "music"), n_workers=1)
        assert refresh(library)
    return tmp_path / "library"


def test_only_the_same_recording_is_offered_and_can_be_separated(page, library):
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(library)}) as address:
        visit(page, address, "library", "?section=same")
        expect(page.get_by_text("match with the first")).to_have_count(1)
        expect(page.get_by_text("shown for the group")).to_have_count(1)
        for other in ("higher.flac", "faster.flac", "again.flac"):
            expect(page.get_by_text(other)).to_have_count(0)
        expect(page.get_by_text("Other performances, and copies at another pitch or speed")).to_be_visible()
        with rerun(page):
            page.get_by_role("button", name="These are different songs").click()
        expect(page.get_by_text("1 pair you marked as different")).to_be_visible()
        expect(page.get_by_text("match with the first")).to_have_count(0)
    with Library.open(library) as opened:
        assert [pair.is_same for pair in opened.duplicates.pairs()] == [False]
