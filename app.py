"""Script for `streamlit run app.py`; the app itself is in :mod:`musicsim.ui.app`."""

import streamlit as st

from musicsim.ui.app import SHELL, app_options

app = st.App(SHELL, **app_options())  # `streamlit run` looks for this call in the source of this file
