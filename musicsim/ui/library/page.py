"""The Library page: add music, follow its analysis, review songs and files, and change settings."""

import streamlit as st

from musicsim.explorer import Snapshot, jobs
from musicsim.public import is_public, visitor_may
from musicsim.ui.base import openers, plain
from musicsim.ui.base.sections import Tab, choose_tab, tabs_of
from musicsim.ui.components import watch_job
from musicsim.ui.library import review
from musicsim.ui.library.add_music import ADD, PROBLEM, show_ways_to_add
from musicsim.ui.library.listening_review import show_listening
from musicsim.ui.library.settings import show_folders, show_settings
from musicsim.ui.library.songs_table import show_songs
from musicsim.wording import count

_TIDY, _CONNECTIONS, _SETTINGS = "Tidy up", "Connections", "Settings"


@visitor_may
def draw() -> None:
    """Draw the page."""
    snapshot = openers.snapshot()
    library = snapshot.library
    st.title("Library", anchor=False)
    if is_public():
        show_songs(snapshot)
        st.caption("This is a demonstration: only the owner can add and change music.")
        return
    busy = jobs.current(library) is not None
    if not snapshot.n_songs:
        show_ways_to_add(snapshot, busy=busy)
    # containers that always exist, so that the page below does not move when their content changes
    sections, add = st.columns([4, 1])
    with st.container():
        if PROBLEM.get():
            st.error(plain(PROBLEM.get()), icon=":material/error:")
            PROBLEM.set("")
    with st.container():
        watch_job(library, revision=snapshot.revision)
    with sections:
        tab = _choose_tab(snapshot)
    if snapshot.n_songs:
        add = add.container(horizontal=True, horizontal_alignment="right")
        with add, st.popover("Add music", icon=":material/add:", type="primary", key=ADD, on_change="rerun"):
            show_ways_to_add(snapshot, busy=busy)
    tab.draw(snapshot)


def _choose_tab(snapshot: Snapshot) -> Tab:
    counts = review.count_to_tidy(snapshot)
    core = {
        "songs": Tab("Songs", 10, [show_songs]),
        "failed": Tab("Failed files", 20, [review.show_failures], group=_TIDY),
        "missing": Tab("Missing songs", 30, [review.show_missing], group=_TIDY),
        "same": Tab("Duplicates", 40, [review.show_duplicates], group=_TIDY),
        "artists": Tab("Artists", 50, [review.show_artists], group=_TIDY),
        "genres": Tab("Genres", 60, [review.show_genres], group=_TIDY),
        "listening": Tab("Listening", 65, [show_listening], group=_CONNECTIONS),
        "servers": Tab("Servers and players", 70, [], group=_CONNECTIONS),  # extensions add its parts
        "folders": Tab("Folders", 80, [show_folders], group=_SETTINGS),
        "settings": Tab("Options and backups", 90, [show_settings], group=_SETTINGS),
    }
    for name, n_items in counts.items():
        core[name].n_items = n_items
    tab = choose_tab("library", tabs_of("library", core))
    # next to the tabs, not in their labels, because a label should not change while the user clicks it
    facts = [f"{core[name].title}: {n:,}" for name, n in counts.items()]
    facts = facts if tab.group == _TIDY else [f"{sum(counts.values()):,} to tidy up"]
    st.caption(" · ".join([count(snapshot.n_songs, "song"), *facts]))
    return tab


if __name__ == "__main__":
    draw()
