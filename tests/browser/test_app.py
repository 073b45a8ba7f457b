"""The main tasks in a real Chromium: look, search by example, generate a playlist, add a folder, listen."""

import http.client
import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile
from playwright.sync_api import Route, expect

from musicsim.explorer.refresh.refresh import refresh
from musicsim.library import Library
from tests.browser.actions import (
    IDLE,
    PAGES,
    choose,
    click_song,
    color_by,
    expect_rows,
    hindrances,
    map_range,
    marked,
    names_on_map,
    nearest_rows,
    outline,
    play_slowly,
    player_plays,
    row_action,
    row_ids,
    rows,
    send_sound,
    show_tab,
    songs_of,
    switch,
    visit,
    wait_for_map,
    wait_for_mark,
    zoom,
)
from tests.browser.patient import launch, new_context
from tests.halts import halt_first_job
from tests.shared import FORMATS, SHARED, needs_recordings
from tests.sounds import open_library, write_collection, write_song
from tests.waiting import until

STAR = "star"


@pytest.mark.story
def test_map_renders_and_click_plays_song(page, address, home):
    play_slowly(page)
    visit(page, address)
    plot = wait_for_map(page)
    assert sorted(names_on_map(plot)) == ["Genre clicks:4", "Genre noise:4", "Genre tones:4"]
    song = songs_of(home)[6]
    click_song(page, plot, song.id)
    player = player_plays(page, song.id)
    expect(page.get_by_role("heading", name=song.title)).to_be_visible()
    expect(rows(page)).to_have_count(11)  # the nearest songs, then the walk
    assert song.id not in row_ids(page)
    page.wait_for_function("() => +document.querySelector('[data-testid=player-audio]').currentTime > 0")
    expect(player).to_have_attribute("data-queue-length", "12")


def test_playing_neighbor_continues_with_queue(page, address, home):
    song = songs_of(home)[0]
    play_slowly(page)
    visit(page, address, query=f"?song={song.id}")
    expect(rows(page)).to_have_count(11)
    ids = row_ids(page)
    rows(page).nth(1).get_by_role("button", name=re.compile("^Play")).click()
    player = player_plays(page, ids[1])
    expect(player).to_have_attribute("data-queue-length", "12")
    page.get_by_test_id("player-next").click()
    player_plays(page, ids[2])
    expect(page.locator(f"li[data-song-id='{ids[2]}']")).to_have_attribute("aria-current", "true")


def test_typing_title_finds_and_marks_song(page, address, home):
    play_slowly(page)
    visit(page, address)
    wait_for_map(page)
    box = page.get_by_role("combobox", name="Search")
    box.fill("noise 3")
    page.get_by_role("option", name=re.compile("Song noise 3")).click()
    expect(page.get_by_role("heading", name="Song noise 3")).to_be_visible()
    wait_for_mark(page, wait_for_map(page), "chosen")
    player_plays(page)
    expect(page.get_by_test_id("player-title")).to_have_text("Song noise 3")


def test_typing_artist_marks_all_their_songs(page, address):
    visit(page, address)
    wait_for_map(page)
    page.get_by_role("combobox", name="Search").fill("Artist tones")
    page.get_by_role("option", name=re.compile("Artist tones artist, 4 songs")).click()
    player_plays(page)
    marked(page, 4).click()
    page.get_by_role("button", name="Play them").click()
    expect(page.get_by_test_id("player")).to_have_attribute("data-queue-length", "4")


def test_search_box_works_with_keyboard(page, address):
    visit(page, address)
    wait_for_map(page)
    box = page.get_by_role("combobox", name="Search")
    options = page.locator(f"[id='{box.get_attribute('aria-controls')}']").get_by_role("option")
    page.keyboard.press("/")
    expect(box).to_be_focused()
    page.keyboard.type("song noise")
    expect(options).to_have_count(5)  # those of the last letter, not of an earlier one
    expect(options).to_contain_text(["noise"] * 5)
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    expect(box).to_have_attribute("aria-activedescendant", options.nth(1).get_attribute("id"))
    second = options.nth(1).get_attribute("title").splitlines()[0]
    # a song found later comes first: the mark stays on its song
    page.get_by_test_id("finder").evaluate(
        "({finder}) => finder.take(finder.found, [finder.matches.at(-1), ...finder.matches.slice(0, -1)], [])"
    )
    expect(options.nth(2)).to_have_attribute("title", re.compile(f"^{second}"))
    expect(options.nth(2)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(options.first).to_be_hidden()
    expect(box).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowDown")
    expect(options.first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=second)).to_be_visible()
    expect(box).to_have_value("")
    page.keyboard.type("nowhere to be found")
    expect(page.get_by_text("Nothing matches.")).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    expect(box).to_have_value("")
    page.keyboard.type("song tones 2")
    page.keyboard.press("Enter")  # before anything can have been found
    expect(page.get_by_role("heading", name="Song tones 2")).to_be_visible()


def test_map_keeps_zoom_when_song_is_chosen(page, address, home):
    visit(page, address)
    plot = wait_for_map(page)
    seen = zoom(page, plot)
    song = songs_of(home)[2]
    page.get_by_role("combobox", name="Search").fill(song.title)
    page.get_by_role("option", name=re.compile(song.title)).click()
    expect(page.get_by_role("heading", name=song.title)).to_be_visible()
    wait_for_mark(page, plot, "chosen")
    assert map_range(plot) == seen


def test_lasso_around_all_songs_marks_all(page, address):
    visit(page, address)
    plot = wait_for_map(page)
    outline(page, plot, [(0.01, 0.01), (0.99, 0.01), (0.99, 0.99), (0.01, 0.99)])
    expect(marked(page, 12)).to_be_visible()
    wait_for_mark(page, plot, "found", 12)


def test_map_color_can_be_changed(page, address):
    visit(page, address)
    drawn = wait_for_map(page)
    for by in ("artist", "folder", "year", "cluster"):
        color_by(page, drawn, by)
        counts = drawn.evaluate("({map}) => map.colors.entries.map(e => e.n_songs)")
        assert sum(counts) == 12


@pytest.mark.story
def test_dropped_mp3_gives_results_and_star_on_map(page, address, home, tmp_path):
    data = write_song(tmp_path / "mine.mp3", "noise", seed=321, seconds=6).read_bytes()
    visit(page, address, "listen")
    expect(page.get_by_role("button", name="Add sound")).to_be_visible()
    page.wait_for_selector(IDLE)
    transfer = page.evaluate_handle(
        """bytes => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(bytes)], 'mine.mp3', {type: 'audio/mpeg'}));
            return transfer;
        }""",
        list(data),
    )
    area = page.get_by_text("Drop a sound file to hear similar songs")

    def drag() -> bool:
        """Send one event, as a browser does all the time; the page may not be ready for the first."""
        page.get_by_test_id("stMain").dispatch_event("dragover", {"dataTransfer": transfer})
        return area.is_visible()

    until(drag)
    page.get_by_test_id("stMain").dispatch_event("drop", {"dataTransfer": transfer})
    expect(page.get_by_role("heading", name="mine.mp3")).to_be_visible()
    expect(page.get_by_text("Drop a sound file to hear similar songs")).to_have_count(0)
    expect(rows(page)).to_have_count(12)
    by_id = {song.id: song for song in songs_of(home)}
    assert [by_id[i].artist for i in row_ids(page)[:2]] == ["Artist noise"] * 2
    until(lambda: f"{STAR}:1" in names_on_map(wait_for_map(page)))
    assert len(songs_of(home)) == 12, "a query joins the collection only when asked"
    page.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Play", exact=True).click()
    player_plays(page)
    expect(page.get_by_test_id("player-title")).to_have_text("mine.mp3")
    expect(page.get_by_test_id("player-thumb-up")).to_be_disabled()
    expect(page.get_by_test_id("stAudio")).to_have_count(0)
    sound = page.get_by_test_id("player-audio").element_handle()
    page.wait_for_function("a => Math.abs(a.duration - 6) < 0.2", arg=sound)
    sound.evaluate("a => { a.currentTime = 4; }")
    page.wait_for_function("a => a.currentTime > 4 && !a.seeking", arg=sound)
    rows(page).first.get_by_role("button", name=re.compile("^Play")).click()
    player_plays(page, row_ids(page)[0])


def test_broken_upload_gives_clear_error_and_next_works(page, address, tmp_path):
    (tmp_path / "broken.mp3").write_text("no music")
    visit(page, address, "listen")
    send_sound(page, tmp_path / "broken.mp3")
    expect(page.get_by_role("status").filter(has_text="broken.mp3")).to_be_visible()
    expect(page.get_by_role("heading", name="Start here")).to_be_visible()
    send_sound(page, write_song(tmp_path / "good.wav", "tones", seed=5))
    expect(page.get_by_role("heading", name="good.wav")).to_be_visible()


def test_upload_shows_position_in_queue(page, address, home, tmp_path):
    soundfile.write(tmp_path / "long.flac", np.zeros(10 * 3600 * 8000, np.int16), 8000)
    host, port = re.search(r"//(.+):(\d+)", address).groups()
    others = [http.client.HTTPConnection(host, int(port)) for _ in range(4)]
    visit(page, address, "listen")
    try:
        for other in others:
            body = (tmp_path / "long.flac").read_bytes()
            other.request("POST", "/api/similar?minutes=600", body, {"Content-Type": "audio/flac"})
        size = len(body)
        until(lambda: sum(path.stat().st_size == size for path in (home / "library/scratch").rglob("upload")) == 4)
        line, numbers = page.get_by_text("ahead of yours"), itertools.count()

        def is_behind_others() -> bool:
            """Send a new file; the others may still be on their way into the line."""
            send_sound(page, write_song(tmp_path / "good.wav", "tones", seed=next(numbers)))
            expect(line.or_(page.get_by_role("heading", name="good.wav")).first).to_be_visible()
            return line.is_visible() and "4 files" in line.inner_text()

        until(is_behind_others)
        others.pop().close()
        expect(page.get_by_text("In line: 3 files ahead of yours")).to_be_visible()
    finally:
        for other in others:
            other.close()
    expect(page.get_by_role("heading", name="good.wav")).to_be_visible()
    expect(page.get_by_text("ahead of yours")).to_have_count(0)


def test_microphone_recording_gives_results(playwright_driver, chromium_path, address):
    fake = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
    browser = launch(playwright_driver, chromium_path, *fake)
    try:
        page = new_context(browser, permissions=["microphone"]).new_page()
        visit(page, address, "listen")
        page.get_by_role("button", name="Add sound").click()
        page.get_by_role("button", name="Record").click()
        expect(page.get_by_role("timer")).to_have_text("0:02")
        page.get_by_role("button", name="Stop and search").click()
        expect(page.get_by_role("heading", name="your recording")).to_be_visible()
        expect(rows(page)).to_have_count(12)
    finally:
        browser.close()


def test_thumbs_rerank_results_undo_and_save(page, address, home):
    song = songs_of(home)[0]
    visit(page, address, "listen", f"?song={song.id}")
    expect(rows(page)).to_have_count(11)
    before = row_ids(page)
    row_action(page, rows(page).nth(5), re.compile("” fits$"))
    pressed = page.locator("[data-icon=like][aria-pressed=true]")
    expect(pressed).to_have_count(1)
    expect(page.get_by_text(re.compile("rose from position|another order|did not change"))).to_be_visible()
    first = page.locator(f"li[data-song-id='{before[0]}']")
    first.get_by_role("button", name=re.compile("^Actions for")).click()
    first.get_by_role("button", name=re.compile("does not fit$")).focus()
    page.keyboard.press("Enter")
    expect(first).to_have_count(0)
    with Library.open(home / "library") as library:
        until(lambda: library.judgments.ratings_of(song.id) == {before[5]: 1, before[0]: -1})
        other = page.context.new_page()  # without the titles of an earlier list
        visit(other, address, "listen", f"?song={song.id}")
        left_out = next(one.title for one in songs_of(home) if one.id == before[0])
        expect(other.get_by_role("button", name=f"Remove: without {left_out}", exact=True)).to_be_visible()
        other.close()
        page.reload()
        expect(pressed).to_have_count(1)
        undo = page.get_by_role("button", name="Undo", exact=True)
        undo.click()
        expect(first).to_have_count(1)
        until(lambda: library.judgments.ratings_of(song.id) == {before[5]: 1})
        undo.click()
        expect(pressed).to_have_count(0)
        expect_rows(page, before)
        until(lambda: library.judgments.ratings_of(song.id) == {})


def test_filters_apply_immediately(page, address, home):
    song, bars = songs_of(home)[0], nearest_rows(page)
    visit(page, address, "listen", f"?song={song.id}")
    expect(rows(page)).to_have_count(11)
    expect(bars).to_have_count(6)  # two of each of the three artists, then the walk
    page.get_by_role("button", name="Filters").click()
    page.get_by_text("Order and number").click()
    page.get_by_role("spinbutton", name=re.compile("Max. songs per artist")).fill("0")
    page.keyboard.press("Enter")
    expect(bars).to_have_count(10)
    page.get_by_role("spinbutton", name="Songs", exact=True).fill("20")
    page.keyboard.press("Enter")
    expect(bars).to_have_count(11)
    page.get_by_role("combobox", name="Genres", exact=True).fill("Genre noise")
    page.get_by_role("dialog", name="Filters").get_by_role("option", name="Genre noise").click()
    expect(rows(page)).to_have_count(4)


def test_words_examples_and_part_can_be_added_and_removed(page, address, home):
    song, other = songs_of(home)[0], songs_of(home)[-1]
    visit(page, address, "listen", f"?song={song.id}")
    expect(rows(page)).to_have_count(11)
    alone = row_ids(page)
    page.get_by_role("button", name="Filters").click()
    page.get_by_role("textbox", name="Words").fill("genre nosie")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    chip = page.get_by_role("button", name=re.compile("^Remove: .*Genre noise"))
    expect(chip).to_be_visible()
    expect(rows(page)).to_have_count(4)
    assert {s.artist for s in songs_of(home) if s.id in row_ids(page)} == {"Artist noise"}
    chip.click()
    expect_rows(page, alone)
    menu = page.get_by_role("button", name="More about this song")
    menu.click()
    page.get_by_role("combobox", name="Also like…").press_sequentially(other.title)
    page.get_by_role("option", name=other.title).first.click()
    example = page.get_by_role("button", name=f"Remove: also like {other.title}")
    expect(example).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("combobox", name="Also like…")).to_be_hidden()
    example.click()
    expect_rows(page, alone)
    menu.click()
    wave = page.locator(".musicsim-part canvas")
    wave.scroll_into_view_if_needed()
    at = wave.bounding_box()
    page.mouse.move(at["x"] + 0.25 * at["width"], at["y"] + 10)
    page.mouse.down()
    page.mouse.move(at["x"] + 0.75 * at["width"], at["y"] + 12, steps=4)
    page.mouse.up()
    expect(page.get_by_role("button", name="Remove: only 0:05 to 0:15")).to_be_visible()  # of 20 s
    page.mouse.move(at["x"] + 0.75 * at["width"], at["y"] + 10)  # the end, which can be dragged alone
    page.mouse.down()
    page.mouse.move(at["x"] + 0.5 * at["width"], at["y"] + 12, steps=4)
    page.mouse.up()
    part = page.get_by_role("button", name="Remove: only 0:05 to 0:10")
    expect(part).to_be_visible()
    page.keyboard.press("Escape")
    expect(wave).to_be_hidden()
    part.click()
    expect_rows(page, alone)
    menu.click()
    expect(page.get_by_text("Drag an end to search with only part of the song.")).to_be_visible()


@pytest.mark.story
def test_folder_with_broken_files_is_added_with_progress(page, address, home, tmp_path):
    folder = write_collection(tmp_path / "new music", n_songs=8, seconds=60)
    (folder / "broken.mp3").write_text("no music")
    (folder / "empty.flac").touch()
    halt_first_job(home / "adding")
    visit(page, address, "library", "?library=adding")
    expect(page.get_by_text("No songs yet")).to_be_visible()
    page.get_by_label("Music folder").fill(str(folder))
    page.get_by_role("button", name="Add the folder").click()
    expect(page.get_by_text(re.compile(r"\d+ of 26 files.* paused")).first).to_be_visible()
    resume = page.get_by_role("button", name="Resume")
    resume.click()
    expect(resume).to_have_count(0)
    page.close()  # the job continues without a page
    again = page.context.new_page()
    visit(again, address, "library", "?library=adding")
    expect(again.get_by_text("Adding songs: done. 24 songs added, 2 files failed.")).to_be_visible()
    visit(again, address, "library", "?library=adding")
    expect(again.get_by_text("24 songs · 2 to tidy up")).to_be_visible()
    show_tab(again, "Tidy up")
    expect(again.get_by_text("Failed files: 2")).to_be_visible()
    reasons = {f.path.name: f.reason for f in _failures(home / "adding")}
    assert set(reasons) == {"broken.mp3", "empty.flac"}
    again.wait_for_selector(IDLE)  # until then, the table of songs may still be on the page
    expect(again.get_by_test_id("stDataFrame")).to_have_count(1)
    expect(again.get_by_test_id("stDataFrame")).to_be_visible()
    switch(again, "listen")
    wait_for_map(again)
    assert again.get_by_test_id("stException").count() == 0


def _failures(folder: Path):
    with Library.open(folder) as library:
        return library.files.failures()


@pytest.mark.story
def test_player_keeps_playing_across_pages(page, address, home):
    song = songs_of(home)[0]
    play_slowly(page)
    visit(page, address, query=f"?song={song.id}")
    page.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Play", exact=True).click()
    player_plays(page, song.id)
    audio = page.get_by_test_id("player-audio")
    audio.evaluate("a => { a.mark = 'the same element' }")
    position = 0.0
    for name in ("playlist", "library", "listen"):
        switch(page, name)
        player_plays(page, song.id)
        assert audio.evaluate("a => a.mark") == "the same element"
        assert not audio.evaluate("a => a.paused")
        # on a busy machine the sound starts a moment after "playing"
        page.wait_for_function("([a, before]) => a.currentTime > before", arg=[audio.element_handle(), position])
        position = audio.evaluate("a => a.currentTime")


def test_radio_continues_after_queue_ends(page, address, home):
    by_id = {song.id: song for song in songs_of(home)}
    play_slowly(page)
    visit(page, address)
    wait_for_map(page)
    page.get_by_role("combobox", name="Search").fill("Artist tones")
    page.get_by_role("option", name=re.compile("Artist tones artist, 4 songs")).click()
    marked(page, 4).click()
    page.get_by_role("button", name="Play them").click()
    player = page.get_by_test_id("player")
    expect(player).to_have_attribute("data-queue-length", "4")
    assert page.get_by_test_id("player-radio").is_checked(), "music goes on unless one says otherwise"
    page.evaluate("() => { const p = window[Symbol.for('musicsim.player')]; p.jump(p.tracks.at(-1).uid); }")
    expect(player).to_have_attribute("data-queue-length", "9")  # songs of 20 s: more are requested at once
    played = page.evaluate("() => window[Symbol.for('musicsim.player')].tracks.map(t => t.song_id)")
    assert len(set(played)) == 9
    page.get_by_test_id("player-next").click()
    player_plays(page, played[4])
    expect(page.get_by_test_id("player-artist")).to_have_text(re.compile(f"^{by_id[played[4]].artist}( · .+)?$"))
    page.route("**/radio?*", lambda route: route.fulfill(json=[]))
    page.evaluate("() => { const p = window[Symbol.for('musicsim.player')]; p.jump(p.tracks.at(-1).uid); }")
    player_plays(page, played[-1])
    expect(page.get_by_test_id("player-message")).to_have_text(re.compile("^The music ends with this song: "))


def test_covers_are_shown_with_songs(page, address, home):
    """Covers are in the player, next to the name of the song, and on the buttons of a list."""
    songs = songs_of(home)
    failed: list[str] = []
    page.on("console", lambda message: failed.append(message.text) if "cover" in str(message.location) else None)
    with_cover = next(song for song in songs if song.artist == "Artist tones")
    play_slowly(page)
    visit(page, address, "listen", f"?song={with_cover.id}")
    main = page.get_by_test_id("stMainBlockContainer")
    main.get_by_role("button", name="Play", exact=True).click()
    player_plays(page, with_cover.id)
    expect(page.get_by_test_id("player-cover")).to_have_css(
        "background-image", re.compile(f"songs/{with_cover.id}/cover")
    )
    expect(main.locator(".art")).to_have_css("background-image", re.compile(f"songs/{with_cover.id}/cover"))
    for row in rows(page).all():
        row.scroll_into_view_if_needed()
        expect(row.locator(".covered")).to_have_count(1)  # drawn from sound if the file has none
        assert row.locator(".play").bounding_box()["height"] == pytest.approx(36.8, abs=1)
    assert not failed


def test_thumbs_are_stored_and_title_opens_song(page, address, home):
    song = songs_of(home)[3]
    play_slowly(page)
    visit(page, address, query=f"?song={song.id}")
    page.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Play", exact=True).click()
    player_plays(page, song.id)
    page.get_by_test_id("player-thumb-up").click()
    with Library.open(home / "library") as library:
        until(lambda: library.feedback() == {song.id: 1})
    switch(page, "library")
    page.get_by_test_id("player-title").click()
    expect(page.get_by_role("heading", name="Listen", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name=song.title)).to_be_visible()


def test_title_of_song_comes_before_its_queue(page, address, home):
    """The queue can take seconds in a large library; the song plays from the first click on."""
    song = songs_of(home)[3]
    play_slowly(page)
    page.route("**/api/queue?*", lambda route: None)  # never answered
    visit(page, address, query=f"?song={song.id}")
    page.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Play", exact=True).click()
    player_plays(page, song.id)
    expect(page.get_by_test_id("player-title")).to_have_text(song.title)
    page.unroute_all(behavior="ignoreErrors")


def test_late_description_is_not_given_to_songs_of_another_library(page, address, home):
    """The ids of songs start with 1 in every library."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/tracks?library=library", hold)
    visit(page, address)
    wait_for_map(page)
    play = "([song, library]) => window[Symbol.for('musicsim.player')].playSongs([song], 0, {library, titles: []})"
    page.evaluate(play, [1, "library"])
    until(lambda: page.wait_for_timeout(20) or held)
    page.route("**/api/tracks?library=single", lambda route: None)  # never answered
    page.evaluate(play, [1, "single"])
    with page.expect_response("**/api/tracks?library=library"):
        held[0].continue_()
    page.evaluate(
        "() => fetch('api/libraries').then((answer) => answer.json())"
    )  # the player has read its answer by then
    expect(page.get_by_test_id("player")).to_have_attribute("data-song-id", "1")
    assert page.evaluate("() => window[Symbol.for('musicsim.player')].track.title") == ""
    page.unroute_all(behavior="ignoreErrors")


def test_library_is_switched_in_sidebar(page, address):
    visit(page, address)
    wait_for_map(page)
    page.get_by_test_id("stSidebar").get_by_role("button", name="library · Sound").click()
    choose(page, "Library", re.compile("empty"))
    expect(page.get_by_text("No songs yet")).to_be_visible()
    expect(page).to_have_url(re.compile("library=empty"))


def test_song_without_others_can_be_queued_but_not_compared(page, address):
    visit(page, address, "listen", "?library=single")
    row = page.get_by_test_id("song-row")
    expect(row.get_by_role("button", name="No songs to compare with yet.")).to_be_disabled()
    expect(row.get_by_role("button", name="to the queue")).to_be_enabled()


@pytest.mark.parametrize("library", ["empty", "single", "library"])
@pytest.mark.parametrize("name", PAGES)
def test_pages_show_no_errors(page, address, name, library):
    visit(page, address, name, f"?library={library}")
    if library == "empty":
        expect(page.get_by_text("No songs yet").first).to_be_visible()
    page.wait_for_selector(IDLE)
    assert page.get_by_test_id("stException").count() == 0
    assert page.get_by_test_id("stAlert").filter(has_text="error").count() == 0
    for scheme in ("light", "dark") if library == "library" else ():
        page.emulate_media(color_scheme=scheme)
        until(lambda: not hindrances(page))  # unfinished parts of the page are paler


@needs_recordings
def test_real_recordings_work_from_scan_to_playlist(page, address, home):
    open_library(home / "real").close()
    visit(page, address, "library", "?library=real")
    page.get_by_label("Music folder").fill(str(SHARED / "audio" / "originals"))
    page.get_by_role("button", name="Add the folder").click()
    expect(page.get_by_text(re.compile("Adding songs: done"))).to_be_visible()
    songs = songs_of(home, "real")
    assert len(songs) == 10
    fairy = next(s for s in songs if "Sugar Plum" in s.title)
    switch(page, "listen")
    for ending in ("wma", "m4a", "opus"):
        (path,) = (p for p in FORMATS if p.suffix == f".{ending}" and "alac" not in p.name)
        send_sound(page, path)
        expect(page.get_by_text(path.name).first).to_be_visible()
        # ten seconds of the song in another encoding: the song itself is nearest
        expect(rows(page).first).to_have_attribute("data-song-id", str(fairy.id))
        until(lambda: f"{STAR}:1" in names_on_map(wait_for_map(page)))
    switch(page, "playlist")
    page.get_by_role("button", name="Generate").click()
    expect(page.get_by_test_id("transition").first).to_be_visible()
    page.get_by_role("button", name="Play through").click()
    player_plays(page)


def test_hostile_title_is_shown_as_text(page, address, home, tmp_path):
    title = "A$AP *live* [2](http://x) ![](http://y/z.png) :smile: <b>#1</b> $5_a_b"
    with open_library(home / "hostile") as library:
        for kind in ("tones", "noise"):
            library.add(write_song(tmp_path / f"{kind}.flac", kind, title=title), n_workers=1)
        refresh(library)
        song = library.songs()[0]
    visit(page, address, query=f"?library=hostile&song={song.id}")
    expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    assert page.locator("[data-testid=stMarkdownContainer] img, .katex").count() == 0
