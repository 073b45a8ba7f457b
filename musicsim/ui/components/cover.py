"""Covers of songs; songs without a cover get a note symbol."""

from urllib.parse import quote

import streamlit as st

from musicsim.library import Library, Song


def cover_address(library: Library, song_id: int | str) -> str:
    """Return the address of a song's cover; without a cover, the response is empty, which browsers do not report."""
    return f"/songs/{song_id}/cover?library={quote(library.name)}&quiet=1"


def show_cover(library: Library, song: Song) -> None:
    """Show the cover of a song, in a box of constant size."""
    address = cover_address(library, song.id).lstrip("/")  # relative, so that the app can be served under any path
    st.html(
        f"<div class='song-cover'><i style='background-image: url(&quot;{address}&quot;)'></i></div>", width="content"
    )
