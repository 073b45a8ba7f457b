"""Listen: music that does not stop, the page that follows it, and what the player stores."""

import pytest
from playwright.sync_api import expect

from musicsim.library import Library
from musicsim.library.db import schema
from tests.browser.actions import (
    IDLE,
    about_song,
    click_song,
    play_slowly,
    player_plays,
    row_ids,
    rows,
    songs_of,
    visit,
    wait_for_map,
)
from tests.job_process import job_process
from tests.waiting import until

PLAYER = "window[Symbol.for('musicsim.player')]"


def end_song(page) -> None:
    """Go to the last moments of the song that is playing."""
    page.evaluate(f"() => {{ const p = {PLAYER}; p.seek(p.duration - 0.02); }}")


def listen_for(page, seconds: float) -> None:
    """Pause after `seconds` of the song were heard; the page itself pauses, because a busy machine would be late."""
    page.evaluate(
        f"""seconds => new Promise(resolve => {{
          const timer = setInterval(() => {{
            if ({PLAYER}.heard < seconds) return;
            clearInterval(timer);
            {PLAYER}.pause();
            resolve();
          }}, 50);
        }})""",
        seconds,
    )


def test_page_follows_player_from_song_to_song(page, address, home):
    play_slowly(page)
    visit(page, address)
    drawn = wait_for_map(page)
    first, names = songs_of(home)[4], {song.id: song.title for song in songs_of(home)}
    click_song(page, drawn, first.id)
    player_plays(page, first.id)
    expect(rows(page)).to_have_count(11)
    ids = row_ids(page)
    expect(page.get_by_test_id("player")).to_have_attribute("data-queue-length", "12")
    drawn.evaluate("map => { map.mark = 'the same map'; }")
    for song_id in ids[:2]:
        end_song(page)
        player_plays(page, song_id)
        expect(page.get_by_role("heading", name=names[song_id])).to_be_visible()
        expect(page.locator(f"li[data-song-id='{song_id}']")).to_have_attribute("aria-current", "true")
    assert wait_for_map(page).evaluate("map => map.mark") == "the same map"
    assert page.url.endswith(f"song={first.id}"), "the queue still starts from the first song"


def test_chips_and_removals_change_what_plays_next(page, address, home):
    song = songs_of(home)[0]
    play_slowly(page)
    visit(page, address, query=f"?song={song.id}")
    expect(rows(page)).to_have_count(11)
    rows(page).first.get_by_role("button", name="Play").click()
    ids = row_ids(page)
    player_plays(page, ids[0])
    removed = page.locator(f"li[data-song-id='{ids[1]}']")
    removed.get_by_role("button", name="Actions for").click()
    removed.get_by_role("button", name="Remove").click()
    expect(removed).to_have_count(0)
    expect(page.get_by_test_id("player")).to_have_attribute("data-queue-length", "11")
    left = row_ids(page)
    assert page.evaluate(f"() => {PLAYER}.tracks.map(t => t.song_id)") == [song.id, *left]
    assert (left[0], ids[1] in left) == (ids[0], False)
    page.get_by_test_id("player-next").click()
    player_plays(page, left[1])
    (title,) = (song.title for song in songs_of(home) if song.id == left[1])
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    about_song(page, "Similar songs")
    player_plays(page, left[1])
    page.wait_for_function(f"id => {PLAYER}.tracks[0].song_id === id && {PLAYER}.index === 0", arg=left[1])


def test_plays_and_skips_are_stored(page, address, home):
    song = songs_of(home)[1]
    visit(page, address, query=f"?song={song.id}")
    expect(rows(page)).to_have_count(11)
    with Library.open(home / "library") as library:
        before, skipped = library.listening.play_counts(), len(library.judgments.all("skip"))
        page.get_by_test_id("listen").get_by_role("button", name="Play", exact=True).click()
        player_plays(page, song.id)
        listen_for(page, 11)  # more than half of 20 s
        after = {**before, song.id: before.get(song.id, 0) + 1}
        until(lambda: library.listening.play_counts() == after)
        page.get_by_test_id("player-next").click()
        ids = row_ids(page)
        player_plays(page, ids[0])
        listen_for(page, 5.5)
        page.get_by_test_id("player-next").click()
        player_plays(page, ids[1])
        until(lambda: [j.song_ids for j in library.judgments.all("skip")][skipped:] == [(ids[0],)])
        assert library.listening.play_counts() == after


def test_typed_text_survives_a_message_above_the_page(page, address, home):
    with Library.open(home / "library") as library, job_process() as process:

        def start_job() -> int:
            job_id = library.jobs.create("add", {}, pid=process.pid)
            library.jobs.update(job_id, state="running", done=12, total=60)
            return job_id

        first = start_job()
        visit(page, address)
        wait_for_map(page)
        page.wait_for_selector(IDLE)
        box = page.get_by_role("combobox", name="Search", exact=True)
        box.press_sequentially("son")
        folder = library.models.path(library.models.active().id)
        lost = folder.rename(folder.with_name("lost"))
        library.jobs.update(first, state="done")
        second = start_job()  # the page notices this
        try:
            expect(page.get_by_text("are missing or damaged")).to_be_visible()
            expect(box).to_have_value("son")
            expect(box).to_be_focused()
        finally:
            lost.rename(folder)
            library.jobs.update(second, state="done")


def test_second_tab_notices_canceled_and_resumed_job(page, address, home):
    other = page.context.new_page()
    offer = "Updating the models: canceled. Resume?"
    with Library.open(home / "library") as library, job_process() as process:
        for tab in (page, other):  # no job is running
            visit(tab, address, "playlist")
            tab.wait_for_selector(IDLE)
        first = library.jobs.create("refresh", {}, pid=process.pid)
        library.jobs.update(first, state="running", done=3, total=60, share=0.05)
        for tab in (page, other):
            expect(tab.get_by_text("Updating the models · 3 of 60")).to_be_visible()
        page.get_by_role("button", name="Cancel", exact=True).click()
        until(lambda: library.jobs.get(first).cancel_requested)
        library.jobs.update(first, state="cancelled")
        for tab in (page, other):
            expect(tab.get_by_text(offer)).to_be_visible()
        other.get_by_role("button", name="Resume", exact=True).click()
        expect(page.get_by_text(offer)).to_have_count(0)  # without a click in this tab
        until(lambda: not library.jobs.active())
        assert [job.state for job in library.jobs.recent()[:2]] == ["done", "cancelled"]


def test_phone_shows_queue_and_has_map_behind_tab(page, address, home):
    with Library.open(home / "library") as library, library.write() as connection:
        connection.execute(schema.songs.update().values(typical_s=1.0))
    page.set_viewport_size({"width": 390, "height": 844})
    play_slowly(page)
    visit(page, address, query=f"?song={songs_of(home)[0].id}")
    expect(rows(page)).to_have_count(11)
    box, player = rows(page).nth(2).bounding_box(), page.get_by_test_id("player").bounding_box()
    assert box["y"] + box["height"] < player["y"], "three songs are on the first screen"
    assert page.get_by_test_id("listen").get_by_role("button", name="Play", exact=True).bounding_box()["y"] < box["y"]
    ids = row_ids(page)
    rows(page).nth(2).locator(".sub").click()
    player_plays(page, ids[2])
    assert page.evaluate(f"() => {PLAYER}.tracks[{PLAYER}.index].start_s") == 0, "a song starts at its beginning"
    expect(page.get_by_test_id("map")).to_be_hidden()
    page.get_by_role("radio", name="Map").check()
    drawn = wait_for_map(page)
    assert drawn.bounding_box()["y"] + drawn.bounding_box()["height"] <= player["y"] + 1
    expect(rows(page).first).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_player_says_that_app_cannot_be_reached(page, address):
    visit(page, address)
    wait_for_map(page)
    lost = page.get_by_test_id("player-lost")
    expect(lost).to_be_hidden()
    page.context.set_offline(True)
    expect(lost).to_be_visible()
    page.get_by_test_id("player-retry").click()
    expect(page.get_by_test_id("player-message")).to_have_text("The app still cannot be reached. Is it running?")
    page.context.set_offline(False)
    expect(lost).to_be_hidden()
    page.route("**/_stcore/health", lambda _: None)  # a network that swallows everything
    page.get_by_role("button", name="Add sound").click()
    expect(lost).to_be_visible()
    page.unroute("**/_stcore/health")
    expect(lost).to_be_hidden()
    page.route("**/_stcore/health", lambda route: route.abort())  # noticed without a click, too
    expect(lost).to_be_visible()


@pytest.mark.long
def test_unknown_word_lists_known_words(page, address, home):
    visit(page, address)
    page.get_by_role("combobox", name="Search").fill("xyzzy")
    expect(page.get_by_text("Nothing matches. Words to try: ")).to_contain_text("fast, slow")


def test_music_begins_without_a_choice(page, address, home):
    play_slowly(page)
    visit(page, address)
    page.get_by_role("button", name="Something else today").click()
    player_plays(page)
    expect(rows(page).first).to_be_visible()
    disliked, often = (song.id for song in songs_of(home)[:2])
    with Library.open(home / "library") as library:
        library.set_feedback(disliked, -1)
        library.player_plays.add_play(often)
    visit(page, address, "playlist")
    page.get_by_role("button", name="Around last week").click()
    player_plays(page, often)
