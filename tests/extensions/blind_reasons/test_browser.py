"""Test of the blind question about reasons in the browser: two hidden songs, two reasons, an answer, the truth."""

import re

from playwright.sync_api import expect

from musicsim.library import Library
from tests.browser.actions import player_plays, visit


def test_true_reason_is_told_after_the_answer(page, address, home):
    with Library.open(home / "library") as library:
        titles = [song.title for song in library.songs()]
        library.add_tags([
            {"song_id": song.id, "tag": tag, "weight": 1.0}
            for n, song in enumerate(library.songs())
            for tag in ("calm", "dark", "warm", "old")
            if (n * 7 + len(tag) * n * n + ord(tag[0])) % 5 < 3
        ])  # fmt: skip
    visit(page, address, "playlist")
    page.get_by_role("button", name="More options").click()
    page.get_by_role("spinbutton", name="Songs between two by the same artist").fill("0")
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-playlist_part_more")).to_contain_text("0 songs between artists")
    page.keyboard.press("Escape")
    page.goto(f"{address}/research?section=blind_reasons")
    main = page.get_by_test_id("stMain")
    expect(main.get_by_text("No answers yet.")).to_be_visible()
    page.get_by_role("button", name="Ask a question").click()
    song = page.get_by_role("button", name="Song 1", exact=True)
    expect(song).to_be_visible()
    expect(main.get_by_role("listitem")).to_have_count(2)
    assert not any(title in main.inner_text() for title in titles), "names would tell more than the sound"
    song.click()
    player_plays(page)
    page.get_by_role("button", name=re.compile("^Reason 1 is true")).click()
    truth = main.get_by_text(re.compile("^Reason [12] is true: both "))
    expect(truth).to_be_visible()
    expect(main).to_contain_text(re.compile("|".join(map(re.escape, titles))))
    n_found = int("Reason 1" in truth.inner_text())
    expect(main.get_by_text(f"You found the true reason in {n_found} of 1 question (")).to_be_visible()
    with Library.open(home / "library") as library:
        (answer,) = library.judgments.all("reasons")
    assert answer.chosen == 0
    assert answer.context["true"] == 1 - n_found
    page.get_by_role("button", name="Next question").click()
    expect(page.get_by_role("button", name="Song 1", exact=True)).to_be_visible()
    expect(truth).to_have_count(0)
