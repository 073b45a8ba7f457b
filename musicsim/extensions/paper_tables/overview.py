"""The rows of the papers on the overview of the Research page."""

from functools import partial

import streamlit as st

from musicsim.explorer import Snapshot
from musicsim.extensions.paper_tables.dots import draw_dots, draw_legend
from musicsim.extensions.paper_tables.papers import BEYOND, entries_of, summarize


def _summarize(key: str, _snapshot: Snapshot, /, *, busy: bool) -> None:
    """Draw how many claims of a paper hold, and a dot per table."""
    entries = entries_of(key)
    if not entries:
        st.markdown("The installed package does not include the experiments.")
        return
    legend = draw_legend(entries) if key == BEYOND else ""  # once, below the last row
    row = f'<div style="display:flex;flex-wrap:wrap;gap:0 1rem">{summarize(entries)}{draw_dots(entries)}</div>'
    st.html(row + legend)


thesis = partial(_summarize, "thesis")
icml2010 = partial(_summarize, "icml2010")
sigir2017 = partial(_summarize, "sigir2017")
www2012 = partial(_summarize, "www2012")
beyond = partial(_summarize, BEYOND)
