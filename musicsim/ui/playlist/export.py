"""The playlist as a file for other players."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song
from musicsim.library.media.playlist_files import FORMATS, MIME, missing
from musicsim.public import is_public
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain
from musicsim.ui.playlist.saved import NAME

_FORMAT: Key[str] = Key("playlist_format", lambda: "m3u8", "format of the exported list")
_RELATIVE: Key[bool] = Key("playlist_relative", lambda: False, "whether its paths are relative to a folder")
_FOLDER: Key[str] = Key("playlist_folder", str, "that folder")


def file_name(ending: str) -> str:
    """Make a file name of the list's name."""
    name = "".join(c for c in NAME.get() if c.isalnum() or c in " -_.,'()").strip(" .")
    return f"{name or 'playlist'}{ending}"


def export_button(now: Snapshot, songs: Sequence[Song]) -> None:
    """Download the list for other players; it names songs whose files are missing, as far as its format can."""
    for key in (_FORMAT, _RELATIVE, _FOLDER):
        key.get()
    is_owner = not is_public()  # playlists of visitors name files without folders
    if not _FOLDER.get() and is_owner:
        roots = now.library.files.roots()
        _FOLDER.set(str(roots[0] if roots else Path.home()))
    with st.popover("Export", icon=":material/download:", key="playlist_export"):
        st.segmented_control("Format", list(FORMATS), key=_FORMAT.name, persist_state="session", required=True)
        if is_owner:
            st.toggle("Paths relative to a folder", key=_RELATIVE.name, persist_state="session")
        if _RELATIVE.get() and is_owner:
            st.text_input("Folder the playlist will be saved in", key=_FOLDER.name, persist_state="session")
        gone = missing(songs)
        if gone:
            files = "The file of 1 song is" if len(gone) == 1 else f"The files of {len(gone)} songs are"
            st.warning(f"{files} missing: {plain(', '.join(song.label for song in gone))}.", icon=":material/warning:")
        base = Path(_FOLDER.get()).expanduser() if _RELATIVE.get() else None
        kind = _FORMAT.get()
        try:
            content = FORMATS[kind](NAME.get(), songs, relative_to=base)
        except ValueError as error:
            st.error(plain(error))
            return
        st.download_button(
            "Download", content, file_name(f".{kind}"), MIME[kind], key="playlist_download",
            icon=":material/download:", type="primary", on_click="ignore",
        )  # fmt: skip
