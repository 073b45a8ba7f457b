"""A grid of covers with names; each cover is a button."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from musicsim.explorer import cover_address
from musicsim.library import Library
from musicsim.ui.base import plain, shorten

_WIDTH = 150  # minimum width of a cover in pixels
_MAX_NAME = 60  # characters
_STYLE = """
[class*="st-key-cover_"] button {
  flex-direction: column; align-items: stretch; height: auto; padding: 0 0 0.4rem; border: 0;
}
[class*="st-key-cover_"] button::before {
  content: ""; width: 100%; aspect-ratio: 1; margin-bottom: 0.4rem; border-radius: 0.5rem;
  background: var(--st-secondary-background-color, #8882) center / cover no-repeat;
}
"""


@dataclass(frozen=True, slots=True)
class Tile:
    """A cover in the grid."""

    song_id: int  # the song whose cover is shown; unique in the grid
    name: str
    facts: str  # shown below the name
    on_click: Callable[[], None]


def show_tiles(library: Library, tiles: Sequence[Tile], *, key: str) -> None:
    """Show the tiles; `key` must be unique on the page."""
    # relative URLs, so that the app can be served under any path
    addresses = {f"cover_{key}_{tile.song_id}": cover_address(library, tile.song_id).lstrip("/") for tile in tiles}
    covers = (f'.st-key-{name} button::before {{ background-image: url("{url}") }}' for name, url in addresses.items())
    st.html(f"<style>{_STYLE}{''.join(covers)}</style>")
    grid = st.grid(min_column_width=_WIDTH, key=f"tiles_{key}")
    for name, tile in zip(addresses, tiles, strict=True):
        with grid.cell():
            st.button(plain(shorten(tile.name, _MAX_NAME)), key=name, on_click=tile.on_click, width="stretch")
            st.caption(plain(shorten(tile.facts, _MAX_NAME)), text_alignment="center")
