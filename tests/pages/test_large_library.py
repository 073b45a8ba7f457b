"""Pages of a library that is too large for lists of all songs."""

import pytest

from benchmarks.large_library import write_library
from musicsim.ui.base.frame import PAGES
from tests.pages.actions import open_page

N_SONGS = 1_500
MAX_OPTIONS = 200
MAX_ROWS = 1_000


@pytest.mark.long
def test_widgets_have_limited_number_of_options(tmp_path, monkeypatch):
    write_library(tmp_path / "library", N_SONGS).close()
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tmp_path / "library"))
    for name in PAGES:
        app = open_page(name)
        app.query_params["song"] = "1"
        app.run()
        assert not app.exception, name
        chosen_from = [*app.selectbox, *app.multiselect, *app.radio, *app.select_slider, *app.button_group]
        assert max((len(widget.options) for widget in chosen_from), default=0) <= MAX_OPTIONS, name
        assert max((len(table.value) for table in app.dataframe), default=0) <= MAX_ROWS, name


def test_search_finds_songs_beyond_listed_ones(tmp_path, monkeypatch):
    with write_library(tmp_path / "library", N_SONGS) as library:
        song = library.songs([N_SONGS])[0]
        n_found = len(library.ids_matching([song.path.stem.casefold()]))
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tmp_path / "library"))
    app = open_page("library")
    assert len(app.dataframe[0].value) == MAX_ROWS
    app.text_input(key="library_search").set_value(song.path.stem.upper()).run()
    assert str(song.path) in set(app.dataframe[0].value["file"])
    assert 0 < len(app.dataframe[0].value) == n_found < N_SONGS
