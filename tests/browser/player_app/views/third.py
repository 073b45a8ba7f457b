"""Fragments run without the shell."""

import songs
import streamlit as st

from musicsim.ui.components import player


@st.fragment
def part() -> None:
    if st.button("Play in fragment"):
        player.play([songs.OTHER, songs.LONG])
    st.button("Play in fragment callback", on_click=player.play, args=([songs.LONG, songs.OTHER],))
    if st.button("Enqueue in fragment"):
        player.enqueue([songs.SHORT])


st.header("Third page")
part()
