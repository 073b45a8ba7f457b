"""Browsers and pages that wait for what is slow."""

import os

from playwright.sync_api import Browser, BrowserContext, Playwright

from tests.browser.chromium import FLAGS
from tests.browser.serving import PATIENCE_MS

# Holds some messages up to two seconds, as a busy machine does. The order stays. It finds tests that do not wait.
_LATE = """
const later = () => new Promise(done => setTimeout(done, Math.random() < 0.03 ? 2000 * Math.random() : 0));
window.WebSocket = class extends WebSocket {
  received = Promise.resolve();
  sent = Promise.resolve();
  constructor(...args) {
    super(...args);
    this.addEventListener("message", event => {
      if (!event.isTrusted) return;
      event.stopImmediatePropagation();
      const copy = new MessageEvent("message", { data: event.data, origin: event.origin });
      this.received = this.received.then(later).then(() => this.dispatchEvent(copy));
    });
  }
  send(data) {
    this.sent = this.sent.then(later).then(() => super.send(data));
  }
};
const { fetch } = window;
window.fetch = (...args) => later().then(() => fetch(...args));
"""


def launch(driver: Playwright, path: str, *flags: str) -> Browser:
    """Start a browser."""
    return driver.chromium.launch(executable_path=path, args=[*FLAGS, *flags], timeout=PATIENCE_MS)


def new_context(browser: Browser, **options: object) -> BrowserContext:
    """Return a new context of a browser."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    if os.environ.get("MUSICSIM_LATE_MESSAGES"):
        context.add_init_script(_LATE)
    return context
