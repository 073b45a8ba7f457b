"""The client of a tab, which is the player and Listen: it lives in the browser (``musicsim/web``) and owns the queue.

The frame mounts it on every page, tells it which library and model are open, and shows the pages that it asks for.
"""

from typing import Any

import streamlit as st

from musicsim.explorer.libraries import library_folders
from musicsim.explorer.playlists.draft import draft_queue
from musicsim.library import Library
from musicsim.public import is_public
from musicsim.ui.base import PAGES, component
from musicsim.ui.base.keys import LIBRARY, forget_library_state, read_event
from musicsim.ui.base.openers import active_library, find_chosen_model, snapshot
from musicsim.ui.base.reloads import follow_reload
from musicsim.ui.playlist.request_form import open_draft, plan_around, plan_from
from musicsim.ui.train.training_view import select_training

KEY = "musicsim-player"
"""Key of the component."""
_MAX_SONGS = 5_000


def mount(page: str) -> None:
    """Show the player, and mount the client; the shell calls this once per run, inside ``with st.bottom:``."""
    library, model = active_library(), find_chosen_model()
    is_owner = not is_public()
    data = {
        "library": library.name, "model": model.name if model else "", "modelId": model.id if model else "",
        "revision": library.revision, "isOwner": is_owner,
        "keepsPlays": is_owner and bool(library.settings["keep_plays"]),
        "session": follow_reload(read_event(KEY, "before")), "restores": page != "listen",
    }  # fmt: skip
    component("web/frame.js")(
        key=KEY, data=data, height="content", on_go_change=show_page, on_before_change=_do_nothing
    )


def _do_nothing() -> None:
    """Let the page run again: the next call of :func:`mount` reads the state, also if another page is open by then."""


def show_page() -> None:
    """Show the page that the client asks for, with what it asks for."""
    sent = read_event(KEY, "go")
    if not isinstance(sent, dict) or sent.get("page") not in PAGES:
        return
    follow_reload(sent.get("before"))  # first, because what the client asks for replaces the work before the reload
    library = _open(sent.get("library"))
    ids = _song_ids(library, sent.get("songs"))
    around = _song_ids(library, sent.get("around"))
    first = _song_ids(library, [sent.get("first")])
    if sent["page"] == "playlist" and ids:
        reasons = _reasons_of(ids, sent["songs"], sent.get("reasons"))
        open_draft(snapshot(), draft_queue(ids, reasons, _song_ids(library, sent.get("pins"))))
    elif sent["page"] == "playlist" and around:
        plan_around(around)
    elif sent["page"] == "playlist" and first:
        plan_from(first[0])
    elif sent["page"] == "train" and sent.get("tags") is True:
        select_training("tags")
    st.switch_page(PAGES[sent["page"]])


def _open(name: object) -> Library:
    if name != LIBRARY.get() and not is_public() and any(folder.name == name for folder in library_folders()):
        LIBRARY.set(str(name))
        forget_library_state()
    return active_library()


def _song_ids(library: Library, sent: object) -> list[int]:
    """Return the ids that the browser sent, without songs that are not in the library."""
    if not isinstance(sent, list) or len(sent) > _MAX_SONGS or not all(isinstance(one, int) for one in sent):
        return []
    present = {song.id for song in library.songs(sent)}
    return [one for one in sent if one in present]


def _reasons_of(ids: list[int], songs: list[int], reasons: Any) -> list[str]:
    """Return the reason of each song, as the browser sent it; empty without one."""
    is_valid = isinstance(reasons, list) and all(isinstance(one, str) for one in reasons)
    by_id = dict(zip(songs, reasons if is_valid else [], strict=False))
    return [by_id.get(one, "") for one in ids]
