"""Browsers and pages that wait for what is slow."""

from playwright.sync_api import Browser, BrowserContext, Playwright

from tests.browser.chromium import FLAGS
from tests.browser.serving import PATIENCE_MS


def launch(driver: Playwright, path: str, *flags: str) -> Browser:
    """Start a browser."""
    return driver.chromium.launch(executable_path=path, args=[*FLAGS, *flags], timeout=PATIENCE_MS)


def new_context(browser: Browser, **options: object) -> BrowserContext:
    """Return a new context of a browser."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    return context
