"""Hundreds of switches between the pages of the app in one session."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from torture._libraries import copied, whole_library
from torture._run import Attempt, NotHere, Tried

__all__ = ["page_switches"]

_AT_ONCE = 20


@contextmanager
def page_switches(folder: Path) -> Iterator[Attempt]:
    """Open the pages in any order: each appears, none shows an error."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise NotHere("playwright is not installed") from error
    from tests.browser.actions import APP, IDLE, PAGES, switch, visit
    from tests.browser.chromium import FLAGS, find
    from tests.browser.serving import serve

    if (chromium := find()) is None:
        raise NotHere("there is no Chromium")
    base = copied(whole_library(folder), folder / "library")
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(base)}) as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=list(FLAGS))
        page, problems = browser.new_page(), []
        page.on("pageerror", lambda error: problems.append(str(error)))
        visit(page, address)

        def attempt(rng: np.random.Generator) -> Tried:
            lost = []
            for name in rng.choice(sorted(PAGES), _AT_ONCE):
                switch(page, str(name))
                page.wait_for_selector(IDLE)
                if page.locator("[data-testid=stException]").count():
                    lost.append(f"{name}: {page.locator('[data-testid=stException]').first.inner_text()[:300]}")
            lost += problems
            problems.clear()
            return Tried(_AT_ONCE, tuple(lost))

        yield attempt
        browser.close()
