"""The figures at the end of the dialog *Why?*."""

import streamlit as st

from musicsim.explorer.search.query import Example
from musicsim.explorer.snapshot.factors import Factors
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.factors.figures import measure_factors
from musicsim.public import visitor_may
from musicsim.ui.base.text import plain
from musicsim.wording import capitalize


@visitor_may
def draw(snapshot: Snapshot, query: int | Example, other_id: int) -> None:
    """Show a figure per factor for two songs of the library."""
    if isinstance(query, Example):
        return
    (figures,) = measure_factors(Factors(snapshot), query, [other_id])
    known = [f"{capitalize(plain(name))}: {figure:.0f}%" for name, figure in figures.items() if figure is not None]
    st.markdown(f"**Factor by factor**  \n{' · '.join(known)}")
    st.caption("Percentage of pairs of songs in this library that are farther apart than these two.")
