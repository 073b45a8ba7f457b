"""Filters by a range on pages that stay open while the library grows."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from musicsim.library import Library
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.keys import persistent_keys
from tests.command import run
from tests.pages.actions import open_page, press, said

AT_FIRST = [1980, 1981, 1982, 1983]
ALL = [0, 0, 1970, 1972, 1973, *AT_FIRST, 1990, 1992, 1993]
"""Years of the songs in :func:`growing` after :func:`grow`; 0 for songs without a year."""


@pytest.fixture
def growing(full):
    """A library whose files are missing, except those of four songs from 1980 to 1983."""
    later = [song for song in full.songs() if song.artist != "Artist noise"]
    full.edits.edit([song.id for song in later if song.year in (1971, 1991)], {"year": None})
    full.files.mark(missing=[song.path for song in later], back=())
    return full


def grow(library: Library) -> None:
    """Add songs from before and after the others, and two without a year; they also sound different."""
    library.files.mark(missing=(), back=[song.path for song in library.missing_songs()])


def open_playlist() -> AppTest:
    """Open the page that uses filters, with a playlist."""
    return press(open_page("playlist"), "playlist_draw")


def find_years(library: Library, app: AppTest) -> list[int]:
    """Return the years of all songs that the page can choose; 0 for songs without a year."""
    app.run()
    assert not app.exception
    app.session_state["playlist_length"] = len(library.songs())
    ids = press(app, "playlist_draw").session_state["playlist"].song_ids
    return sorted(song.year or 0 for song in library.songs(ids))


def printed(*command: object, library: Path) -> str:
    """Return the output of a command on one line."""
    return " ".join("".join(run(*command, library=library)).split())


def set_years(app: AppTest, first: int, last: int) -> None:
    next(slider for slider in app.slider if slider.label == "Years").set_value((first, last)).run()
    assert not app.exception


def reload(app: AppTest) -> AppTest:
    """Open the page in a new session with the values that survive a reload."""
    again = open_page("listen")
    for name in (key.name for key in persistent_keys()):
        if name in app.session_state:
            again.session_state[name] = app.session_state[name]
    again.run().switch_page(PAGES["playlist"]).run()
    assert not again.exception
    return again


def test_untouched_ranges_never_become_filters(growing):
    app = open_playlist()
    assert find_years(growing, app) == AT_FIRST
    grow(growing)
    for again in (app, reload(app)):
        assert find_years(growing, again) == ALL


@pytest.mark.long
def test_end_of_range_at_bound_follows_the_bound(growing):
    app = open_playlist()
    set_years(app, 1982, 1983)
    grow(growing)
    for again in (app, reload(app)):
        assert find_years(growing, again) == [1982, 1983, 1990, 1992, 1993]
    set_years(app, 1970, 1983)
    assert find_years(growing, app) == [1970, 1972, 1973, *AT_FIRST]
    set_years(app, 1970, 1993)
    assert find_years(growing, app) == ALL


def test_sentence_names_only_the_ends_that_were_chosen(growing):
    app = open_page("playlist")
    for years, words in (
        ((1982, 1983), "songs: years from 1982"), ((1980, 1982), "songs: years up to 1982"),
        ((1981, 1982), "songs: years 1981–1982"), ((1980, 1983), "all songs"),
    ):  # fmt: skip
        set_years(app, *years)
        (label,) = (
            one.proto.popover.label for one in app.get("popover") if one.proto.id.endswith("playlist_part_songs")
        )
        assert label.replace("\\", "") == words


def test_songs_left_out_without_a_year_are_counted(growing):
    grow(growing)
    note, library = "2 songs without a year left out", growing.folder
    app = open_page("playlist")
    assert note not in said(press(app, "playlist_draw"))
    set_years(app, 1975, 1993)
    assert note in said(press(app, "playlist_draw"))
    for command in (("playlist",), ("similar", 1)):
        assert note not in printed(*command, library=library)
        assert note in printed(*command, "--years", 1970, 1993, library=library)
