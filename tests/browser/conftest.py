"""One Chromium for all browser tests; without one they are skipped, with CI set they fail."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Playwright, expect, sync_playwright

from tests.browser.chromium import FLAGS, find
from tests.browser.serving import PATIENCE_MS

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Where the browser is."""
    path = find()
    if path is None and os.environ.get("CI"):
        pytest.fail(
            "no Chromium: with CI set a missing browser is a failure. Install it or set MUSICSIM_CHROMIUM."
        )
    if path is None:
        pytest.skip("no Chromium found: install it, or set MUSICSIM_CHROMIUM to its path.")
    return path


@pytest.fixture(scope="session")
def playwright_driver() -> Iterator[Playwright]:
    """Playwright itself; it can be started only once in a process."""
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def chromium(playwright_driver: Playwright, chromium_path: str) -> Iterator[Browser]:
    """A running Chromium with a fresh profile."""
    browser = playwright_driver.chromium.launch(executable_path=chromium_path, args=list(FLAGS))
    yield browser
    browser.close()
