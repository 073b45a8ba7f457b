"""The application: Streamlit's pages with the routes for sound and the HTTP interface beside them."""

import streamlit as st

from musicsim.api import routes

app = st.App("pages/shell.py", routes=routes(st.get_option("server.baseUrlPath") or ""))
