"""The tabs on pages, with the sections that extensions add."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial

import streamlit as st

from musicsim.errors import ExtensionError
from musicsim.explorer import Snapshot, jobs
from musicsim.hooks import MENU, Section
from musicsim.public import is_allowed, is_public
from musicsim.registry import sections_of
from musicsim.ui.base.keys import SECTIONS
from musicsim.ui.base.text import plain


@dataclass(slots=True)
class Tab:
    """A tab of a page. Its `parts`, each a ``function(snapshot, *, busy)``, are drawn one below the other."""

    title: str
    place: int
    parts: list[Callable[..., None]]
    needs_songs: bool = True
    group: str = ""  # section of the page that contains this tab, or MENU; by default, the tab is its own section
    n_items: int = 0  # a section opens the first tab that has items
    about: str = ""  # a sentence about the tab, for an overview
    summary: Callable[..., None] | None = None  # draws the tab's row of an overview, instead of the sentence

    def draw(self, snapshot: Snapshot, **subject: object) -> None:
        """Draw the parts, whose `subject` may be a folder; visitors do not see the library's jobs."""
        busy = not is_public() and jobs.current(snapshot.library) is not None
        for part in self.parts:
            part(snapshot, busy=busy, **subject)


def draw_sections(part: str, snapshot: Snapshot, **subject: object) -> None:
    """Draw the sections that extensions add to a part of a page, such as “answers”, or “folder” with a `folder`."""
    Tab(part, 0, [load_and_draw for _, load_and_draw, _ in _offered(part)]).draw(snapshot, **subject)


def is_offered(load: Callable[[], object]) -> bool:
    """Return True if the current user may see a page or section; `load` is called only for visitors."""
    with suppress(ExtensionError):
        return not is_public() or is_allowed(load())
    return False


def tabs_of(page: str, core: dict[str, Tab]) -> dict[str, Tab]:
    """Add the sections from extensions to a page's tabs, drop tabs without parts, and sort the others by place."""
    for section, load_and_draw, summary in _offered(page):
        tab = Tab(section.title, section.place, [], section.needs_songs, section.group)
        tab.about, tab.summary = section.about, summary
        core.setdefault(section.tab or section.title, tab).parts.append(load_and_draw)
    return dict(sorted(((name, tab) for name, tab in core.items() if tab.parts), key=lambda item: item[1].place))


def _offered(page: str) -> Iterator[tuple[Section, Callable[..., None], Callable[..., None] | None]]:
    """Yield the sections of a page that the current user may see, with functions that draw them and their summaries."""
    for extension, section in sections_of(page):
        load = partial(extension.load, section.target)
        if is_offered(load):
            summary = partial(_load_and_draw, partial(extension.load, section.summary)) if section.summary else None
            yield section, partial(_load_and_draw, load), summary


def _load_and_draw(
    load: Callable[[], Callable[..., None]], snapshot: Snapshot, *, busy: bool, **subject: object
) -> None:
    try:
        draw = load()
    except ExtensionError as error:
        st.error(plain(error), icon=":material/error:")
    else:
        draw(snapshot, busy=busy, **subject)


def choose_tab(page: str, tabs: Mapping[str, Tab]) -> Tab:
    """Show a page's sections, a menu of rarely used ones, and the tabs of the open section; return the open tab."""
    key = SECTIONS[page]
    name = key.get() if key.get() in tabs else next(iter(tabs))
    sections: dict[str, list[str]] = {}
    for other, tab in tabs.items():
        sections.setdefault(tab.group or tab.title, []).append(other)
    title, names = next(item for item in sections.items() if name in item[1])
    in_menu = sections.pop(MENU, [])

    def open_section(title: str) -> None:
        key.set(next((other for other in sections[title] if tabs[other].n_items), sections[title][0]))

    with st.container(horizontal=True) if in_menu else nullcontext():
        if len(sections) > 1:
            shown = title if title in sections else None
            is_needed = {"required": True} if shown else {}
            _choose(st.segmented_control, page, "Section", list(sections), shown, open_section, wrap=True, **is_needed)
        if in_menu:
            _show_menu(page, in_menu, tabs, key.set)
    if name in in_menu:
        st.header(tabs[name].title, anchor=False)
    elif len(names) > 1:
        _choose(st.selectbox, page, title, names, name, key.set, format_func=lambda name: tabs[name].title, width=320)
    return tabs[name]


def _show_menu(page: str, names: Sequence[str], tabs: Mapping[str, Tab], act: Callable[[str], None]) -> None:
    """Show a menu with tabs that are rarely used."""
    key = f"menu_{page}"
    st.menu_button(
        MENU, list(names), key=key, format_func=lambda name: tabs[name].title, help="More sections",
        on_click=lambda: act(st.session_state[key]),
    )  # fmt: skip


def _choose(
    widget: Callable[..., object], page: str, label: str, options: Sequence[str], chosen: str | None,
    act: Callable[[str], None], **arguments: object,
) -> None:  # fmt: skip
    """Show a widget whose value is stored elsewhere, such as in the URL; `act` is called with the user's choice.

    The key names the page, so that a late request of one page does not change the value on the next page.
    """
    key = f"choose_{page}_{label}"
    st.session_state[key] = chosen
    widget(
        label, options, key=key, on_change=lambda: act(st.session_state[key]), label_visibility="collapsed", **arguments
    )
