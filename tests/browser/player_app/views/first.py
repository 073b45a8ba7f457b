"""Buttons for each kind of song."""

import songs
import streamlit as st

st.header("First page")
st.text_input("Search songs")
songs.button("Play", songs.LONG, songs.OTHER, songs.NO_PEAKS)
songs.button("Play from the second", songs.LONG, songs.SECOND, songs.OTHER, start=1)
songs.button("Play preview", songs.PREVIEW, songs.OTHER)
songs.button("Play short", songs.SHORT, songs.LONG)
songs.button("Play loops", *songs.LOOPS, songs.LONG, songs.OTHER)
songs.button("Play loud", songs.LOUD, songs.SOFT)
songs.button("Play hostile", songs.HOSTILE_TRACK, songs.HOSTILE_TRACK)
songs.button("Play failing", songs.MISSING, songs.LONG)
songs.button("Play only failing", songs.MISSING, songs.MISSING_TOO)
songs.button("Enqueue", songs.OTHER, songs.NO_PEAKS, act="enqueue")
songs.button("Enqueue one", songs.SHORT, act="enqueue")
st.button("Just rerun")
for line in range(30):
    st.write(f"line {line}")
st.write("last line")
