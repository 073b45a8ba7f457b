"""A row for a playlist, a mix or a rule: cover, name, facts, a play button and a menu."""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from musicsim.library import Library
from musicsim.ui.base import plain
from musicsim.ui.components.play_button import show_play_button
from musicsim.ui.components.song_list import show_cover


def show_playlist_row(
    library: Library, name: str, facts: str, *, key: str, song_ids: Sequence[int], on_open: Callable[[], None],
    actions: Mapping[str, Callable[[], None]], nothing_to_play: str = "",
) -> None:  # fmt: skip
    """Show a row; `key` must be unique on the page, and start with the group that the row is in.

    A click on the name calls `on_open`. The menu has the words of `actions`, and calls the action that is chosen.
    `nothing_to_play` is the reason why the row has no songs, if it has none.
    """

    def choose() -> None:
        actions[st.session_state[f"{key}_menu"]]()

    with st.container(horizontal=True, vertical_alignment="center", gap="small", wrap=False, key=f"playlist_row_{key}"):
        show_cover(library, song_ids[0] if song_ids else None)
        with st.container(gap=None):
            st.button(plain(name), type="tertiary", key=f"{key}_open", on_click=on_open, wrap=True)
            st.caption(plain(facts))
        show_play_button(
            "", key=f"{key}_play", library=library, song_ids=song_ids, help=f"Play “{name}”",
            disabled_because=nothing_to_play,
        )  # fmt: skip
        if actions:
            st.menu_button(
                f"Options of “{plain(name)}”", list(actions), key=f"{key}_menu", on_click=choose,
                icon=":material/more_horiz:", type="tertiary",
            )  # fmt: skip
