"""Find a Chromium for the browser tests, or install one; run by ``make test``, used by the fixtures."""

import os
import shutil
import subprocess
import sys
from functools import cache

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


PACKAGES = (NAMES[0], "libatomic1")
"""Debian's packages for browser tests; Playwright's Node needs the second."""


@cache
def driver_problem() -> str | None:
    """Return why Playwright's Node does not start, such as a missing library; None if it starts."""
    started = subprocess.run(
        [sys.executable, "-m", "playwright", "--version"], capture_output=True, text=True, check=False
    )
    if started.returncode == 0:
        return None
    return next((line for line in started.stderr.splitlines() if "error" in line.lower()), "it ended at once")


def find() -> str | None:
    """Return the path of a Chromium: ``MUSICSIM_CHROMIUM``, one on the path, or playwright's own; None without one."""
    if driver_problem():
        return None
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


def describe_lack() -> str:
    """Return a sentence about what browser tests lack, and how to get it."""
    problem = driver_problem()
    lack = f"Playwright does not start ({problem})" if problem else "there is no Chromium"
    return f"{lack}: install the packages {' and '.join(PACKAGES)}, or set MUSICSIM_CHROMIUM to the path of a Chromium"


def install() -> None:
    """Install Debian's headless Chromium with the system's packages, else playwright's."""
    if shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES], check=False)
        driver_problem.cache_clear()
    if find() is None and not driver_problem():
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


if __name__ == "__main__":
    if find() is None:
        install()
    found = find()
    print(f"browser tests use {found}" if found else f"Browser tests are skipped, because {describe_lack()}.")  # noqa: T201
    if found is None and os.environ.get("CI"):
        sys.exit(f"With CI set, a missing browser is a failure: {describe_lack()}.")
