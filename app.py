"""What `streamlit run app.py` serves; the app itself is :mod:`musicsim.ui.app`."""

import streamlit as st

from musicsim.ui.app import SHELL, app_options

app = st.App(SHELL, **app_options())  # `streamlit run` looks for this very call in the text of the file
