"""Test of a contribution in the browser: the shown text is the downloaded file."""

import shutil

from playwright.sync_api import expect

from musicsim.extensions.pooling.contribution import read_contribution
from tests.browser.actions import APP, choose, open_measurement, visit
from tests.browser.serving import serve


def test_downloaded_file_is_the_shown_text(page, styles_library, tmp_path):
    shutil.copytree(styles_library, tmp_path / "library")
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(tmp_path / "library")}) as address:
        visit(page, address, "research")
        open_measurement(page, "Contribute")
        choose(page, "Ground truth", "songs of the same genre (100% of all songs)")
        page.get_by_role("button", name="Show the file").click()
        shown = page.get_by_test_id("stCode")
        expect(shown).to_contain_text('"digest"')
        with page.expect_download() as download:
            page.get_by_role("button", name="Download", exact=True).click()
        path = tmp_path / "contribution.json"
        download.value.save_as(path)
        text = path.read_text(encoding="ascii")
        assert read_contribution(path).text == text
        assert shown.inner_text().split() == text.split()
        assert "Artist" not in text
