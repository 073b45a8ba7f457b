"""The player in a real Chromium: one sound through pages and reruns, its queue, its keys, its words.

The small app in ``player_app/`` stands for the real one; its songs are named by what is special
about them (``player_app/songs.py``). Song 1, 3 and 4 last 40 s, song 2 lasts 2 s.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import expect
from streamlit.testing.v1 import AppTest

from musicsim.ui.components.player import Track, enqueue, play
from tests.browser.serving import PATIENCE_MS, serve

APP = Path(__file__).parent / "player_app" / "app.py"


@pytest.fixture(scope="module")
def player_app() -> Iterator[str]:
    """The small app."""
    with serve(APP) as address:
        yield address


@pytest.fixture(scope="module")
def player_context(chromium):
    """A browser window."""
    context = chromium.new_context(viewport={"width": 1280, "height": 720})
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


class Player:
    """One tab of the test app."""

    def __init__(self, page, address: str):
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.goto(address)
        self.root = page.get_by_test_id("player")
        self.audio = page.get_by_test_id("player-audio")
        expect(page.get_by_role("heading", name="First page")).to_be_visible()
        expect(self.root).to_be_visible()

    def part(self, name: str):
        return self.page.get_by_test_id(f"player-{name}")

    def press(self, name: str) -> None:
        """Click a button of the page."""
        self.page.get_by_role("button", name=name, exact=True).click()

    def visit(self, name: str) -> None:
        self.page.get_by_test_id("stSidebarNavLink").filter(has_text=name).click()
        expect(self.page.get_by_role("heading", name=f"{name} page")).to_be_visible()

    def expect(self, **attributes: object) -> None:
        for name, value in attributes.items():
            expect(self.root).to_have_attribute(f"data-{name.replace('_', '-')}", str(value))

    def expect_position_from(self, seconds: float) -> None:
        self.page.wait_for_function(
            "s => document.querySelector('[data-testid=player-audio]').currentTime >= s", arg=seconds
        )

    @property
    def position(self) -> float:
        return self.audio.evaluate("audio => audio.currentTime")

    def expect_titles(self, *beginnings: str) -> None:
        """Wait until the open panel of the queue lists titles that begin so."""
        titles = self.part("queue-list").locator(".names span:first-child")
        expect(titles).to_have_text([re.compile(f"^{re.escape(beginning)}") for beginning in beginnings])
        expect(titles.first).to_be_visible()


@pytest.fixture
def player(player_app, player_context) -> Iterator[Player]:
    page = player_context.new_page()
    opened = Player(page, player_app)
    yield opened
    assert opened.errors == []
    page.close()


# A diary of the sound, ten times a second: what a listener would hear.
DIARY = """audio => {
  audio.tag = "the very same";
  window.diary = [];
  setInterval(() => {
    const now = document.querySelectorAll('[data-testid=player-audio]');
    window.diary.push([performance.now() / 1000, now[0].currentTime, now[0].paused, now.length, now[0].tag]);
  }, 100);
}"""


def test_one_sound_through_reruns_and_pages(player):
    player.press("Play in body")
    player.expect(state="playing", song_id=1, queue_length=3)
    player.expect_position_from(0.3)
    player.audio.evaluate(DIARY)
    player.press("Just rerun")
    player.visit("Second")
    player.page.wait_for_timeout(500)
    player.visit("Third")
    player.visit("First")
    player.page.wait_for_timeout(500)
    diary = player.page.evaluate("() => window.diary")
    assert len(diary) >= 5
    assert all(entry[2:] == [False, 1, "the very same"] for entry in diary)
    positions = [entry[1] for entry in diary]
    assert positions == sorted(positions)
    elapsed, played = diary[-1][0] - diary[0][0], positions[-1] - positions[0]
    # The sound device of a headless browser is a timer: it may lag by a tenth, a restart costs all.
    assert played > elapsed - 0.5


def test_player_stays_and_does_not_fade_on_a_slow_page_that_stops(player):
    player.press("Play in body")
    player.expect(state="playing")
    # The shell takes 1 s before it mounts the player, the page 1 s more, and then it stops.
    player.page.get_by_test_id("stSidebarNavLink").filter(has_text="Second").click()
    opacities = set()
    for _ in range(8):
        frame = "e => getComputedStyle(e.getRootNode().host.closest('[class*=st-key]')).opacity"
        opacities.add(player.root.evaluate(frame))
        player.page.wait_for_timeout(200)
    assert opacities == {"1"}
    expect(player.page.get_by_text("slow part done")).to_be_visible()
    expect(player.root).to_be_visible()


def test_play_from_a_callback_before_a_rerun_and_in_fragments(player):
    player.press("Play in callback")
    player.expect(state="playing", song_id=2, queue_length=3)
    player.press("Play and rerun")
    player.expect(state="playing", song_id=3, queue_length=1)
    player.visit("Third")
    player.press("Play in fragment callback")
    player.expect(state="playing", song_id=1, queue_length=2)
    player.press("Play in fragment")
    player.expect(state="playing", song_id=3, queue_length=2)
    player.press("Enqueue in fragment")
    player.expect(state="playing", song_id=3, queue_length=3)


def test_at_the_end_the_next_song_starts_without_a_rerun(player):
    with player.page.expect_request(lambda request: "/songs/1/audio" in request.url):
        player.press("Play short")  # 2 s long: the next song is fetched at once
    player.expect(state="playing", song_id=2)
    expect(player.page.get_by_text("runs: 2")).to_be_visible()
    player.expect(state="playing", song_id=1)
    player.expect_position_from(0.2)
    expect(player.page.get_by_text("runs: 2")).to_be_visible()


# Both sounds, every 20 ms: whether each sounds, and how loud.
BOTH = """() => {
  window.both = [];
  setInterval(() => {
    const sounds = window[Symbol.for('musicsim.player')].sounds;
    window.both.push([performance.now() / 1000, ...sounds.map(a => (a.paused || a.ended ? 0 : a.volume))]);
  }, 20);
}"""


@pytest.mark.parametrize(("between", "seconds"), [("gapless", 0.05), ("2", 2 / 3)])
def test_the_next_song_begins_before_the_end_where_the_menu_asks_for_it(player, between, seconds):
    player.part("menu").click()
    player.part("between").select_option(between)
    player.page.keyboard.press("Escape")
    player.page.evaluate(BOTH)
    player.press("Play short")  # 2 s, of which a third at most is shared
    player.expect(song_id=2, state="playing")
    player.expect(song_id=1, state="playing")
    assert player.page.evaluate("() => navigator.mediaSession.metadata.title") == "Song number 1"
    player.expect_position_from(1.2)
    diary = player.page.evaluate("() => window.both")
    shared = [entry for entry in diary if entry[1] and entry[2]]
    began = next(i for i, entry in enumerate(diary) if entry[1] or entry[2])
    assert len(shared) * 0.02 == pytest.approx(seconds, abs=0.3)
    if seconds > 0.1:
        assert all(one**2 + other**2 == pytest.approx(1, abs=0.02) for _, one, other in shared[1:-1])
    gap = sum(later[0] - now[0] for now, later in pairwise(diary[began:]) if not now[1] and not now[2])
    assert gap < 0.2
    player.part("wave").press("End")
    player.part("prev").click()  # over 3 s: back to the beginning of the same song
    player.expect(song_id=1, state="playing")
    player.part("prev").click()
    player.expect(song_id=2, state="playing")
    player.part("play").click()
    player.expect(state="paused")
    assert player.page.evaluate("() => window[Symbol.for('musicsim.player')].sounds.every(a => a.paused)")


def test_loud_songs_are_made_softer_and_soft_ones_stay(player):
    def volume() -> float:
        return player.audio.evaluate("audio => audio.volume")

    player.press("Play loud")  # -8 LUFS, ten above what all are brought to
    player.expect(state="playing", song_id=1)
    assert volume() == pytest.approx(10 ** (-10 / 20))
    player.part("volume").fill("0.5")
    assert volume() == pytest.approx(0.5 * 10 ** (-10 / 20))
    player.part("next").click()
    player.expect(song_id=3, state="playing")
    assert volume() == pytest.approx(0.5)  # -30 LUFS
    player.part("prev").click()
    player.part("menu").click()
    player.part("level").uncheck()
    player.expect(song_id=1)
    assert volume() == pytest.approx(0.5)
    player.page.reload()
    expect(player.part("level")).not_to_be_checked()
    player.part("menu").click()
    player.part("level").check()
    player.part("volume").fill("1")


def test_queue_is_listed_changed_and_cleared(player):
    player.press("Play in body")
    player.expect(queue_length=3)
    player.press("Enqueue one")
    player.expect(queue_length=4)
    expect(player.part("message")).to_have_text("Added to the queue: “Song number 2”")
    player.part("queue").click()
    player.expect_titles("Song number 1", "Song number 3", "A rather long", "Song number 2")
    rows = player.part("queue-list").locator("li")
    rows.nth(2).get_by_title("Move down").click()
    player.expect_titles("Song number 1", "Song number 3", "Song number 2", "A rather long")
    rows.nth(2).get_by_title("Remove").click()
    player.expect(queue_length=3, song_id=1, state="playing")
    expect(rows.nth(2).get_by_title("Remove")).to_be_focused()  # the one that moved up into its place
    rows.nth(2).locator(".jump").click()
    player.expect(song_id=4, state="playing")
    rows.nth(2).get_by_title("Remove").click()  # the last and current one: the one before, at rest
    player.expect(queue_length=2, song_id=3, state="paused")
    player.part("queue-clear").click()
    player.expect(queue_length=0, state="empty")
    expect(player.part("title")).to_have_text("Nothing playing: choose a song")
    expect(player.part("play")).to_be_disabled()
    player.page.keyboard.press("Escape")
    player.press("Enqueue")
    player.expect(queue_length=2, song_id=3, state="paused")
    player.part("play").click()
    player.expect(state="playing")


def test_click_on_the_waveform_seeks_and_a_rerun_does_not_restart(player):
    player.press("Play in body")
    wave = player.part("wave")
    expect(wave).to_have_attribute("data-kind", "wave")
    player.part("play").click()
    player.expect(state="paused")  # at rest, positions are exact
    box = wave.bounding_box()
    wave.click(position={"x": box["width"] / 2, "y": 20})
    player.expect_position_from(19)
    assert player.position == pytest.approx(20, abs=40 / box["width"])  # one pixel of forty seconds
    half = player.position
    wave.press("ArrowRight")
    player.expect_position_from(half + 4.9)
    player.press("Just rerun")
    expect(player.page.get_by_text("runs: 3")).to_be_visible()
    assert player.position == pytest.approx(half + 5, abs=0.01)
    player.part("next").click()
    player.part("next").click()
    player.expect(song_id=4, state="playing")
    expect(wave).to_have_attribute("data-kind", "bar")  # its waveform answers 404
    expect(player.part("time")).to_contain_text("/ 0:40")
    player.part("play").click()
    wave.click(position={"x": box["width"] * 0.75, "y": 20})
    player.expect_position_from(29)
    assert player.position == pytest.approx(30, abs=40 / box["width"])


def test_keys_act_once_and_not_while_typing(player):
    for _ in range(3):
        player.press("Just rerun")  # a listener registered twice would toggle twice
    player.press("Play in body")
    player.expect(state="playing", song_id=1)
    player.page.get_by_role("heading", name="First page").click()
    keyboard = player.page.keyboard
    keyboard.press("Space")
    player.expect(state="paused")
    keyboard.press("Space")
    player.expect(state="playing")
    keyboard.press("k")
    player.expect(song_id=3)
    keyboard.press("Control+k")
    keyboard.press("j")
    player.expect(song_id=1)
    keyboard.press("/")
    search = player.page.get_by_label("Search songs")
    expect(search).to_be_focused()
    keyboard.type("jk /")
    expect(search).to_have_value("jk /")
    player.expect(song_id=1, state="playing")


def test_previous_restarts_the_song_after_three_seconds(player):
    player.press("Play in callback")
    player.part("next").click()
    player.expect(song_id=3, state="playing")
    player.part("wave").press("ArrowRight")
    player.expect_position_from(5)
    player.part("prev").click()
    player.page.wait_for_function("() => document.querySelector('[data-testid=player-audio]').currentTime < 3")
    player.expect(song_id=3)
    player.part("prev").click()
    player.expect(song_id=2)


def test_a_preview_starts_where_it_should_and_previous_goes_to_the_beginning(player):
    player.press("Play preview")
    player.expect(song_id=1, state="playing")
    player.expect_position_from(12)
    assert player.position < 20
    player.part("prev").click()
    player.page.wait_for_function("() => document.querySelector('[data-testid=player-audio]').currentTime < 3")
    player.expect(song_id=1, state="playing")
    player.part("next").click()
    player.expect(song_id=3, state="playing")
    assert player.position < 3, "the next one has no start of its own"


def test_thumbs_open_and_more_arrive_in_python_once(player):
    player.press("Play in body")
    player.expect(song_id=1)
    up, down = player.part("thumb-up"), player.part("thumb-down")
    up.click()
    expect(player.page.get_by_text("events: thumb 1 1", exact=True)).to_be_visible()
    expect(up).to_have_attribute("aria-pressed", "true")
    down.click()
    down.click()
    expect(up).to_have_attribute("aria-pressed", "false")
    expect(down).to_have_attribute("aria-pressed", "false")
    player.part("more").click()
    told = "events: thumb 1 1, thumb 1 -1, thumb 1 0, more_like_this 1 0"
    expect(player.page.get_by_text(told, exact=True)).to_be_visible()
    # What no button sends: Python must neither believe it nor fall over.
    player.root.evaluate(
        "() => window[Symbol.for('musicsim.player')].view.send('event', [{number: 99, kind: 'evil', song_id: 1}, 7])"
    )
    player.part("title").click()
    expect(player.page.get_by_role("heading", name="Second page")).to_be_visible()  # as on_event has it
    expect(player.page.get_by_text(f"{told}, open 1 0", exact=True)).to_be_visible()
    player.expect(state="playing", song_id=1)


def test_mounted_again_on_the_same_elements_a_click_still_counts_once(player):
    player.press("Play in body")
    player.expect(song_id=1)
    player.root.evaluate(
        """root => {
          const engine = window[Symbol.for('musicsim.player')];
          const [host, send] = [root.parentNode, engine.view.send];
          engine.detach(host);
          engine.attach(host, send);
        }"""
    )
    player.part("more").click()
    expect(player.page.get_by_text("events: more_like_this 1 0", exact=True)).to_be_visible()
    player.part("play").click()
    player.expect(state="paused")


def test_hostile_title_is_shown_as_text(player):
    player.press("Play hostile")
    player.expect(state="playing", queue_length=2)
    title = '<img src=x onerror="window.hacked=true"> **bold** $x$'
    expect(player.part("title")).to_have_text(title)
    expect(player.part("message")).to_have_text(f"Added to the queue: “{title}”")
    player.part("queue").click()
    player.expect_titles(title, title)
    player.page.wait_for_timeout(200)
    assert player.page.evaluate("() => window.hacked") is None
    assert player.root.locator("img").count() == 0


def test_song_that_fails_is_named_and_skipped(player):
    player.press("Play failing")
    player.expect(state="playing", song_id=1)
    expect(player.part("message")).to_contain_text("“Missing” cannot be played:")
    player.press("Play only failing")
    player.expect(state="error", song_id=99, queue_length=2)
    expect(player.part("message")).to_have_text(
        re.compile("^“Missing, too” cannot be played: .+ Nor can the 1 before it.$")
    )


def test_reload_brings_the_queue_back_paused_where_it_was(player):
    player.press("Play in body")
    player.part("next").click()
    player.expect(song_id=3, state="playing")
    player.part("play").click()
    player.expect(state="paused")
    player.part("wave").press("ArrowRight")
    player.expect_position_from(5)
    before = player.position
    player.page.reload()
    player.expect(state="paused", song_id=3, queue_length=3)
    player.expect_position_from(5)
    assert player.position == pytest.approx(before, abs=0.01)
    player.part("play").click()
    player.expect(state="playing")
    player.expect_position_from(before + 0.2)
    player.press("Play short")  # the new session's first command has the number 1 again
    player.expect(state="playing", song_id=2)


def test_two_tabs_are_independent(player, player_app, player_context):
    player.press("Play in body")
    player.expect(state="playing")
    page = player_context.new_page()
    other = Player(page, player_app)
    other.expect(state="empty", queue_length=0)
    other.press("Enqueue")
    other.expect(state="paused", queue_length=2)
    player.expect(state="playing", queue_length=3, song_id=1)
    page.close()


def test_autoplay_refused_leaves_a_player_that_is_ready(player):
    player.page.evaluate(
        """() => {
          const refuse = () => Promise.reject(new DOMException("no gesture", "NotAllowedError"));
          window.allowed = HTMLMediaElement.prototype.play;
          HTMLMediaElement.prototype.play = refuse;
        }"""
    )
    player.press("Play in body")
    player.expect(state="paused", song_id=1, queue_length=3)
    expect(player.part("play")).to_be_enabled()
    expect(player.part("message")).to_be_hidden()
    player.page.evaluate("() => { HTMLMediaElement.prototype.play = window.allowed; }")
    player.part("play").click()
    player.expect(state="playing")


@pytest.mark.parametrize("width", [380, 1280])
def test_fits_the_window_and_hides_no_content(player, width):
    player.page.set_viewport_size({"width": width, "height": 640})
    player.press("Play in body")
    player.expect(state="playing")
    box = player.root.bounding_box()
    assert 60 <= box["height"] <= 80
    for name in ("prev", "play", "next", "title", "wave", "time", "thumb-up", "thumb-down", "more", "menu", "queue"):
        part = player.part(name).bounding_box()
        assert part["x"] >= box["x"] - 0.5, name
        assert part["x"] + part["width"] <= box["x"] + box["width"] + 0.5, name
        assert part["y"] + part["height"] <= 640, name
    last = player.page.get_by_text("last line")
    last.scroll_into_view_if_needed()
    player.page.get_by_test_id("stMain").evaluate("e => e.scrollTo(0, e.scrollHeight)")
    bottom = last.bounding_box()
    assert bottom["y"] + bottom["height"] <= box["y"]
    for name in ("queue", "menu"):
        player.part(name).click()
        panel = player.part(f"{name}-panel").bounding_box()
        assert panel["x"] >= 0
        assert panel["x"] + panel["width"] <= width
        assert panel["y"] + panel["height"] <= box["y"]


def test_sound_without_controls_stops(player):
    player.press("Play in body")
    player.expect(state="playing")
    assert player.page.evaluate("() => navigator.mediaSession.metadata.title") == "Song number 1"
    player.root.evaluate("e => window[Symbol.for('musicsim.player')].detach(e.getRootNode())")
    player.page.wait_for_function("() => document.querySelector('[data-testid=player-audio]').paused")


def test_base_path(chromium):
    with serve(APP, base="deep/music") as address:
        context = chromium.new_context()
        player = Player(context.new_page(), f"{address}/deep/music/")
        player.press("Play in body")
        player.expect(state="playing", song_id=1)
        expect(player.part("wave")).to_have_attribute("data-kind", "wave")
        player.visit("Third")
        player.press("Play in fragment")
        player.expect(state="playing", song_id=3)
        player.page.reload()  # loaded at a page's own address this time
        expect(player.page.get_by_role("heading", name="Third page")).to_be_visible()
        player.expect(state="paused", song_id=3)
        player.part("next").click()
        player.expect(state="playing", song_id=1)
        src = player.audio.evaluate("audio => audio.src")
        assert src == f"{address}/deep/music/songs/1/audio?library=x"
        context.close()


def test_track_without_address_is_refused():
    with pytest.raises(ValueError, match=r"track 7 \('Blue'\) has no url"):
        Track(7, "Blue", "Someone", "")


@pytest.mark.parametrize("give", [play, enqueue])
def test_nothing_to_play_is_refused(give):
    with pytest.raises(ValueError, match="no tracks were given"):
        give([])


@pytest.mark.parametrize("start", [-1, 1])
def test_start_outside_of_the_queue_is_refused(start):
    with pytest.raises(ValueError, match=rf"start={start} should be in 0\.\.0: there are 1 tracks"):
        play([Track(1, "Blue", "Someone", "/songs/1/audio")], start)


def test_a_page_with_the_player_runs_under_app_test():
    """Numbers out of numpy and an unknown length reach the component as JSON."""

    def script():
        import numpy as np
        import streamlit as st

        from musicsim.ui.components import player

        with st.bottom:
            player.mount(thumbs={np.int64(5): np.int8(1)})
        player.play([player.Track(np.int64(5), "A", "B", "/songs/5/audio", duration_s=float("nan"))])

    at = AppTest.from_function(script, default_timeout=60).run()
    assert not at.exception
    assert not at.run().exception
