"""A realistic folder in the browser: bad files, a pause, a server that dies, retries, files that move."""

import re
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import soundfile
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as NotClickable

from musicsim.library import Library
from tests.browser.actions import APP, rerun, show_tab, switch, visit, wait_for_map
from tests.browser.serving import serve
from tests.halts import halt_first_job
from tests.sounds import open_library, write_song
from tests.waiting import until

_CLICK_MS = 5000  # a click that does not succeed is tried again


@pytest.fixture
def music(tmp_path) -> Path:
    """Sixty files: fifty songs, eight unreadable files, a jingle and two hours of silence."""
    folder = tmp_path / "music"
    folder.mkdir()
    # seconds of work on any machine: the job can be paused before it has ended
    with soundfile.SoundFile(folder / "0 silence.wav", "w", 8000, 1, subtype="PCM_16") as silence:
        for _ in range(2 * 60):
            silence.write(np.zeros(60 * 8000, np.int16))
    for n in range(50):
        kind = ("tones", "noise", "clicks")[n % 3]
        write_song(folder / f"Artist {n % 10}" / f"song {n:02d}.flac", kind, seed=n, seconds=6, title=f"song {n:02d}")
    bad = folder / "bad"
    bad.mkdir()
    for n in range(3):
        (bad / f"text {n}.mp3").write_text("this is no music\n" * 100)
        (bad / f"empty {n}.ogg").touch()
    for n in range(2):
        (bad / f"cut {n}.flac").write_bytes((folder / "Artist 0/song 00.flac").read_bytes()[:40])
    write_song(bad / "jingle.flac", seed=99, seconds=0.5)
    return folder


def section(page: Page, name: str):
    return page.get_by_test_id("stButtonGroup").get_by_text(name, exact=True)


def counted(page: Page, words: str):
    """Return the line with the library's numbers, once it has these words and the choice below it exists."""
    expect(section(page, "Songs")).to_be_visible()
    return page.get_by_test_id("stCaptionContainer").filter(has_text=words).first


def press(page: Page, name: str) -> None:
    """Click a button once the page is at rest: a click during a redraw is lost."""
    with rerun(page):
        page.get_by_role("button", name=name).first.click()


def press_until(page: Page, name: str, told: str) -> None:
    """Press a button of a view that refreshes each second until the text is shown; a click can be lost."""
    button, words = page.get_by_role("button", name=name, exact=True), page.get_by_text(told)

    def is_told() -> bool:
        if words.count() == 0 and button.count():
            with suppress(NotClickable), rerun(page):  # the job may pause itself, which takes the button away
                button.first.click(timeout=_CLICK_MS)
        return words.count() > 0

    until(is_told)


def songs_by_title(folder: Path) -> dict:
    with Library.open(folder) as library:
        return {song.title: song for song in library.songs()}


def test_folder_with_bad_files_survives_restart_and_move(page, music, tmp_path):
    folder = tmp_path / "library"
    open_library(folder).close()
    halt_first_job(folder, "done", 40)  # it surely rests, even if the button is pressed late
    environment = {"MUSICSIM_LIBRARY": str(folder)}
    with serve(APP, environment=environment) as address:
        visit(page, address, "library")
        page.get_by_label("Music folder").fill(str(music))
        page.get_by_role("button", name="Add the folder").click()
        page.get_by_role("button", name=re.compile("Pause|Resume")).first.wait_for()
        press_until(page, "Pause", "paused")
        paused_at = len(songs_by_title(folder))
    # the server is gone; the job is interrupted, and another server finds it
    with serve(APP, environment=environment) as address:
        visit(page, address, "library")
        expect(page.get_by_text("paused").first).to_be_visible()
        assert len(songs_by_title(folder)) == paused_at
        press_until(page, "Resume", "Adding songs: done. ")
        expect(page.get_by_text(re.compile("Adding songs: done.*8 files failed"))).to_be_visible()
        expect(counted(page, "50 songs · 10 to tidy up")).to_be_visible()

        # one file is repaired, and all failed files are tried again
        shutil.copy(music / "Artist 1/song 01.flac", tmp_path / "mended.flac")
        write_song(tmp_path / "mended.flac", "noise", seed=500, seconds=6, title="mended")
        shutil.move(tmp_path / "mended.flac", music / "bad/cut 0.flac")
        show_tab(page, "Tidy up")
        press(page, "Retry 8")
        expect(page.get_by_text("Adding songs: done. 1 song added, 7 files failed.")).to_be_visible()
        expect(counted(page, "51 songs")).to_be_visible()
        press(page, "Add 2 anyway")
        expect(page.get_by_text("Adding songs: done. 2 songs added.")).to_be_visible()
        expect(counted(page, "53 songs")).to_be_visible()

        # one file is moved, one removed
        before = songs_by_title(folder)
        (music / "elsewhere").mkdir()
        moved = (music / "Artist 2/song 02.flac").rename(music / "elsewhere/renamed.flac")
        aside = (music / "Artist 3/song 03.flac").rename(tmp_path / "aside.flac")
        show_tab(page, "Settings")
        press(page, "Scan all folders again")
        expect(page.get_by_text("Scanning folders: done")).to_be_visible()  # the end of a job closes open lists
        show_tab(page, "Tidy up", "Missing songs")
        expect(counted(page, "Missing songs: 1")).to_be_visible()
        expect(counted(page, "52 songs")).to_be_visible()
        after = songs_by_title(folder)
        assert after["song 02"].id == before["song 02"].id
        assert after["song 02"].path == moved
        assert "song 03" not in after

        # and restored
        aside.rename(music / "Artist 3/song 03.flac")
        press(page, "Scan again")
        expect(counted(page, "Missing songs: 0")).to_be_visible()
        assert songs_by_title(folder)["song 03"].id == before["song 03"].id
        expect(page.get_by_text("Scanning folders: done")).to_be_visible()
        switch(page, "listen")
        wait_for_map(page)


def test_tags_of_many_songs_are_edited_and_reset(page, tmp_path):
    folder = tmp_path / "library"
    with open_library(folder) as library:
        for n in range(3):
            write_song(tmp_path / f"music/{n}.flac", seed=n, seconds=2, title=f"song {n}", genre=f"genre {n}")
        library.add(tmp_path / "music")
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(folder)}) as address:
        visit(page, address, "library")
        table = page.get_by_test_id("stDataFrame").first
        table.locator("canvas").first.wait_for()
        box = table.bounding_box()
        page.mouse.click(box["x"] + 18, box["y"] + 18)  # the box above all rows
        page.get_by_role("button", name="Edit tags").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_label("Genre")).to_have_attribute("placeholder", "several values: unchanged")
        dialog.get_by_label("Genre").fill("soul")
        dialog.get_by_role("button", name="Close").focus()
        with rerun(page):  # as at the end of a job
            page.keyboard.press("r")
        expect(dialog.get_by_label("Genre")).to_have_value("soul")
        dialog.get_by_role("button", name="Save").click()
        expect(dialog).not_to_be_visible()
        assert {s.genre for s in songs_by_title(folder).values()} == {"soul"}
        assert set(songs_by_title(folder)) == {"song 0", "song 1", "song 2"}
        page.get_by_role("button", name="Reset to file tags").click()
        expect(page.get_by_role("button", name="Reset to file tags")).to_have_count(0)
        assert {s.genre for s in songs_by_title(folder).values()} == {"genre 0", "genre 1", "genre 2"}
