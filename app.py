"""The application: Streamlit's pages with the routes for sound and the HTTP interface beside them."""

import streamlit as st

from musicsim.api import routes
from musicsim.ui.components.chart_script import chart_routes

base = st.get_option("server.baseUrlPath") or ""
app = st.App("pages/shell.py", routes=[*routes(base), *chart_routes(base)])
