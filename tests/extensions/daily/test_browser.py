"""The story of daily mixes in the browser: turned on, new files arrive, a mix plays and is saved."""

import re

from playwright.sync_api import expect

from musicsim.extensions.daily.mixes import SOURCE
from musicsim.extensions.daily.options import read_settings
from musicsim.library import Library
from musicsim.library.stores.playlists import OWN_PLAYLISTS
from tests.browser.actions import IDLE, play_slowly, player_plays, visit
from tests.sounds import write_song
from tests.waiting import until


def titles_of(library):
    return {song.title for song in library.songs()}


def test_new_files_and_mixes_arrive_by_themselves(page, address, home):
    with Library.open(home / "library") as library:
        folder = home / "more music"
        write_song(folder / "first.flac", "tones", seed=7, seconds=20, title="First")
        library.files.add_roots([folder])
        play_slowly(page)
        visit(page, address, "playlist")
        expect(page.get_by_text("Mixes of about an hour")).to_be_visible()
        assert "First" not in titles_of(library), "it is off by default"
        page.locator(".st-key-daily_automatic").get_by_text("New mixes every day").click()
        until(lambda: read_settings(library).automatic)
        visit(page, address, "library", "?section=folders")
        # by its name, because the page may still show only the folder that was there before
        page.locator("[class*=st-key-daily_watch_][class*=more-music]").locator("label").first.click()
        until(lambda: read_settings(library).watches(folder))
        until(lambda: "First" in titles_of(library))
        until(lambda: library.playlists(source=SOURCE))
        mixes = library.playlists(source=SOURCE)
        visit(page, address, "playlist")
        main = page.get_by_test_id("stMain")
        name = mixes[0].name.removeprefix("Daily mix: ")
        expect(main.get_by_role("button", name=re.compile(f"^{re.escape(name)}$", re.IGNORECASE))).to_be_visible()
        page.wait_for_selector(IDLE)
        main.get_by_role("button", name="Options of").first.click()
        page.get_by_role("menuitem", name="Save a copy").click()
        until(lambda: library.playlists(source=OWN_PLAYLISTS))
        assert library.playlists(source=OWN_PLAYLISTS)[0].song_ids == mixes[0].song_ids
        page.wait_for_selector(IDLE)
        main.get_by_role("button", name=re.compile("^Play “")).first.click()
        player_plays(page, mixes[0].song_ids[0])
        page.wait_for_selector(IDLE)
        main.get_by_role("button", name="Options", exact=True).click()
        page.get_by_role("button", name="Return to the day before").click()
        until(lambda: not library.playlists(source=SOURCE))
