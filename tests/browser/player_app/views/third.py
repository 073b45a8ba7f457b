"""A fragment, which runs without the shell."""

import songs
import streamlit as st


@st.fragment
def part() -> None:
    st.button("Rerun the fragment")
    songs.button("Play in fragment", songs.OTHER, songs.LONG)
    songs.button("Enqueue in fragment", songs.SHORT, act="enqueue")


st.header("Third page")
part()
