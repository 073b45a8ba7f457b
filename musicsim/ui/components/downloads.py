"""Tables that can be saved as CSV, and charts that can be saved as pictures.

``client.disableDataExport`` in ``.streamlit/config.toml`` turns off Streamlit's own table download, which does not
escape formulas in cells.
"""

from collections.abc import Callable
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from musicsim.library import as_csv
from musicsim.ui.base import component, download


def show_table(frame: pd.DataFrame, *, name: str, key: str) -> None:
    """Show a small table and a button that downloads it; for the parameters, see :func:`table_download`."""
    st.table(frame, hide_index=True, border="horizontal")
    table_download(name, lambda: frame, key)


def table_download(name: str, table: Callable[[], pd.DataFrame], key: str) -> None:
    """Show a button that calls `table` and downloads the result as ``name.csv``; `key` must be unique."""

    def content() -> bytes:
        frame = table()
        cells = frame.astype(object).where(frame.notna(), None)
        return as_csv(list(frame.columns), cells.itertuples(index=False))

    download("Download as CSV", content, f"{name}.csv", "text/csv", key=key, type="tertiary")


def chart(figure: go.Figure, *, key: str, name: str, options: Any = st) -> None:
    """Show a chart, with buttons in `options` that save it as `name`; `key` must be a unique identifier on the page."""
    st.plotly_chart(figure, key=key, config={"displayModeBar": False})
    with options.container():
        component("ui/assets/save_chart.js")(key=f"{key}_save", data={"chart": key, "name": name}, height="content")
