"""The section Compare in the browser: songs played, judged by keys, undone, saved under a name, on a phone."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from musicsim.explorer.models.artifacts import load_map
from musicsim.library import Library, Song
from musicsim.library.stores.judgments import Judgment
from tests.browser.actions import IDLE, play_slowly, player_plays, show_tab, songs_of, switch, visit


@pytest.fixture(autouse=True)
def no_answers(home: Path):
    with Library.open(home / "library") as library:
        for name in library.judgments.listeners():
            library.judgments.forget_listener(name)


def begin_queue(page: Page, address: str, home: Path) -> tuple[Song, Locator]:
    """Play a song on Listen, slowly; return it and the player."""
    song = songs_of(home)[0]
    play_slowly(page)
    visit(page, address, query=f"?song={song.id}")
    page.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Play", exact=True).click()
    return song, player_plays(page, song.id)


def compare(page: Page, address: str) -> Locator:
    """Open the page; return the question."""
    page.goto(f"{address}/compare", wait_until="commit")
    question = page.get_by_test_id("compare")
    expect(question.get_by_test_id("compare-card")).to_have_count(3)
    page.wait_for_selector(IDLE)
    return question


def hear_all(question: Locator) -> None:
    """Play the songs of the question, each until it counts as heard."""
    for card in question.get_by_test_id("compare-card").all():
        if card.get_attribute("data-state") != "playing" and card.get_attribute("data-heard") != "true":
            card.get_by_test_id("compare-play").click()
        expect(card).to_have_attribute("data-heard", "true")


def press(page: Page, question: Locator, key: str) -> None:
    """Press a key that leads to another question, after the songs if it is an answer, and wait for it."""
    if key in "1234u" or key == "Enter":
        focused = question.locator(":focus")
        at = focused.get_attribute("data-name") if focused.count() else None
        hear_all(question)
        if at:
            question.locator(f"[data-name={at}]").focus()
    before = question.get_attribute("data-turn")
    page.keyboard.press(key)
    expect(question).not_to_have_attribute("data-turn", str(before))


def set_option(page: Page, name: str) -> None:
    """Click an option in the menu More, and close it."""
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_test_id("stPopoverBody").get_by_text(name, exact=True).click()
    page.keyboard.press("Escape")
    page.wait_for_selector(IDLE)


def kept(home: Path) -> list[Judgment]:
    with Library.open(home / "library") as library:
        return library.judgments.answers()


def shown_songs(question: Locator) -> list[str | None]:
    """Return the accessible names of the cards."""
    return [card.get_attribute("aria-label") for card in question.get_by_test_id("compare-card").all()]


def test_keys_answer_questions_once_songs_are_heard(page, address, home):
    question = compare(page, address)
    page.get_by_role("heading", name="Teach", exact=True).click()
    for key in "1u":  # names would be shown after an answer
        page.keyboard.press(key)
        expect(question.get_by_text("Still to hear: Song 1, Song 2 and Song 3.")).to_have_class("reminder stressed")
    expect(question.get_by_test_id("compare-choose-1")).to_have_attribute("aria-disabled", "true")
    assert page.get_by_test_id("stMain").evaluate("e => getComputedStyle(e).outlineStyle") == "none"
    assert kept(home) == []
    for key in "2u":
        press(page, question, key)
    assert [a.chosen for a in kept(home)] == [1, None]
    expect(page.get_by_text("2 of 25 answers, 1 of them unsure")).to_be_visible()
    press(page, question, "z")
    expect(page.get_by_text("1 of 25 answers")).to_be_visible()
    press(page, question, "s")
    press(page, question, "Control+z")
    assert kept(home) == []


def test_held_or_repeated_key_is_one_answer(page, address, home):
    question = compare(page, address)
    before = question.get_attribute("data-turn")
    hear_all(question)
    for _ in range(3):
        page.keyboard.down("2")  # the second and third events are repeats
    page.keyboard.up("2")
    page.keyboard.press("1")
    expect(question).not_to_have_attribute("data-turn", str(before))
    page.wait_for_selector(IDLE)
    assert [a.chosen for a in kept(home)] == [1]
    assert {(a.listener, a.model) for a in kept(home)} == {("me", "Sound")}


@pytest.mark.story
def test_queue_waits_while_songs_are_compared(page, address, home):
    """The queue keeps its songs and its second, and goes on afterwards; the keys work as soon as the page opens."""
    song, player = begin_queue(page, address, home)
    page.get_by_test_id("player-audio").evaluate("a => { a.currentTime = 7 }")
    expect(player).to_have_attribute("data-position", "7")
    switch(page, "train")
    question = page.get_by_test_id("compare")
    cards = question.get_by_test_id("compare-card")
    expect(cards.nth(0)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(cards.nth(1)).to_be_focused()
    player_plays(page, song.id)  # nothing was played yet
    page.keyboard.press("Space")
    expect(cards.nth(1)).to_have_attribute("data-state", "playing")
    expect(player).to_have_attribute("data-state", "paused")
    expect(question.get_by_text("Your queue is paused. It goes on when you leave.")).to_be_visible()
    press(page, question, "2")
    assert [a.chosen for a in kept(home)] == [1]
    expect(cards.nth(0)).to_have_attribute("data-state", "playing")  # the first song of the next question
    expect(player).to_have_attribute("data-position", "7")
    sound = page.get_by_test_id("compare-audio").element_handle()
    switch(page, "listen")
    page.wait_for_function("sound => sound.paused", arg=sound)  # here, it would be a song without a name
    player_plays(page, song.id)
    expect(player).to_have_attribute("data-position", re.compile("^[789]$"))
    expect(player).to_have_attribute("data-queue-length", "12")
    expect(page.get_by_role("heading", name=song.title)).to_be_visible()


def test_queue_that_was_paused_stays_paused(page, address, home):
    _, player = begin_queue(page, address, home)
    page.get_by_test_id("player-play").click()
    expect(player).to_have_attribute("data-state", "paused")
    switch(page, "train")
    page.get_by_test_id("compare-play").first.click()
    expect(page.get_by_test_id("compare-card").first).to_have_attribute("data-state", "playing")
    switch(page, "listen")
    expect(page.get_by_test_id("compare")).to_have_count(0)
    expect(player).to_have_attribute("data-state", "paused")


def test_arrows_space_and_enter_play_and_choose(page, address, home):
    question = compare(page, address)
    cards = question.get_by_test_id("compare-card")
    expect(cards.nth(0)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(cards.nth(1)).to_be_focused()
    page.keyboard.press("Space")
    expect(cards.nth(1)).to_have_attribute("data-state", "playing")
    page.keyboard.press("Space")
    expect(cards.nth(1)).not_to_have_attribute("data-state", "playing")
    page.keyboard.press("Space")
    expect(cards.nth(1)).to_have_attribute("data-state", "playing")
    press(page, question, "Enter")
    assert [a.chosen for a in kept(home)] == [1]
    # the songs of the question before were playing: the first song of this one plays on
    expect(cards.nth(0)).to_be_focused()
    expect(cards.nth(0)).to_have_attribute("data-state", "playing")


def test_space_without_card_plays_songs_of_question(page, address):
    question = compare(page, address)
    cards = question.get_by_test_id("compare-card")
    page.get_by_role("heading", name="Teach", exact=True).click()
    page.keyboard.press("Space")
    expect(cards.nth(0)).to_have_attribute("data-state", "playing")
    page.keyboard.press("Space")
    expect(cards.nth(0)).not_to_have_attribute("data-state", "playing")
    page.keyboard.press("Space")
    expect(cards.nth(0)).to_have_attribute("data-state", "playing")
    audio = page.get_by_test_id("compare-audio").element_handle()
    page.wait_for_function("a => a.duration > 0", arg=audio)  # it plays before its length is known
    audio.evaluate("a => { a.currentTime = a.duration }")
    expect(cards.nth(1)).to_have_attribute("data-state", "playing")  # the songs follow each other
    page.get_by_test_id("compare-seek").nth(1).click(position={"x": 3, "y": 3})
    page.wait_for_function("a => a.currentTime < 2", arg=audio)
    page.get_by_test_id("player-volume").evaluate(
        "slider => { slider.value = 0.25; slider.dispatchEvent(new Event('input')); }"
    )
    page.wait_for_function("a => a.volume <= 0.25", arg=audio)


def test_typing_name_does_not_answer_and_is_remembered(page, address, home):
    question = compare(page, address)
    page.get_by_role("button", name="More", exact=True).click()
    box = page.get_by_role("combobox", name="Listener")
    box.click()
    page.keyboard.type("Suzu 12", delay=30)
    expect(box).to_have_value("Suzu 12")
    page.keyboard.press("Enter")
    page.wait_for_selector(IDLE)
    assert kept(home) == []
    expect(page.get_by_text("Suzu 12: 0 of 25 answers")).to_be_visible()
    page.get_by_role("heading", name="Teach", exact=True).click()
    press(page, question, "3")
    assert [(a.listener, a.chosen) for a in kept(home)] == [("Suzu 12", 2)]
    switch(page, "library")
    page.keyboard.press("1")
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Teach").click()
    expect(page.get_by_text("Suzu 12: 1 of 25 answers")).to_be_visible()
    assert len(kept(home)) == 1, "keys of this page do nothing on another one"


def test_names_appear_after_answer_or_on_request(page, address, home):
    question = compare(page, address)
    assert shown_songs(question) == ["Song 1", "Song 2", "Song 3"]
    expect(question.get_by_test_id("compare-last")).to_have_text("")
    press(page, question, "2")
    expect(question.get_by_test_id("compare-last")).to_contain_text("You said: 2 does not belong.")
    (answer,) = kept(home)
    with Library.open(home / "library") as library:
        chosen = library.songs([answer.song_ids[1]])[0]
    expect(question.get_by_test_id("compare-last").locator(".chosen")).to_have_text(f"2: {chosen.label}")
    set_option(page, "Show names")
    expect(question.locator(".sub").first).to_contain_text("Artist")


def test_more_like_first_with_four_songs(page, address, home):
    question = compare(page, address)
    set_option(page, "More like the first")
    expect(question).to_have_attribute("data-form", "like")
    set_option(page, "4")
    expect(question.get_by_test_id("compare-card")).to_have_count(4)
    expect(question.get_by_role("heading", name="Which is more like the first?")).to_be_visible()
    page.wait_for_selector(IDLE)
    page.get_by_role("heading", name="Teach", exact=True).click()
    page.keyboard.press("4")  # there are three to choose from
    press(page, question, "3")
    (answer,) = kept(home)
    assert (answer.kind, len(answer.song_ids), answer.chosen) == ("like", 4, 3)


def test_answers_are_exported(page, address, home, tmp_path):
    question = compare(page, address)
    press(page, question, "1")
    press(page, question, "u")
    page.wait_for_selector(IDLE)  # the file's address changes after every answer
    page.get_by_text("Your answers", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    download.value.save_as(tmp_path / "answers.csv")
    with open(tmp_path / "answers.csv", encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 2


def test_training_on_answers_changes_map(page, address, home):
    ids = [song.id for song in songs_of(home)]
    with Library.open(home / "library") as library:
        for n in range(25):
            library.judgments.add("me", "odd", [ids[n % 12], ids[(n + 1) % 12], ids[(n + 5) % 12]], n % 3)
    compare(page, address)
    page.get_by_role("button", name="See what 25 answers teach").click()
    expect(page.get_by_text("It agrees with you in")).to_be_visible()
    expect(page.get_by_role("progressbar")).to_have_count(3)  # the answers, after, before
    show_tab(page, "Other teachers")
    page.get_by_text("Details", exact=True).click()
    verdict = page.get_by_text("25 answers, each held out once").first
    expect(verdict).to_contain_text("comparisons in order 0.")
    expect(page.get_by_text("comparisons in order", exact=True).first).to_be_visible()
    with Library.open(home / "library") as library:
        plain, learned = library.models.native(), library.models.all()[-1]
        assert learned.settings["supervision"] == "answers"
        maps = [load_map(library.models.path(model.id)) for model in (plain, learned)]
    assert np.array_equal(maps[0][0], maps[1][0])
    assert not np.allclose(maps[0][1], maps[1][1])


@pytest.mark.parametrize("form", ["The odd one out", "More like the first"])
def test_page_fits_phone(page, address, form):
    page.set_viewport_size({"width": 400, "height": 900})
    question = compare(page, address)
    set_option(page, form)
    set_option(page, "Show names")
    expect(question.locator(".sub").first).to_contain_text("Artist")
    page.wait_for_selector(IDLE)
    press(page, question, "s")
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= 400
    texts = question.locator("h2, .title, .sub, .act, .last, .mark")
    clipped = texts.evaluate_all(
        "all => all.filter(e => e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)"
        ".map(e => e.className + ': ' + e.textContent)"
    )
    assert clipped == []
    for part in [*question.locator(".act:visible").all(), *question.get_by_test_id("compare-play").all()]:
        box = part.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 400
        assert box["height"] >= 36, "room for a finger"
