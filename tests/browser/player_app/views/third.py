"""Fragments run without the shell."""

import songs
import streamlit as st

from musicsim.ui.base.keys import Key
from musicsim.ui.components import player

KNOWN: Key[int | None] = Key("test.known", lambda: None, "song that the player reported")


@st.fragment
def part() -> None:
    player.note_song(KNOWN.get(), KNOWN.set)
    if st.button("Play in fragment"):
        player.play([songs.OTHER, songs.LONG])
    st.button("Play in fragment callback", on_click=player.play, args=([songs.LONG, songs.OTHER],))
    if st.button("Enqueue in fragment"):
        player.enqueue([songs.SHORT])
    if st.button("Play in replaced run"):
        player.play([songs.SECOND, songs.LONG])
        st.rerun(scope="fragment")


st.header("Third page")
part()
