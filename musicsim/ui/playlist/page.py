"""Playlist: a walk over what songs have in common; every step says why.

The hook ``written_playlists`` is ``function(snapshot) -> None``. It draws, below the saved playlists, those that were
written to other programs.

The hook ``below_playlist`` is ``function(snapshot: Snapshot, songs: Sequence[Song]) -> None``. It draws below the
owner's list, if there is one.
"""

import streamlit as st

from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.hooks import load_hooks
from musicsim.progress import Progress
from musicsim.public import is_public, visitor_may
from musicsim.ui.base.desk import AT_ONCE_S, desk, task_key, value_of, wait_for
from musicsim.ui.base.keys import Key
from musicsim.ui.base.openers import snapshot, walk
from musicsim.ui.base.sections import Tab, tabs_of
from musicsim.ui.base.text import plain
from musicsim.ui.components.empty import stop_without_songs
from musicsim.ui.playlist.actions import TROUBLE
from musicsim.ui.playlist.actions import draw as draw_songs
from musicsim.ui.playlist.draft import PLAYLIST, can_undo
from musicsim.ui.playlist.export import export_button
from musicsim.ui.playlist.request_form import request_form
from musicsim.ui.playlist.saved import follow_address, save_button, saved_lists, show_address
from musicsim.ui.playlist.sending import send_button
from musicsim.ui.playlist.view import absent_songs, dialect_of, show_heading, show_map, show_rows, show_steps_back
from musicsim.ui.playlist.weights_view import show_weights

_PLAYLIST, _WEIGHTS = "A playlist", "What leads from song to song"
# the form is longer than most screens; the player covers the lowest five rem
DRAW_CSS = """.st-key-playlist_draw {
  position: sticky; bottom: 4.5rem; z-index: 2; padding: 0.5rem 0; background: light-dark(#fbfaf7, #14191b);
}"""
_MANY = 20_000  # songs whose walk takes a second
SECTION: Key[str] = Key("playlist_section", lambda: _PLAYLIST, "what the Playlist page shows")


def _make_playlist(now: Snapshot, walker: Walk) -> None:
    """The request on the left, the list on the right."""
    follow_address(now)
    draft = PLAYLIST.get()
    if draft is not None:
        draft = draft.present(now)
        PLAYLIST.set(draft)
    saved = show_address(now)
    settings, listing = st.columns([1, 2], gap="large")
    st.html(f"<style>{DRAW_CSS}</style>")
    with settings:
        request_form(now, walker)
        st.button(
            "Generate a playlist", icon=":material/casino:", type="primary", width="stretch", key="playlist_draw",
            on_click=draw_songs, args=(now, walker),
        )  # fmt: skip
        saved_lists(now)
        for draw_written in load_hooks("written_playlists"):
            draw_written(now)
    with listing:
        trouble = TROUBLE.get()
        TROUBLE.set("")
        if trouble:
            st.error(plain(trouble), icon=":material/error:")
        if draft is None or not draft.song_ids:
            st.info("Set options (or none) and generate. Each step shows why the next song was picked.")
            if can_undo():
                show_steps_back()
            return
        shown = walker.explain(draft.song_ids, draft.taken, dialect_of(draft, walker))
        show_heading(now, walker, draft, shown)
        is_owner = not is_public()
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            if is_owner:
                save_button(now)
            export_button(now, [*shown.songs, *absent_songs(now, draft)])
            if is_owner:
                send_button(now, draft, shown)
            about = [f"Saved as “{plain(saved.name)}”."] if saved else []
            about += [f"Seed {draft.seed}."] if draft.seed is not None else []
            st.caption(" ".join(about))
        show_rows(now, walker, draft, shown)
        show_map(now, draft)
        if is_owner:
            for draw_below in load_hooks("below_playlist"):
                draw_below(now, shown.songs)


def _walker(now: Snapshot) -> Walk | None:
    """The walk; None, with a bar, while that of very many songs is being made."""

    def work(progress: Progress) -> Walk:
        progress("weighing what songs have in common", 0, 0)
        return walk(now)

    task = desk("walks").ask(task_key(now, "walk"), work)
    task.within(AT_ONCE_S if now.n_indexed > _MANY else None)
    wait_for([task])
    made: Walk | None = value_of(task)
    return made


@visitor_may
def draw() -> None:
    """Draw the page."""
    now = snapshot()
    st.title("Playlist", anchor=False)
    stop_without_songs(now)
    walker = _walker(now)
    if walker is None:
        return
    tabs = tabs_of(
        "playlist",
        {
            _PLAYLIST: Tab(_PLAYLIST, 10, [lambda now: _make_playlist(now, walker)]),
            _WEIGHTS: Tab(_WEIGHTS, 20, [lambda _: show_weights(walker)]),
        },
    )
    SECTION.get()
    section = st.segmented_control(
        "Show",
        list(tabs),
        key=SECTION.name,
        persist_state="session",
        label_visibility="collapsed",
        required=True,
        wrap=True,
    )
    tabs.get(section or "", tabs[_PLAYLIST]).draw(now)


if __name__ == "__main__":
    draw()
