"""Find a Chromium for the browser tests, or install one; run by ``make test``, used by the fixtures."""

import os
import shutil
import subprocess
import sys

NAMES = (
    "chromium-headless-shell",  # a third less work per page
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find() -> str | None:
    """Return the path of a Chromium: ``MUSICSIM_CHROMIUM``, one on the path, or playwright's own."""
    named = os.environ.get("MUSICSIM_CHROMIUM")
    if named:
        return named
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if os.path.exists(own) else None


def install() -> None:
    """Install Debian's headless Chromium with the system's packages, else playwright's."""
    if shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", NAMES[0]], check=False)
    if find() is None:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


if __name__ == "__main__":
    if find() is None:
        install()
    found = find()
    print(f"browser tests use {found}" if found else "no Chromium: the browser tests will be skipped")  # noqa: T201
    if found is None and os.environ.get("CI"):
        sys.exit("with CI set, a missing browser is a failure: install chromium, or set MUSICSIM_CHROMIUM.")
