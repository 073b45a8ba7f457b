"""The Why dialog in the browser: its waveforms, and passages that play only their seconds."""

import re
from itertools import pairwise

from playwright.sync_api import expect

from tests.browser.actions import (
    IDLE,
    ask,
    passages,
    player_plays,
    rows,
    send_sound,
    songs_of,
    sound,
    visit,
    wait_for_sound,
)
from tests.sounds import write_song


def seconds_of(button) -> tuple[int, int]:
    """Return the start and end of a passage in whole seconds."""
    times = re.findall(r"(\d+):(\d\d)", button.get_attribute("aria-label"))
    first, last = (60 * int(minutes) + int(seconds) for minutes, seconds in times)
    return first, last + 1


def test_passages_of_explained_neighbor_stop_at_their_end(page, address, home):
    song = songs_of(home)[0]
    visit(page, address, "listen", f"?song={song.id}")
    title = rows(page).first.locator(".title").inner_text()
    rows(page).first.get_by_role("button", name=re.compile("^Play")).click()
    player_plays(page)
    dialog = ask(page)
    for words in ("Similarity", "Sources of the similarity", "In common", "Listeners:"):
        expect(dialog.get_by_text(words).first).to_be_visible()
    painted = "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v > 0)"
    for wave in dialog.get_by_test_id("why-wave").all():
        page.wait_for_function(painted, arg=wave.element_handle())
    button = passages(dialog, title).first
    first, last = seconds_of(button)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    wait_for_sound(page, True)
    assert first <= sound(dialog)["at"] <= last
    expect(page.get_by_test_id("player")).to_have_attribute("data-state", "paused")
    wait_for_sound(page, False)  # it ends on its own
    expect(button).to_have_attribute("aria-pressed", "false")
    assert sound(dialog)["at"] <= last + 0.5  # one frame late
    page.keyboard.press("Escape")
    expect(rows(page).first.get_by_role("button", name=re.compile("^Actions for"))).to_be_focused()


def test_keys_control_passage_and_closing_stops_it(page, address, home):
    song = songs_of(home)[5]
    visit(page, address, query=f"?song={song.id}")
    dialog = ask(page, 1)
    button = passages(dialog, song.title).first
    button.press("Enter")
    wait_for_sound(page, True)
    assert sound(dialog)["src"].endswith(f"/songs/{song.id}/audio?library=library")
    button.press("Enter")
    wait_for_sound(page, False)
    expect(button).to_have_attribute("aria-pressed", "false")
    dialog.get_by_role("button", name=re.compile("in both songs$")).first.click()
    wait_for_sound(page, True)
    handle = dialog.get_by_test_id("why-audio").element_handle()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.wait_for_function("a => a.paused", arg=handle)


def test_dialog_stays_when_page_runs_again(page, address, home):
    visit(page, address, query=f"?song={songs_of(home)[4].id}")
    rows(page).first.get_by_role("button", name=re.compile("^Play")).click()
    player_plays(page)
    dialog = ask(page, 1)
    waves = dialog.get_by_test_id("two-waves").element_handle()
    playing = page.get_by_test_id("listen").get_by_role("heading", level=2, include_hidden=True).first
    before = playing.inner_text()
    page.evaluate("window[Symbol.for('musicsim.player')].next()")
    expect(playing).not_to_have_text(before)
    page.wait_for_selector(IDLE)
    assert waves.evaluate("waves => waves.isConnected"), "drawn once"
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.wait_for_selector(IDLE)
    expect(dialog).to_be_hidden()


def test_upload_is_explained_and_played(page, address, tmp_path):
    data = write_song(tmp_path / "mine.mp3", "tones", seed=321, seconds=20).read_bytes()
    visit(page, address, "listen")
    send_sound(page, {"name": "mine.mp3", "mimeType": "audio/mpeg", "buffer": data})
    expect(page.get_by_role("heading", name="mine.mp3")).to_be_visible()
    dialog = ask(page)
    passages(dialog, "mine.mp3").first.click()
    wait_for_sound(page, True)
    assert sound(dialog)["src"].startswith("blob:")


def test_dialog_fits_phone(page, address, home):
    page.set_viewport_size({"width": 380, "height": 800})
    visit(page, address, query=f"?song={songs_of(home)[0].id}")
    dialog = ask(page)
    for part in [*dialog.get_by_test_id("why-wave").all(), *dialog.locator(".flag").all()]:
        box = part.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 380
    flags = [flag.bounding_box() for flag in dialog.locator(".flag").all()]
    lines = {round(box["y"]) for box in flags}
    for line in lines:
        ends = sorted((box["x"], box["x"] + box["width"]) for box in flags if round(box["y"]) == line)
        assert all(stop <= start for (_, stop), (start, _) in pairwise(ends))
