"""Buttons for each way of giving songs to the player."""

import songs
import streamlit as st

from musicsim.ui.components import player

st.header("First page")
st.text_input("Search songs")
left, right = st.columns(2)
with left:
    if st.button("Play in body"):
        player.play([songs.LONG, songs.OTHER, songs.NO_PEAKS])
    st.button("Play in callback", on_click=player.play, args=([songs.LONG, songs.SECOND, songs.OTHER], 1))
    if st.button("Play and rerun"):
        player.play([songs.OTHER])
        st.rerun()
    if st.button("Play preview"):
        player.play([songs.PREVIEW, songs.OTHER])
    if st.button("Play short"):
        player.play([songs.SHORT, songs.LONG])
    if st.button("Play loud"):
        player.play([songs.LOUD, songs.SOFT])
    if st.button("Play hostile"):
        player.play([songs.HOSTILE_TRACK])
        player.enqueue([songs.HOSTILE_TRACK])
with right:
    if st.button("Play failing"):
        player.play([songs.MISSING, songs.LONG])
    if st.button("Play only failing"):
        player.play([songs.MISSING, songs.MISSING_TOO])
    if st.button("Enqueue"):
        player.enqueue([songs.OTHER, songs.NO_PEAKS])
    if st.button("Enqueue one"):
        player.enqueue([songs.SHORT])
    st.button("Just rerun")
for line in range(30):
    st.write(f"line {line}")
st.write("last line")
