"""Which library is meant, and its neighbours."""

import pytest

from musicsim.errors import LibraryError, NotFoundError
from musicsim.explorer.libraries import create_library, default_folder, library_folders, open_library


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tmp_path / "data" / "library"))


def test_the_environment_names_the_default(tmp_path):
    assert default_folder() == tmp_path / "data" / "library"


def test_without_it_a_checkout_keeps_its_library_in_data(monkeypatch):
    monkeypatch.delenv("MUSICSIM_LIBRARY")
    assert default_folder().parts[-2:] == ("data", "library")


def test_new_libraries_stand_beside_and_are_found(tmp_path):
    create_library("Jazz")
    (tmp_path / "data" / "no library").mkdir()
    assert [f.name for f in library_folders()] == ["library", "Jazz"]
    assert open_library("Jazz").folder == tmp_path / "data" / "Jazz"
    assert open_library("Jazz") is open_library("Jazz")
    assert open_library().name == "library"


@pytest.mark.parametrize("name", ["", "..", "a/b", "/abs", ".hidden", "x" * 200, "a\nb", "end."])
def test_names_that_lead_elsewhere_are_refused(name):
    with pytest.raises(LibraryError, match="cannot name a library"):
        create_library(name)


def test_a_taken_name_and_an_unknown_one_are_named():
    create_library("Jazz")
    with pytest.raises(LibraryError, match="taken"):
        create_library("Jazz")
    for name in ("Rock", "../data", "/"):
        with pytest.raises(NotFoundError, match="no library"):
            open_library(name)
