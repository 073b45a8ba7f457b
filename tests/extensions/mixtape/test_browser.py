"""A mix in the browser: whole songs, fades on the beat, and a cue sheet."""

import re
from collections.abc import Iterator

import pytest
import soundfile
from playwright.sync_api import expect

from musicsim.explorer.refresh.refresh import refresh
from tests.browser.actions import APP, IDLE, choose, rerun, rows, visit
from tests.browser.serving import serve
from tests.extensions.mixtape.loops import LEFT, RATE, loop
from tests.sounds import open_library


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    """Serve a library of three drum loops with similar tempos."""
    folder = tmp_path_factory.mktemp("loops")
    (folder / "music").mkdir()
    for i, tempo in enumerate((118, 122, 120)):
        soundfile.write(folder / "music" / f"{i}.flac", loop(tempo, 21, channel=LEFT, seed=i), RATE)
    with open_library(folder / "library") as library:
        library.add(folder / "music", n_workers=1)
        refresh(library)
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(folder / "library")}) as address:
        yield address


def test_mix_fades_on_beat_and_has_cue_sheet(page, address, tmp_path):
    visit(page, address, "playlist")
    page.get_by_role("button", name="Generate").click()
    expect(rows(page)).to_have_count(3)
    page.get_by_text("Mix: the playlist as one audio file").click()
    page.locator(".st-key-playlist_mix_whole").get_by_text("Whole songs").click()
    choose(page, "Fade on the beat", "16 beats")
    with rerun(page):
        choose(page, "Format", "flac")
    page.get_by_role("button", name="Make the mix").click()
    expect(page.get_by_role("button", name="Play the mix")).to_be_visible()
    table = page.get_by_test_id("stTable").last
    expect(table.get_by_text(re.compile(r"^16 beats, 1\d\d beats/min$"))).to_have_count(2)
    page.wait_for_selector(IDLE)
    with page.expect_download() as mix:
        page.get_by_role("button", name="Download the mix").click()
    with page.expect_download() as sheet:
        page.get_by_role("button", name="Download the cue sheet").click()
    mix.value.save_as(tmp_path / "mix.flac")
    # three songs of up to 21 s, with two fades of about 8 s
    assert 40 < soundfile.info(tmp_path / "mix.flac").duration < 48
    text = sheet.value.path().read_text(encoding="utf-8")
    assert f'FILE "{mix.value.suggested_filename}" WAVE' in text
    assert text.count("INDEX 01") == 3
