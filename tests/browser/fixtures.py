"""One Chromium for all browser tests; without one they are skipped, with CI set they fail."""

import os
import shutil
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Error, Page, Playwright, expect, sync_playwright

from musicsim.explorer.refresh.refresh import refresh
from tests.browser.actions import APP
from tests.browser.chromium import describe_lack, find
from tests.browser.patient import launch, new_context
from tests.browser.serving import PATIENCE_MS, serve
from tests.sounds import open_library, write_collection

expect.set_options(timeout=PATIENCE_MS)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests with a browser. All except one story per page are for `make test-all`."""
    if item.path.parent.name == "browser" or item.path.stem == "test_browser":
        item.add_marker("browser")
        if item.get_closest_marker("story") is None:
            item.add_marker("long")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows the words of the page as it was then."""
    report = yield
    page = getattr(item, "funcargs", {}).get("page")
    if report.when == "call" and report.failed and isinstance(page, Page):
        with suppress(Error):
            report.sections.append((f"Page {page.url}", page.locator("body").inner_text()))
    return report


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Return the path of the browser."""
    path = find()
    if path is None and os.environ.get("CI"):
        pytest.fail(f"With CI set, a missing browser is a failure: {describe_lack()}.")
    if path is None:
        pytest.skip(f"{describe_lack()}.")
    return path


@pytest.fixture(scope="session")
def playwright_driver(chromium_path: str) -> Iterator[Playwright]:
    """Playwright itself, if it can start; it can be started only once in a process."""
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def chromium(playwright_driver: Playwright, chromium_path: str) -> Iterator[Browser]:
    """A running Chromium with a fresh profile."""
    browser = launch(playwright_driver, chromium_path)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def built_home(made_once) -> Path:
    """Libraries side by side: one with twelve songs of 20 s, one with one song, two without any; never changed."""

    def build(folder: Path) -> None:
        music = write_collection(folder / "music", seconds=20)
        Image.new("RGB", (400, 400), (0, 114, 178)).save(music / "Artist tones" / "cover.png")
        with open_library(folder / "home" / "library") as library:
            library.add(music, n_workers=1)
            library.set_text("machine.daily", '{"automatic": false}')  # ten plays would start the daily mixes
            refresh(library)
        with open_library(folder / "home" / "single") as library:
            library.add(next(music.rglob("*.flac")))
            refresh(library)
        open_library(folder / "home" / "empty").close()
        open_library(folder / "home" / "adding").close()

    return made_once("browser", build) / "home"


@pytest.fixture(scope="module")
def home(built_home, tmp_path_factory) -> Path:
    """Copies of these libraries for the tests of a file."""
    return shutil.copytree(built_home, tmp_path_factory.mktemp("home") / "home")


@pytest.fixture(scope="module")
def address(home) -> Iterator[str]:
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(home / "library")}) as address:
        yield address


@pytest.fixture
def page(chromium) -> Iterator[Page]:
    context = new_context(chromium, viewport={"width": 1400, "height": 900}, accept_downloads=True)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    broken = sum(tab.get_by_test_id("stException").count() for tab in context.pages)
    context.close()
    assert not broken, "a red exception box"
    assert not errors
