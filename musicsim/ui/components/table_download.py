"""Tables as CSV.

These replace Streamlit's own download, which writes formulas in cells unescaped; ``client.disableDataExport`` in
``.streamlit/config.toml`` turns it off.
"""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from musicsim.library.disk.csv_cells import as_csv


def show_table(frame: pd.DataFrame, *, name: str, key: str) -> None:
    """Show a small table and a button that downloads it; parameters as in :func:`table_download`."""
    st.table(frame, hide_index=True, border="horizontal")
    table_download(name, lambda: frame, key)


def table_download(name: str, table: Callable[[], pd.DataFrame], key: str) -> None:
    """Show a button that downloads a table as CSV; `table` is called when it is pressed.

    `name` is the file's name without its ending, and `key` is unique on the page.
    """

    def content() -> bytes:
        frame = table()
        cells = frame.astype(object).where(frame.notna(), None)
        return as_csv(list(frame.columns), cells.itertuples(index=False))

    st.download_button(
        "Download as CSV", content, f"{name}.csv", "text/csv", key=key, icon=":material/download:",
        type="tertiary", on_click="ignore",
    )  # fmt: skip
