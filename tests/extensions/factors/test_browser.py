"""Test of factors in the browser: similar rhythm only, the figures of two songs, and the way back to everything."""

from playwright.sync_api import expect

from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.requested import find_requested
from musicsim.explorer.snapshot.factors import Factors
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.factors.figures import measure_factors
from musicsim.library import Library
from tests.browser.actions import ask, row_ids, visit
from tests.waiting import until


def begins_with(page, ids: list[int]) -> bool:
    """Return True if the queue begins with these songs; near-equal ones change places."""
    return sorted(row_ids(page)[: len(ids)]) == sorted(ids)


def test_listener_finds_songs_with_the_same_rhythm(page, address, home):
    with Library.open(home / "library") as library:
        snapshot = take_snapshot(library)
        query = int(snapshot.row_ids[0])
        nearest, by_rhythm = (
            [hit.song.id for hit in find_requested(snapshot, query, SearchRequest(by=by))] for by in ("", "rhythm")
        )
        (figures,) = measure_factors(Factors(snapshot), query, by_rhythm[:1])
    assert sorted(nearest) != sorted(by_rhythm)
    visit(page, address, query=f"?song={query}")
    until(lambda: begins_with(page, nearest))
    page.get_by_role("button", name="Filters").click()
    page.get_by_text("Order and number").click()
    page.get_by_role("combobox", name="Like this in").select_option("rhythm")
    chip = page.get_by_role("button", name="Remove: rhythm")
    expect(chip).to_be_visible()
    until(lambda: begins_with(page, by_rhythm))
    page.keyboard.press("Escape")
    dialog = ask(page, row_ids(page).index(by_rhythm[0]))
    expect(dialog.get_by_text("The list shows the similarity in rhythm")).to_be_visible()
    expect(dialog.get_by_text("Factor by factor")).to_be_visible()
    for name in ("Timbre", "Rhythm", "Harmony"):
        expect(dialog.get_by_text(f"{name}: {figures[name.lower()]:.0f}%")).to_be_visible()
    page.keyboard.press("Escape")
    chip.click()
    expect(chip).to_have_count(0)
    until(lambda: begins_with(page, nearest))
