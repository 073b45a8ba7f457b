"""Test of the taste card in the browser: bands, the picture, and questions that narrow a band."""

from pathlib import Path

from playwright.sync_api import expect

from musicsim.library import Library
from tests.browser.actions import IDLE
from tests.extensions.taste_card.listeners import answer_questions


def test_listener_sees_and_saves_their_taste(page, address, home):
    with Library.open(home / "library") as library:
        for name in library.judgments.listeners():
            library.judgments.forget_listener(name)
        answer_questions(library, "me", {"timbre": 1.0}, 40)
    page.goto(f"{address}/compare", wait_until="commit")
    question = page.get_by_test_id("compare")
    expect(question.get_by_test_id("compare-card")).to_have_count(3)
    card = page.locator(".st-key-taste_card")
    card.get_by_text("Your taste").click()
    expect(card.get_by_text("Held-out answers are predicted in ")).to_be_visible()
    expect(card.get_by_text("of the distance; ").first).to_be_visible()
    expect(card.get_by_role("img").first).to_be_visible()
    with page.expect_download() as saved:
        card.get_by_role("button", name="Download the picture").click()
    assert saved.value.suggested_filename == "my taste.png"
    assert Path(saved.value.path()).read_bytes().startswith(b"\x89PNG")
    card.get_by_text("Ask me what would narrow this").click()
    page.wait_for_selector(IDLE)
    before = question.get_attribute("data-turn")
    page.get_by_role("heading", name="Teach", exact=True).click()
    page.keyboard.press("s")
    expect(question).not_to_have_attribute("data-turn", str(before))
    expect(card.get_by_role("switch")).to_be_checked()
