"""Test of two ears in the browser: two people answer the same blind question, and get a playlist for both."""

import re

from playwright.sync_api import expect

from musicsim.library import Library
from tests.browser.actions import rerun, rows, visit
from tests.browser.test_compare import press
from tests.extensions.two_ears.people import train_two


def test_two_people_answer_blind_and_get_a_playlist(page, address, home):
    with Library.open(home / "library") as library:
        train_two(library, 30)
        titles = [song.title for song in library.songs()]
    visit(page, address, "train", "?section=ears")
    main = page.get_by_test_id("stMain")
    expect(main.get_by_text(re.compile("^Ann's answers: Ann's model predicts "))).to_be_visible()
    question = page.get_by_test_id("compare")
    expect(question.get_by_test_id("compare-card")).to_have_count(3)
    assert not any(title in main.inner_text() for title in titles), "names would tell more than the sound"
    for n, person in enumerate(("Ann", "Ben")):
        if person == "Ben":
            with rerun(page):
                main.get_by_test_id("stButtonGroup").get_by_text(person, exact=True).click()
        expect(main.get_by_text(f"Results ({n} and 0 answers)")).to_be_visible()
        press(page, question, "1")
        expect(main.get_by_text(f"Results (1 and {n} answers)")).to_be_visible()
    press(page, question, "z")
    expect(main.get_by_text("Results (1 and 0 answers)")).to_be_visible()
    expect(question.get_by_test_id("compare-undo")).to_have_count(0)  # the answer before it is the other person's
    press(page, question, "s")
    press(page, question, "1")
    expect(question.get_by_test_id("compare-last")).to_have_text("You said: 1 is more like the first.")
    assert not any(title in main.inner_text() for title in titles), "the other person gets the same questions"
    with rerun(page):
        main.get_by_test_id("stButtonGroup").get_by_text("Ann", exact=True).click()
    press(page, question, "1")
    main.get_by_text("Results (2 and 1 answers)").click()
    expect(main.get_by_text(re.compile(r"^You disagreed on 0 of \d+ "))).to_be_visible()
    expect(main.get_by_text(re.compile("^Ben's blind answers: Ben's model predicted "))).to_be_visible()
    with Library.open(home / "library") as library:
        first, *others = library.judgments.all("two_ears")
    assert [answer.context["person"] for answer in (first, *others)] == ["Ann", "Ben", "Ann"]
    assert first.context["songs"] != others[0].context["songs"], "Ben skipped Ann's question"
    assert others[0].context["songs"] == others[1].context["songs"]
    assert [answer.chosen for answer in (first, *others)] == [0, 0, 0]
    page.get_by_role("button", name="Make a playlist for both").click()
    expect(rows(page)).to_have_count(12)
    expect(rows(page).nth(1)).to_contain_text(re.compile("Ann: .*Ben: "))
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved as “For Ann and Ben”.")).to_be_visible()
