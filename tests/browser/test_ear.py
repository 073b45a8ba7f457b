"""A learned ear in a real Chromium: two clicks on Teach, first without a network connection, then with the package."""

import zipfile
from pathlib import Path

from playwright.sync_api import expect

from musicsim.library import Library
from tests.browser.actions import APP
from tests.browser.serving import serve
from tests.extensions.embeddings.checkpoint_files import write_wheel
from tests.extensions.embeddings.test_musicnn import weights


def test_ear_is_added_in_two_clicks_and_error_says_what_to_do(page, home, tmp_path):
    packages = tmp_path / "packages"
    packages.mkdir()
    hiding = packages / "musicnn.py"  # hides an installed package
    hiding.touch()
    environment = {
        "MUSICSIM_LIBRARY": str(home / "library"),
        "PYTHONPATH": f"{packages}:{Path(__file__).parents[2]}",
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    }
    with serve(APP, environment=environment) as address:
        page.goto(f"{address}/train", wait_until="commit")
        page.get_by_text("Better ear", exact=True).first.click()
        expect(page.get_by_text("from the Python Package Index")).to_be_visible()
        page.get_by_role("button", name="Download and add MusiCNN").click()
        expect(page.get_by_text("Adding a learned ear: failed. MusiCNN").first).to_be_visible()
        expect(page.get_by_text("musicsim models add-ear FILE").first).to_be_visible()
        hiding.unlink()
        with zipfile.ZipFile(write_wheel(tmp_path / "wheel.whl", weights())) as wheel:
            wheel.extractall(packages)
        (packages / "musicnn" / "__init__.py").touch()
        page.reload()
        page.get_by_role("button", name="Add MusiCNN").click()
        expect(page.get_by_text("This library has the ear MusiCNN. In use: Sound and MusiCNN.")).to_be_visible()
    with Library.open(home / "library") as library:
        assert library.models.get().name == "Sound and MusiCNN"
