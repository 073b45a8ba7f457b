"""Tables as CSV for people: in place of Streamlit's own download, which writes text as it is, formulas too.

That one is turned off by ``client.disableDataExport`` in ``.streamlit/config.toml``.
"""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from musicsim.library.disk.csv_cells import as_csv


def saved_table(frame: pd.DataFrame, *, name: str, key: str) -> None:
    """Show a small table, and a button that hands it out; parameters as of :func:`table_download`."""
    st.table(frame, hide_index=True, border="horizontal")
    table_download(name, lambda: frame, key)


def table_download(name: str, table: Callable[[], pd.DataFrame], key: str) -> None:
    """A button that hands out a table as CSV.

    Parameters
    ----------
    name : str
        Name of the file, without its ending.
    table : callable
        Gives the table; called when the button is pressed.
    key : str
        Unique on the page.
    """

    def content() -> bytes:
        frame = table()
        cells = frame.astype(object).where(frame.notna(), None)
        return as_csv(list(frame.columns), cells.itertuples(index=False))

    st.download_button(
        "Download as CSV", content, f"{name}.csv", "text/csv", key=key, icon=":material/download:",
        type="tertiary", on_click="ignore",
    )  # fmt: skip
