"""Test of two ears in the browser: two people answer the same blind question, and get a playlist for both."""

import re

from playwright.sync_api import expect

from musicsim.library import Library
from tests.browser.actions import player_plays, rerun, rows, visit
from tests.extensions.two_ears.people import train_two


def test_two_people_answer_blind_and_get_a_playlist(page, address, home):
    with Library.open(home / "library") as library:
        train_two(library, 30)
        titles = [song.title for song in library.songs()]
    visit(page, address, "train", "?section=ears")
    main = page.get_by_test_id("stMain")
    expect(main.get_by_text(re.compile("^Ann's answers: Ann's model predicts "))).to_be_visible()
    expect(page.get_by_role("button", name="Song 1", exact=True)).to_be_visible()
    assert not any(title in main.inner_text() for title in titles), "names would tell more than the sound"
    page.get_by_role("button", name="The first song", exact=True).click()
    player_plays(page)
    for n, person in enumerate(("Ann", "Ben")):
        if person == "Ben":
            with rerun(page):
                main.get_by_test_id("stButtonGroup").get_by_text(person, exact=True).click()
        expect(main.get_by_text(f"Results ({n} and 0 answers)")).to_be_visible()
        page.get_by_role("button", name=re.compile("^Song 1 is more like the first")).click()
        expect(main.get_by_text(f"Results (1 and {n} answers)")).to_be_visible()
    main.get_by_text("Results (1 and 1 answers)").click()
    expect(main.get_by_text(re.compile(r"^You disagreed on 0 of \d+ "))).to_be_visible()
    expect(main.get_by_text(re.compile("^Ben's blind answers: Ben's model predicted "))).to_be_visible()
    with Library.open(home / "library") as library:
        one, other = library.judgments.all("two_ears")
    assert (one.context["person"], other.context["person"]) == ("Ann", "Ben")
    assert one.context["songs"] == other.context["songs"]
    page.get_by_role("button", name="Make a playlist for both").click()
    expect(rows(page)).to_have_count(12)
    expect(rows(page).nth(1)).to_contain_text(re.compile("Ann: .*Ben: "))
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved as “For Ann and Ben”.")).to_be_visible()
