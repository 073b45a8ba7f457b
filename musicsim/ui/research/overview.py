"""The overview of the Research page: one row per sub-page, with its main result."""

from collections.abc import Mapping

import streamlit as st

from musicsim.explorer import Snapshot
from musicsim.ui.base.keys import SECTIONS
from musicsim.ui.base.runtime import Container
from musicsim.ui.base.sections import Tab

_SECTION = SECTIONS["research"]
_UNGROUPED = "This library"
MORE = "More measurements"
"""Title of the group that is folded at first."""


def show_overview(snapshot: Snapshot, tabs: Mapping[str, Tab]) -> None:
    """List the tabs by group; a click on a row's title opens the tab."""
    groups: dict[str, list[str]] = {}
    for name, tab in tabs.items():
        groups.setdefault(tab.group or _UNGROUPED, []).append(name)
    for title, names in groups.items():
        if title == MORE:
            rows: Container = st.expander(f"{MORE} ({len(names)})", key="research_more")
        else:
            st.header(title, anchor=False)
            rows = st.container()
        with rows, st.container(gap="xsmall"):
            for name in names:
                _show_row(snapshot, name, tabs[name])


def show_title(title: str) -> None:
    """Show a tab's title, and the button that returns to the overview."""
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", key="research_title"
    ):
        st.title(title, anchor=False, width="content")
        st.button(
            "Back to Research", icon=":material/arrow_back:", key="research_back", type="tertiary",
            on_click=_SECTION.set, args=("",),
        )  # fmt: skip


def _show_row(snapshot: Snapshot, name: str, tab: Tab) -> None:
    title, text = st.columns([2, 3], gap=None, vertical_alignment="center")  # on a phone, the text is below the title
    title.button(
        tab.title, icon=":material/chevron_right:", key=f"research_to_{name}", type="tertiary",
        on_click=_SECTION.set, args=(name,),
    )  # fmt: skip
    with text:
        if tab.summary:
            tab.summary(snapshot, busy=False)
        elif tab.about:
            st.markdown(tab.about)
