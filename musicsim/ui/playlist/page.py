"""The Playlist page: playlists that follow the songs' common features, with a reason for every step.

The hook ``written_playlists`` is ``function(snapshot) -> None``. It draws the playlists that were written to other
programs, below the saved playlists.

The hook ``below_playlist`` is ``function(snapshot: Snapshot, songs: Sequence[Song]) -> None``. It draws below the
playlist, only for the owner.
"""

from functools import partial

import streamlit as st

from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.hooks import load_hooks
from musicsim.progress import Progress
from musicsim.public import is_public, visitor_may
from musicsim.ui.base import openers
from musicsim.ui.base.desk import AT_ONCE_S, desk, task_key, value_of, wait_for
from musicsim.ui.base.sections import Tab, choose_tab, tabs_of
from musicsim.ui.base.text import plain
from musicsim.ui.components.jobs_view import stop_without_songs
from musicsim.ui.playlist.actions import TROUBLE
from musicsim.ui.playlist.actions import draw as draw_songs
from musicsim.ui.playlist.draft import PLAYLIST, PlaylistDraft, can_undo
from musicsim.ui.playlist.export import export_button
from musicsim.ui.playlist.request_form import request_form
from musicsim.ui.playlist.saved import follow_address, save_button, show_address, show_saved
from musicsim.ui.playlist.sending import send_button
from musicsim.ui.playlist.view import absent_songs, dialect_of, show_heading, show_map, show_rows, show_undo
from musicsim.ui.playlist.weights_view import show_weights

_PLAYLIST, _WEIGHTS = "A playlist", "Weights"
# keeps the button visible: the form is longer than most screens, and the player covers the bottom
DRAW_CSS = """.st-key-playlist_draw {
  position: sticky; bottom: 4.5rem; z-index: 2; padding: 0.5rem 0; background: light-dark(#fbfaf7, #14191b);
}"""
_MANY = 20_000  # number of songs above which computing the walk takes more than a second


def _show_playlist(walker: Walk, snapshot: Snapshot, *, busy: bool) -> None:
    follow_address(snapshot)
    draft = PLAYLIST.get()
    if draft is not None:
        draft = draft.skip_absent(snapshot)
        PLAYLIST.set(draft)
    saved = show_address(snapshot)
    form, playlist = st.columns([1, 2], gap="large")
    st.html(f"<style>{DRAW_CSS}</style>")
    with form:
        request_form(snapshot, walker)
        st.button(
            "Generate a playlist", icon=":material/casino:", type="primary", width="stretch", key="playlist_draw",
            on_click=draw_songs, args=(snapshot, walker),
        )  # fmt: skip
        show_saved(snapshot)
        for draw_written in load_hooks("written_playlists"):
            draw_written(snapshot)
    with playlist:
        trouble = TROUBLE.get()
        TROUBLE.set("")
        if trouble:
            st.error(plain(trouble), icon=":material/error:")
        if draft is None or not draft.song_ids:
            st.info("Set options if you like, then generate a playlist. Each step shows why the next song was chosen.")
            if can_undo():
                show_undo()
        else:
            _show_draft(snapshot, walker, draft, f"Saved as “{plain(saved.name)}”." if saved else "")


def _show_draft(snapshot: Snapshot, walker: Walk, draft: PlaylistDraft, status: str) -> None:
    drawn = walker.explain(draft.song_ids, draft.edges, dialect_of(draft, walker))
    show_heading(snapshot, walker, draft, drawn)
    is_owner = not is_public()
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        if is_owner:
            save_button(snapshot)
        export_button(snapshot, [*drawn.songs, *absent_songs(snapshot, draft)])
        if is_owner:
            send_button(snapshot, draft, drawn)
        seed = f"Seed {draft.seed}." if draft.seed is not None else ""
        st.caption(f"{status} {seed}".strip())
    show_rows(snapshot, walker, draft, drawn)
    show_map(snapshot, draft)
    if is_owner:
        for draw_below in load_hooks("below_playlist"):
            draw_below(snapshot, drawn.songs)


def _walk(snapshot: Snapshot) -> Walk | None:
    """Return the walk; with many songs, show a progress bar and return None until the walk is computed."""

    def work(progress: Progress) -> Walk:
        progress("weighting the songs' common features", 0, 0)
        return openers.walk(snapshot)

    task = desk("walks").ask(task_key(snapshot, "walk"), work)
    task.wait(AT_ONCE_S if snapshot.n_indexed > _MANY else None)
    wait_for([task])
    walker: Walk | None = value_of(task)
    return walker


@visitor_may
def draw() -> None:
    """Draw the page."""
    snapshot = openers.snapshot()
    st.title("Playlist", anchor=False)
    stop_without_songs(snapshot)
    walker = _walk(snapshot)
    if walker is not None:
        core = {
            _PLAYLIST: Tab(_PLAYLIST, 10, [partial(_show_playlist, walker)]),
            _WEIGHTS: Tab(_WEIGHTS, 20, [lambda *_, **__: show_weights(walker)]),
        }
        choose_tab("playlist", tabs_of("playlist", core)).draw(snapshot)


if __name__ == "__main__":
    draw()
