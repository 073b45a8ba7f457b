"""Two changes at once: both are stored, whatever the other process or handle writes."""

import pytest

from musicsim.explorer.playlists.reason_weights import lower_reason, read_factors, restore_reason
from musicsim.library import Library
from tests.simultaneous import count_lost

_SETTINGS = ("shortest_s", "file_seconds")
_REASONS = ("year", "genre")


def _set(library: Library, side: int, number: int) -> None:
    library.set_setting(_SETTINGS[side], number)


def _is_set(library: Library, side: int, number: int) -> bool:
    return bool(library.settings[_SETTINGS[side]] == number)


@pytest.fixture
def folder(tmp_path):
    Library.open(tmp_path / "library").close()
    return tmp_path / "library"


@pytest.mark.parametrize("in_processes", [False, True], ids=["handles", "processes"])
def test_no_setting_is_lost(folder, in_processes):
    assert count_lost(folder, _set, n_pairs=200, in_processes=in_processes, kept=_is_set) == 0


def test_no_lowered_reason_is_lost(folder):
    def change(library, side, number):
        (restore_reason if number % 2 else lower_reason)(library, _REASONS[side])

    def kept(library, side, number):
        return (_REASONS[side] in read_factors(library)) == (number % 2 == 0)

    assert count_lost(folder, change, n_pairs=50, kept=kept) == 0


def test_no_split_is_lost(folder):
    def change(library, side, number):
        library.splits.keep(f"{side} {number}", {number: "test"})

    def kept(library, side, number):
        return f"{side} {number}" in library.splits.names()

    assert count_lost(folder, change, n_pairs=50, kept=kept) == 0


def test_no_colors_are_lost(folder):
    def change(library, side, number):
        library.update_colors(f"kind {side}", lambda known: known | {f"{number}": number})

    def kept(library, side, number):
        return library.colors(f"kind {side}").get(f"{number}") == number

    assert count_lost(folder, change, n_pairs=50, kept=kept) == 0


def test_library_stays_refreshed_only_if_nobody_else_changes_it(folder):
    with Library.open(folder) as library, Library.open(folder) as other:
        with library.note_refresh():
            library.note_change()
        with library.stay_refreshed():
            library.note_change()
            library.note_change()
        assert library.is_refreshed
        with library.stay_refreshed():
            library.note_change()
            other.note_change()
            library.note_change()
        assert not library.is_refreshed, "models and maps do not include the change by the other handle"


def test_refresh_does_not_count_changes_that_others_made_during_it(folder):
    with Library.open(folder) as library, Library.open(folder) as other:
        with library.note_refresh():
            library.note_change()
            other.note_change()
            library.note_change()
        assert not library.is_refreshed
