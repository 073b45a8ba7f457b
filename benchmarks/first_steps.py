"""Clicks and seconds from opening the app to three goals, in a real browser.

The goals are to hear a song similar to one that the user likes, to save a playlist, and to use a model learned from
the library. Each starts with the app open on *Listen* and ends when a similar song plays, the list is saved, or the
model is active. *clicks* counts clicks, *typed* counts texts. *seconds* is the program's time: that of Chromium and the
app, without a person's time to read and aim. The library is the demo, composed once, or ``--library``, which is copied.
The usual playlist is an hour long. In the demo, whose songs are short, it has 12 songs.
"""

import re
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, Page, expect, sync_playwright

from benchmarks.libraries import demo_library
from benchmarks.support.app import FLAGS, PAGES, chromium, serve_app
from benchmarks.support.report import Claim, Progress, Row, Settings, at_most, main
from musicsim.library import Library

_APP = Path(__file__).parents[1] / "app.py"
_PATIENCE_S = 900
_MAX_CLICKS = {"hear a similar song": 3, "save a playlist": 4, "use a trained model": 4}


class _User:
    """Counts what a person does on a page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.n_clicks = self.n_typed = 0

    def click(self, target: Locator) -> None:
        target.click()
        self.n_clicks += 1

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)
        self.n_typed += 1

    def open(self, name: str) -> None:
        self.click(self.page.get_by_test_id("stSidebarNavLink").filter(has_text=PAGES[name]))
        expect(self.page.get_by_role("heading", name=PAGES[name], exact=True)).to_be_visible()


def _hear_a_similar_song(user: _User, title: str) -> None:
    page = user.page
    user.click(page.get_by_role("combobox", name="Search"))
    user.type(title)
    user.click(page.get_by_role("option").filter(has_text=title).first)
    player = page.get_by_test_id("player")
    expect(player).to_have_attribute("data-state", "playing")
    first = player.get_attribute("data-song-id")
    user.click(page.get_by_test_id("player-next"))
    expect(player).not_to_have_attribute("data-song-id", str(first))
    expect(player).to_have_attribute("data-state", "playing")


def _save_a_playlist(user: _User, _title: str) -> None:
    page = user.page
    user.open("playlist")
    user.click(page.get_by_role("button", name="Generate"))
    page.get_by_test_id("song-row").first.wait_for()
    user.click(page.get_by_role("button", name="Save", exact=True))
    user.click(page.get_by_role("button", name="Save in the library"))
    expect(page.get_by_text(re.compile("^Saved as")).first).to_be_visible()


def _use_a_trained_model(user: _User, _title: str) -> None:
    page = user.page
    user.open("train")
    user.click(page.locator(".st-key-train_start button:visible").first)
    use = page.locator("[class*='st-key-verdict_use_'] button:visible").first
    use.wait_for()
    user.click(use)
    active_model = page.get_by_test_id("stSidebar").get_by_test_id("stPopoverButton").first
    expect(active_model).not_to_contain_text("Sound")


_GOALS: dict[str, Callable[[_User, str], None]] = {
    "hear a similar song": _hear_a_similar_song,
    "save a playlist": _save_a_playlist,
    "use a trained model": _use_a_trained_model,
}


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    rows: list[Row] = []
    expect.set_options(timeout=1000 * _PATIENCE_S)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=[*FLAGS, "--autoplay-policy=no-user-gesture-required"]
        )
        named = settings.library
        with Library.open(named, create=False) if named else demo_library(settings.seed, progress) as library:
            songs = library.songs()
            original = library.folder
        copy = Path(shutil.copytree(original, Path(folder) / "library"))
        with serve_app(_APP, copy) as (address, _):
            for goal, reach in _GOALS.items():
                page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
                page.set_default_timeout(1000 * _PATIENCE_S)
                page.goto(address)
                page.get_by_role("combobox", name="Search").wait_for()
                user = _User(page)
                started = time.monotonic()
                reach(user, songs[len(songs) // 2].title)
                seconds = time.monotonic() - started
                rows.append({"goal": goal, "clicks": user.n_clicks, "typed": user.n_typed, "seconds": seconds})
                progress(f"{goal}: {user.n_clicks} clicks, {seconds:.1f} s")
                page.context.close()
        browser.close()
        with Library.open(copy, create=False) as library:
            saved = library.playlists()[-1]
            durations = {song.id: song.duration_s for song in songs}
    minutes = sum(durations[song_id] for song_id in saved.song_ids) / 60
    settings.facts.update(songs=len(songs), minutes_of_playlist=minutes)
    return rows, [at_most(f"{row['goal']}, clicks", row["clicks"], _MAX_CLICKS[row["goal"]]) for row in rows]


if __name__ == "__main__":
    main("first_steps", __doc__.splitlines()[0], run, rivals=("streamlit", "playwright"), takes_library=True)
