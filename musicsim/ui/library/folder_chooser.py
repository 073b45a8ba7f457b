"""A field for a folder on the server's machine, and the folders in it to choose from."""

import os
from pathlib import Path

import streamlit as st

from musicsim.addresses import is_address
from musicsim.library import absolute
from musicsim.ui.base import plain

_MAX_LISTED = 12


def choose_folder(key: str) -> Path | None:
    """Show the field and the folders to choose from; return the folder, or address, in the field, if there is one."""
    st.text_input("Music folder", key=key, live=True, placeholder="~/Music")
    chosen = folder_in(key)
    if chosen is not None and is_address(chosen):
        return chosen
    here, begin = _find_place(chosen)
    folders = [folder for folder in list_folders(here) if folder.name.casefold().startswith(begin)]

    def choose(folder: Path) -> None:
        st.session_state[key] = os.fspath(folder)

    with st.container(horizontal=True, gap="small", key=f"{key}_folders"):
        if here != here.parent:
            st.button(
                "Up", icon=":material/arrow_upward:", key=f"{key}_up", type="tertiary", on_click=choose,
                args=(here.parent,), help=f"Show the folders in {here.parent}.",
            )  # fmt: skip
        for number, folder in enumerate(folders[:_MAX_LISTED]):
            st.button(
                plain(folder.name), icon=":material/folder:", key=f"{key}_{number}", type="tertiary", on_click=choose,
                args=(folder,),
            )  # fmt: skip
    n_more = len(folders) - _MAX_LISTED
    if n_more > 0:
        st.caption(f"{n_more:,} more folders in {plain(here)}: type the beginning of a name.")
    return chosen


def folder_in(key: str) -> Path | None:
    """Return the folder, or address, that is in the field now."""
    text = st.session_state.get(key, "").strip().strip("'\"")
    return absolute(text) if text else None


def _find_place(chosen: Path | None) -> tuple[Path, str]:
    """Return the folder whose folders to show, and the beginning of their names in lower case."""
    path = chosen or Path.home()
    if path.is_dir():
        return path, ""
    return (path.parent, path.name.casefold()) if path.parent.is_dir() else (Path.home(), "")


def list_folders(folder: Path) -> list[Path]:
    """Return the folders in a folder, without hidden ones, sorted by name; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            found = [entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir()]
    except OSError:
        return []
    return [folder / name for name in sorted(found, key=str.casefold)]
