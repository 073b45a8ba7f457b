"""The tabs on pages, with the sections that extensions add."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import streamlit as st

from musicsim.explorer import jobs
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.hooks import sections_of
from musicsim.public import is_allowed, is_public
from musicsim.ui.base.keys import Key


@dataclass(slots=True)
class Tab:
    """A tab of a page. Its `parts`, each a ``function(snapshot, *, busy)``, are drawn one below the other."""

    title: str
    place: int
    parts: list[Callable[..., None]]
    needs_songs: bool = True

    def draw(self, snapshot: Snapshot) -> None:
        """Draw the parts; visitors do not see the library's jobs."""
        busy = not is_public() and jobs.current(snapshot.library) is not None
        for part in self.parts:
            part(snapshot, busy=busy)


def is_offered(load: Callable[[], object]) -> bool:
    """Return True if the current user may see a page or section; `load` is called only for visitors."""
    return not is_public() or is_allowed(load())


def tabs_of(page: str, core: dict[str, Tab]) -> dict[str, Tab]:
    """Add the sections from extensions to a page's tabs, and sort the tabs by place."""
    for extension, section in sections_of(page):
        load = partial(extension.load, section.target)
        if is_offered(load):
            tab = Tab(section.title, section.place, [], section.needs_songs)
            core.setdefault(section.tab or section.title, tab).parts.append(partial(_load_and_draw, load))
    return dict(sorted(core.items(), key=lambda item: item[1].place))


def _load_and_draw(load: Callable[[], Callable[..., None]], snapshot: Snapshot, *, busy: bool) -> None:
    load()(snapshot, busy=busy)


def choose_tab(tabs: Mapping[str, Tab], key: Key[str]) -> Tab:
    """Show a page's tabs if there are several, and return the chosen one."""
    if len(tabs) > 1:
        st.segmented_control(
            "Show", list(tabs), format_func=lambda name: tabs[name].title, **key.widget(),
            label_visibility="collapsed", required=True, wrap=True,
        )  # fmt: skip
    return tabs.get(key.get() or "", tabs[key.default()])
