"""What the address of a page names is what is shown: links, Back, Forward."""

import re

from playwright.sync_api import expect

from tests.browser.actions import rows, songs_of, visit, wait_for_map


def test_back_and_forward_go_through_the_songs_that_were_chosen(page, address, home):
    first = songs_of(home)[0]
    visit(page, address, "search", f"?song={first.id}")
    chosen = [first.id]
    for _ in range(2):
        row = rows(page).first
        chosen.append(int(row.get_attribute("data-song-id")))
        row.get_by_role("button", name=re.compile("More like")).click()
        expect(page).to_have_url(re.compile(rf"song={chosen[-1]}$"))
        expect(rows(page).first).not_to_have_attribute("data-song-id", str(chosen[-1]))
    titles = {song.id: song.title for song in songs_of(home)}
    for move, song in (
        (page.go_back, chosen[1]), (page.go_back, chosen[0]), (page.go_forward, chosen[1]),
    ):  # fmt: skip
        move()
        expect(page).to_have_url(re.compile(rf"song={song}$"))
        expect(page.get_by_test_id("stMain").get_by_text(titles[song], exact=True).first).to_be_visible()
        expect(
            page.get_by_test_id("stMain").get_by_role("button", name=f"Play “{titles[song]}”")
        ).to_have_count(0)


def test_what_is_shown_stays_from_page_to_page(page, address, home):
    song = songs_of(home)[5]
    visit(page, address, "search", f"?song={song.id}")
    page.get_by_test_id("stSidebarNavLink").filter(has_text="Explore").click()
    expect(page.get_by_role("heading", name=song.title)).to_be_visible()
    expect(page).to_have_url(re.compile(rf"/\?song={song.id}$"))


def test_the_first_page_has_its_name_as_an_address_too(page, address, home):
    song = songs_of(home)[3]
    page.goto(f"{address}/explore?song={song.id}")
    expect(page.get_by_role("heading", name=song.title)).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_link_says_what_it_names_and_is_not_here(page, address):
    visit(page, address, query="?song=99999&model=Nobody")
    expect(page.get_by_text("Not found: the model “Nobody”, song 99999.")).to_be_visible()
    wait_for_map(page)
