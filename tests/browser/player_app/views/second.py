"""A slow page that stops its script: the shell's own lines after it would never run."""

import time

import streamlit as st

st.header("Second page")
time.sleep(1.0)
st.write("slow part done")
st.button("Rerun here")
st.stop()
