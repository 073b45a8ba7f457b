"""The application: Streamlit's pages with the routes for sound and the HTTP interface beside them."""

import streamlit as st
from starlette.middleware import Middleware

from musicsim.api import Guard, named_hosts, routes
from musicsim.ui.base.frame import SHELL
from musicsim.ui.base.script_errors import show_error
from musicsim.ui.components.chart_script import chart_routes

__all__ = ["app"]

_base = st.get_option("server.baseUrlPath") or ""
app = st.App(
    SHELL,
    routes=[*routes(_base), *chart_routes(_base)],
    middleware=[Middleware(Guard, names=named_hosts())],
    on_script_error=show_error,
)
