"""Script for `streamlit run app.py`; the app itself is :mod:`musicsim.ui.app`."""

import streamlit as st

from musicsim.ui.app import SHELL, app_options

app = st.App(SHELL, **app_options())  # `streamlit run` searches the text of this file for this call
