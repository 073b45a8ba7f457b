"""Export of the playlist as a file for other players."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from musicsim.explorer import Snapshot
from musicsim.library import PLAYLIST_FORMATS, PLAYLIST_MIME, Song
from musicsim.library.media.playlist_files import missing
from musicsim.public import is_public
from musicsim.ui.base import download, kept, plain
from musicsim.ui.playlist.draft import PLAYLIST_NAME


def file_name(extension: str, name: str | None = None) -> str:
    """Return a name, by default the playlist's, as a file name with this extension."""
    name = PLAYLIST_NAME.get() if name is None else name
    name = "".join(c for c in name.replace("→", "-") if c.isalnum() or c in " -_.,'()").strip(" .")
    return f"{name or 'playlist'}{extension}"


def export_button(snapshot: Snapshot, songs: Sequence[Song]) -> None:
    """Offer the playlist as a file, which includes songs with missing files if the format allows it."""
    is_owner = not is_public()  # visitors' playlists contain file names without folders
    with st.popover("Export", icon=":material/download:", key="playlist_export"):
        kind = st.segmented_control(
            "Format", list(PLAYLIST_FORMATS), default="m3u8", **kept("playlist_format"), required=True
        )
        base = None
        if is_owner and st.toggle("Paths relative to a folder", **kept("playlist_relative")):
            first = str(next(iter(snapshot.library.files.roots()), Path.home()))
            base = st.text_input("Folder the playlist will be saved in", first, **kept("playlist_folder")) or first
        gone = missing(songs)
        if gone:
            files = "The file of 1 song is" if len(gone) == 1 else f"The files of {len(gone)} songs are"
            st.warning(f"{files} missing: {plain(', '.join(song.label for song in gone))}.", icon=":material/warning:")
        try:
            content = PLAYLIST_FORMATS[kind](
                PLAYLIST_NAME.get(), songs, relative_to=Path(base).expanduser() if base else None
            )
        except ValueError as error:
            st.error(plain(error))
            return
        download(
            "Download",
            lambda: content,
            file_name(f".{kind}"),
            PLAYLIST_MIME[kind],
            key="playlist_download",
            type="primary",
        )
