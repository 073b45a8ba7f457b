"""Pictures of songs on pages, with a note where a song has none."""

from urllib.parse import quote

import streamlit as st

from musicsim.library import Library, Song


def cover_address(library: Library, song_id: int | str) -> str:
    """Where the picture of a song is; the answer is empty where there is none, which browsers do not report."""
    return f"/songs/{song_id}/cover?library={quote(library.name)}&quiet=1"


def show_cover(library: Library, song: Song) -> None:
    """The picture of a song; its place is there from the beginning."""
    address = cover_address(library, song.id).lstrip("/")  # from where the app is served, wherever that is
    st.html(
        f"<div class='song-cover'><i style='background-image: url(&quot;{address}&quot;)'></i></div>", width="content"
    )
