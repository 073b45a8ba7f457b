"""Tests of a complete listening test: the owner makes it, a listener takes it by a link, the owner sees the verdict."""

import re

from playwright.sync_api import Page, expect

from musicsim.extensions.listening_tests.store import ListeningTestStore
from musicsim.library import Library
from tests.browser.actions import hindrances, rerun, visit
from tests.browser.patient import new_context


def make_test(page: Page, address: str) -> list[str]:
    """Make a small test as its owner does, and return its links."""
    visit(page, address, "research")
    page.get_by_text("Listening tests", exact=True).click()
    page.get_by_label("Name", exact=True).fill("By ear")
    page.get_by_label("Listeners", exact=True).fill("2")
    page.get_by_role("button", name="More", exact=True).click()
    for label, number in (("Query songs", 2), ("Attention checks", 1)):
        page.get_by_label(label, exact=True).fill(str(number))
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Create the test").click()
    links = page.get_by_test_id("listening-links")
    expect(links).to_contain_text("Listener 2")
    expect(page.get_by_role("button", name="Create the test")).to_be_hidden()
    found = [link.get_attribute("href") for link in links.get_by_role("link").all()]
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    links.get_by_role("button", name="Copy the link of Listener 2").press("Enter")
    expect(links.get_by_text("Copied")).to_be_focused()
    assert page.evaluate("navigator.clipboard.readText()") == found[1]
    return found


def hear(page: Page, side: int, *, by_key: bool) -> None:
    """Play a song of the pair until it counts as heard."""
    button = page.locator(f"[data-side='{side}']")
    page.keyboard.press("ab"[side]) if by_key else button.click()
    expect(button).to_have_attribute("data-state", "playing")
    page.wait_for_function("side => document.querySelectorAll('audio')[side].heard >= 2", arg=side)


def take(listener: Page, titles: set[str]) -> int:
    """Grade every pair, by keyboard and mouse in turn. Return the number of pairs.

    One grade is corrected, and one is given after a reload.
    """
    test = listener.locator("#test")
    n_pairs = int(re.match(r"0 of (\d+)", listener.locator(".progress").inner_text())[1])
    for place in range(n_pairs):
        expect(test).to_have_attribute("data-place", str(place))
        assert not [title for title in titles if title in listener.locator("body").inner_text()]
        by_key = place % 2 == 0
        for side in (0, 1):
            hear(listener, side, by_key=by_key)
        if by_key:
            for key in ("3", "ArrowUp", "Shift+ArrowUp", "Enter"):
                listener.keyboard.press(key)
        else:
            listener.get_by_role("radio", name=re.compile("^Very similar")).click()
            listener.get_by_role("slider").click()
            listener.get_by_role("button", name=re.compile("^Next")).click()
        if place == 0:
            expect(test).to_have_attribute("data-place", "1")
            listener.keyboard.press("z")
            expect(listener.locator("output")).to_have_text("56")
            listener.keyboard.press("ArrowUp")
            listener.keyboard.press("Enter")
            expect(test).to_have_attribute("data-place", "1")
            listener.reload()
    expect(test).to_have_attribute("data-stage", "done")
    return n_pairs


def test_owner_creates_test_and_listener_completes_it(page, address, home, chromium):
    link, _ = make_test(page, address)
    with Library.open(home / "library") as library:
        (kept,) = ListeningTestStore(library).all()
        titles = {song.title for song in library.songs()}
    context = new_context(chromium, viewport={"width": 375, "height": 800})
    listener = context.new_page()
    errors: list[str] = []
    listener.on("pageerror", lambda error: errors.append(str(error)))
    listener.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    listener.goto(link)
    expect(listener.get_by_text("You can stop at any time.")).to_be_visible()
    listener.get_by_role("button", name="I agree, begin").click()
    expect(listener.locator("#test")).to_have_attribute("data-stage", "pair")
    assert listener.evaluate("document.documentElement.scrollWidth") <= 375
    for scheme in ("light", "dark"):
        listener.emulate_media(color_scheme=scheme)
        assert not hindrances(listener), scheme
    listener.keyboard.press("Enter")
    expect(listener.get_by_text("Listen to Song A and Song B first.")).to_be_visible()
    n_pairs = take(listener, titles)
    context.close()
    assert errors == []
    with Library.open(home / "library") as library:
        first, second = ListeningTestStore(library).listeners(kept.id)
        grades = ListeningTestStore(library).grades(kept.id)
    assert (len(grades[first.id]), grades[second.id]) == (n_pairs, [])
    assert {grade.category for grade in grades[first.id]} == {2}
    assert 61 in {grade.fine for grade in grades[first.id]}
    with rerun(page):  # a download that is clicked before its end gets an old address
        page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_text(f"Listener 1: {n_pairs} of {n_pairs}")).to_be_visible()
    expect(page.get_by_text("No significant difference between")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Grades (CSV)").click()
    assert len(download.value.path().read_text().splitlines()) == 1 + n_pairs
    page.goto(link.rsplit("/", 1)[0] + "/nobody")
    expect(page.get_by_text("is not valid")).to_be_visible()
