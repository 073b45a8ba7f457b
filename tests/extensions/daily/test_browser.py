"""The story of daily mixes in the browser: turned on, new files arrive, a mix plays and is saved."""

import re

from playwright.sync_api import expect

from musicsim.extensions.daily.mixes import SOURCE
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
        page.get_by_role("button", name="More options").click()
        page.get_by_role("button", name="Daily mixes").click()
        expect(page.get_by_text("There are no daily mixes yet.")).to_be_visible()
        assert "First" not in titles_of(library), "it is off by default"
        page.locator(".st-key-daily_automatic").get_by_text("A new mix every day").click()
        until(lambda: "First" in titles_of(library))
        until(lambda: library.playlists(source=SOURCE))
        mixes = library.playlists(source=SOURCE)
        main = page.get_by_test_id("stMain")
        expect(main.get_by_text(mixes[0].name)).to_be_visible()
        expect(main.get_by_text(re.compile("^Last run"))).to_be_visible()
        page.wait_for_selector(IDLE)
        main.get_by_role("button", name="Save a copy").first.click()
        until(lambda: library.playlists(source=OWN_PLAYLISTS))
        assert library.playlists(source=OWN_PLAYLISTS)[0].song_ids == mixes[0].song_ids
        page.wait_for_selector(IDLE)
        main.get_by_role("button", name="Play", exact=True).first.click()
        player_plays(page, mixes[0].song_ids[0])
        page.wait_for_selector(IDLE)
        main.get_by_role("button", name="Undo", exact=True).click()
        expect(page.get_by_text("There are no daily mixes yet.")).to_be_visible()
        assert library.playlists(source=SOURCE) == []
