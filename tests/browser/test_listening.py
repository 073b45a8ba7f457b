"""A listening history in the browser: dropped, previewed, imported with a misspelt song ticked, undone."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from musicsim.library import Library
from tests.browser.actions import APP, look_at, tick_close_spellings
from tests.browser.serving import serve

START, MINUTE = 1_700_000_000, 60


@pytest.fixture
def history(tiny_library: Library, tmp_path: Path) -> Path:
    """Scrobbles of one evening: four songs of the library, one of them misspelt, and one unknown song."""
    first, second, third, fourth = tiny_library.songs()[:4]
    tiny_library.edits.edit([fourth.id], {"artist": "Queen", "title": "Bohemian Rhapsody"})
    names = [(s.artist, s.title) for s in (first, second, third)]
    names += [("Queen", "Bohemian Rapsody"), ("Nobody", "Nothing")]
    path = tmp_path / "history.csv"
    lines = [f"{START + 4 * MINUTE * n},{artist},{title}\n" for n, (artist, title) in enumerate(names)]
    path.write_text("uts,artist,track\n" + "".join(lines))
    return path


@pytest.mark.parametrize("width", [1400, 420])
def test_listening_history_is_imported_and_undone(page, tiny_library, history, width):
    page.set_viewport_size({"width": width, "height": 900})
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(tiny_library.folder)}) as address:
        look_at(page, address, history)
        expect(page.get_by_text("3 (60%)")).to_be_visible()
        assert tiny_library.listening.imports() == [], "nothing is written before it is asked for"

        tick_close_spellings(page)
        page.get_by_role("button", name="Import", exact=True).click()
        expect(page.get_by_text("4 of 5 songs are in the library; 1 is saved and matched later")).to_be_visible()
        expect(page.get_by_role("link", name="Teach with this data")).to_be_visible()
        ids = [song.id for song in tiny_library.songs()[:4]]
        assert tiny_library.listening.sittings().tolist() == [[0, song_id] for song_id in ids]

        page.get_by_role("button", name="Undo", exact=True).click()
        page.get_by_role("button", name="Undo import").click()
        expect(page.get_by_text("Nothing imported yet.")).to_be_visible()
        assert len(tiny_library.plays().count) == 0
