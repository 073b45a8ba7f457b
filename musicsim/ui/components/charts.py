"""Charts with buttons that save them; :mod:`musicsim.ui.components.table_download` saves tables."""

import plotly.graph_objects as go
import streamlit as st

from musicsim.ui.base.frame import asset


def chart(figure: go.Figure, *, key: str, name: str) -> None:
    """Show a chart, and buttons that save it as SVG and PNG under a name.

    `key` is unique on the page: letters, digits and underscores.
    """
    st.plotly_chart(figure, key=key, config={"displayModeBar": False})
    component = st.components.v2.component(
        "musicsim_save_chart", css=asset("save_chart.css"), js=asset("save_figure.js") + asset("save_chart.js")
    )
    component(key=f"{key}_save", data={"chart": key, "name": name}, height="content")
