"""The story of file tags in the browser: preview, write, undo."""

import re

import mutagen
from playwright.sync_api import expect

from tests.browser.actions import APP, IDLE, show_tab, visit
from tests.browser.serving import serve


def test_tags_are_previewed_written_and_undone(page, tiny_library, own_music):
    before = {path: path.read_bytes() for path in own_music.rglob("*.flac")}
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(tiny_library.folder)}) as address:
        visit(page, address, "library")
        show_tab(page, "Tidy up", "Write file tags")
        form = page.get_by_test_id("stForm").filter(has_text="Properties")
        form.get_by_text("ReplayGain", exact=True).click()
        form.get_by_text("Mood", exact=True).click()
        form.get_by_role("button", name="Preview").click()
        write = page.get_by_role("button", name=re.compile(r"^Write \d+ values to 12 files"))
        expect(write).to_be_visible()
        page.get_by_test_id("stDataFrame").first.locator("canvas").first.wait_for()
        assert {path: path.read_bytes() for path in before} == before, "a preview changes nothing"
        page.wait_for_selector(IDLE)
        write.click()
        expect(
            page.get_by_text(re.compile(r"Writing file tags: done\. \d+ values written to 12 files"))
        ).to_be_visible()
        assert all("replaygain_track_gain" in mutagen.File(path) for path in before)
        undo = page.get_by_role("button", name="Undo", exact=True)
        expect(undo).to_be_enabled()
        page.wait_for_selector(IDLE)
        undo.click()
        expect(page.get_by_text("Undoing file tags: done. 12 files restored")).to_be_visible()
        expect(undo).to_have_count(0)
    assert {path: path.read_bytes() for path in before} == before
