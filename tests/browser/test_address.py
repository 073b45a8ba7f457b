"""A page shows what its address names: links, Back, Forward."""

import re

import pytest
from playwright.sync_api import expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.actions import IDLE, row_action, row_ids, rows, show_tab, songs_of, switch, visit, wait_for_map
from tests.browser.patient import new_context
from tests.waiting import until

_LIFECYCLE = {"new_session", "script_finished"}


def test_back_and_forward_go_through_chosen_songs(page, address, home):
    first = songs_of(home)[0]
    visit(page, address, "listen", f"?song={first.id}")
    chosen = [first.id]
    for _ in range(2):
        row = rows(page).first
        chosen.append(int(row.get_attribute("data-song-id")))
        row_action(page, row, re.compile("^Similar songs"))
        expect(page).to_have_url(re.compile(rf"song={chosen[-1]}$"))
        expect(rows(page).first).not_to_have_attribute("data-song-id", str(chosen[-1]))
    titles = {song.id: song.title for song in songs_of(home)}
    for move, song in ((page.go_back, chosen[1]), (page.go_back, chosen[0]), (page.go_forward, chosen[1])):
        move()
        expect(page).to_have_url(re.compile(rf"song={song}$"))
        expect(page.get_by_test_id("stMain").get_by_text(titles[song], exact=True).first).to_be_visible()
        expect(page.get_by_test_id("stMain").get_by_role("button", name=f"Play “{titles[song]}”")).to_have_count(0)


def test_chosen_song_stays_across_pages(page, address, home):
    song = songs_of(home)[5]
    visit(page, address, query=f"?song={song.id}")
    expect(page.get_by_role("heading", name=song.title)).to_be_visible()
    switch(page, "playlist")
    switch(page, "listen")
    expect(page.get_by_role("heading", name=song.title)).to_be_visible()
    expect(page).to_have_url(re.compile(rf"/\?song={song.id}$"))


@pytest.mark.parametrize("path", ["explore", "search", "listen"])
def test_former_addresses_open_first_page(page, address, home, path):
    song = songs_of(home)[3]
    page.goto(f"{address}/{path}?song={song.id}")
    expect(page.get_by_role("heading", name=song.title)).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize(
    ("path", "name", "words"),
    [
        ("compare", "Teach", "Which one does not belong?"),
        ("evaluate", "Research", "More measurements"),
        ("evaluate?section=search", "Search", "at least"),
    ],
)
def test_former_pages_are_sections(page, address, path, name, words):
    page.goto(f"{address}/{path}")
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
    expect(page.get_by_text(words).first).to_be_visible()


def test_address_names_open_section(page, address):
    visit(page, address, "library", "?section=same")
    expect(page.get_by_text("No duplicates found.")).to_be_visible()
    show_tab(page, "Tidy up", "Artists")
    expect(page).to_have_url(re.compile("section=artists$"))
    show_tab(page, "Connections")
    expect(page).to_have_url(re.compile("section=listening$"))
    page.go_back()
    expect(page.get_by_text("No artist seems to have more than one spelling.")).to_be_visible()


def test_link_names_unknown_model_and_song(page, address):
    visit(page, address, query="?song=99999&model=Nobody")
    expect(page.get_by_text("Not found: the model “Nobody”.")).to_be_visible()
    wait_for_map(page)
    expect(page.get_by_role("status").filter(has_text="song 99999")).to_be_visible()
    expect(page.get_by_text("Start here")).to_be_visible()


def test_reload_keeps_session_of_tab(page, chromium, address, home):
    songs = songs_of(home)
    visit(page, address, "playlist")
    page.wait_for_selector(IDLE)  # a popover that is opened while the page is drawn closes again
    page.get_by_role("button", name="any song").last.click()
    page.get_by_role("combobox", name=re.compile("Pass through")).fill(songs[7].title)
    page.get_by_role("option", name=re.compile(songs[7].title)).click()
    expect(page.get_by_role("button", name=f"Remove {songs[7].title}")).to_be_visible()
    page.keyboard.press("Tab")  # which closes the box; Escape would empty it
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Generate").click()
    expect(rows(page)).to_have_count(12)
    drawn = row_ids(page)
    page.reload()
    expect(rows(page)).to_have_count(12)
    assert row_ids(page) == drawn
    expect(page.locator(".st-key-playlist_part_end")).to_contain_text(songs[7].title)
    # another visitor of the page finds nothing of it
    stranger = new_context(chromium).new_page()
    visit(stranger, address, "playlist")
    expect(stranger.get_by_text("Click a part of the sentence to change it.")).to_be_visible()
    stranger.context.close()


# Holds what the server sends, as a browser that is too busy to look at it.
_HOLD_MESSAGES = """
const listen = WebSocket.prototype.addEventListener;
const held = [];
WebSocket.prototype.addEventListener = function (type, receive) {
    const hold = event => window.isHeld ? held.push(() => receive(event)) : receive(event);
    listen.call(this, type, type === "message" ? hold : receive);
};
window.handOver = () => { window.isHeld = false; held.forEach(hand => hand()); };
window.handOverOneByOne = async () => {
    for (const hand of held) {  // also those that come meanwhile
        hand();
        await new Promise(done => setTimeout(done));
    }
    window.isHeld = false;
};
"""


def note_runs(page) -> list[str]:
    """Return a list that receives the beginnings and ends of runs, as the server sends them; messages can be held."""
    runs: list[str] = []

    def note(frame: bytes | str) -> None:
        if isinstance(frame, bytes) and (kind := ForwardMsg.FromString(frame).WhichOneof("type")) in _LIFECYCLE:
            runs.append(kind)

    page.on("websocket", lambda socket: socket.on("framereceived", note))
    page.add_init_script(_HOLD_MESSAGES)
    return runs


def wait_for_held_run(page, runs) -> None:
    """Wait until the server has sent the end of a run, which the browser does not receive yet."""
    until(lambda: page.evaluate("window.isHeld") and runs[-1:] == ["script_finished"])


def test_second_click_before_first_result_counts(page, address):
    """The second request has the address from before the first one."""
    runs = note_runs(page)
    visit(page, address, "library")
    page.wait_for_selector(IDLE)
    sections = page.get_by_test_id("stButtonGroup").first
    page.evaluate("window.isHeld = true")
    for name in ("Albums", "Tidy up"):
        runs.clear()
        sections.get_by_text(name, exact=True).click()
        wait_for_held_run(page, runs)
    page.evaluate("window.handOver()")
    expect(sections.get_by_role("radio", name="Tidy up")).to_be_checked()
    expect(page).to_have_url(re.compile("section=failed"))
    page.wait_for_selector(IDLE)
    expect(sections.get_by_role("radio", name="Tidy up")).to_be_checked()


@pytest.mark.parametrize("come_together", [False, True])
def test_late_click_on_left_page_keeps_new_page(page, address, home, come_together):
    """Both clicks come before the browser learns that the new page's script has started."""
    runs = note_runs(page)
    visit(page, address, query=f"?song={songs_of(home)[0].id}")
    expect(rows(page)).to_have_count(11)
    page.wait_for_selector(IDLE)
    play = page.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Play", exact=True).element_handle()
    link = page.get_by_test_id("stSidebarNavLink").filter(has_text="Library").element_handle()
    runs.clear()
    page.evaluate(
        "([link, play, isHeld]) => { window.isHeld = isHeld; link.click(); play.click(); }", [link, play, come_together]
    )
    if come_together:
        wait_for_held_run(page, runs)
        page.evaluate("window.handOver()")
    expect(page.get_by_role("heading", name="Library", exact=True)).to_be_visible()
    page.wait_for_selector(IDLE)
    switch(page, "train")
    expect(page.get_by_role("heading", name="Library", exact=True)).to_have_count(0)
    page.wait_for_selector(IDLE)
    expect(page.get_by_test_id("stMainBlockContainer").get_by_role("button").first).to_be_visible()


def test_return_to_page_before_the_last_run_ended(page, address):
    """By default, the request names messages that the browser deletes at the end of the last run."""
    runs = note_runs(page)
    visit(page, address, "playlist")
    page.wait_for_selector(IDLE)
    switch(page, "train")
    page.wait_for_selector(IDLE)
    page.evaluate("window.isHeld = true")
    for name in ("Library", "Playlists"):
        runs.clear()
        page.get_by_test_id("stSidebarNavLink").filter(has_text=name).click()
        wait_for_held_run(page, runs)
    page.evaluate("window.handOverOneByOne()")
    expect(page.get_by_role("heading", name="Playlists", exact=True)).to_be_visible()
    page.wait_for_selector(IDLE)
    expect(page.get_by_role("button", name="Generate")).to_be_visible()
    expect(page.get_by_text("Connection error")).to_have_count(0)
