"""Tests of the choice of a library, and of the libraries next to it."""

from shutil import rmtree

import pytest

from musicsim.errors import LibraryError, NotFoundError
from musicsim.explorer.libraries import (
    create_library,
    default_folder,
    demo_folder,
    library_folders,
    open_library,
    title_of,
    use_library,
)


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tmp_path / "data" / "library"))


def test_environment_sets_default_folder(tmp_path):
    assert default_folder() == tmp_path / "data" / "library"


def test_checkout_defaults_to_data_folder(monkeypatch):
    monkeypatch.delenv("MUSICSIM_LIBRARY")
    assert default_folder().parts[-2:] == ("data", "library")


def test_chosen_library_becomes_the_default_unless_the_environment_names_one(tmp_path, monkeypatch):
    jazz = create_library("Jazz")
    with pytest.raises(LibraryError, match="MUSICSIM_LIBRARY is set"):
        use_library("Jazz")
    monkeypatch.setattr("musicsim.explorer.libraries._home", lambda: jazz.parent)
    monkeypatch.delenv("MUSICSIM_LIBRARY")
    assert default_folder().name == "library"
    assert use_library("Jazz") == default_folder() == jazz
    with pytest.raises(NotFoundError, match=r"'Rock' does not exist\. Choose one of Jazz"):
        use_library("Rock")
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tmp_path / "other"))
    assert default_folder() == tmp_path / "other"
    monkeypatch.delenv("MUSICSIM_LIBRARY")
    rmtree(jazz)
    assert default_folder().name == "library", "the chosen one was deleted"


def test_new_libraries_are_found_next_to_default(tmp_path):
    create_library("Jazz")
    (tmp_path / "data" / "no library").mkdir()
    assert [f.name for f in library_folders()] == ["library", "Jazz"]
    assert open_library("Jazz").folder == tmp_path / "data" / "Jazz"
    assert open_library("Jazz") is open_library("Jazz")
    assert open_library().name == "library"


def test_default_library_with_demo_is_shown_as_demo(tmp_path):
    folders = [default_folder(), create_library("Jazz")]
    assert [title_of(folder) for folder in folders] == ["library", "Jazz"]
    for folder in folders:
        demo_folder(folder).mkdir(parents=True)
    assert [title_of(folder) for folder in folders] == ["Demo", "Jazz"]


@pytest.mark.parametrize("name", ["", "..", "a/b", "/abs", ".hidden", "x" * 200, "a\nb", "end."])
def test_rejects_unsafe_library_names(name):
    with pytest.raises(LibraryError, match="is not a valid library name"):
        create_library(name)


def test_rejects_taken_and_unknown_names():
    create_library("Jazz")
    with pytest.raises(LibraryError, match="taken"):
        create_library("Jazz")
    for name in ("Rock", "../data", "/"):
        with pytest.raises(NotFoundError, match="does not exist"):
            open_library(name)
