"""The library's playlists: save, open, rename and delete them, and link to one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial

import streamlit as st

from musicsim.explorer import PlaylistDraft, Snapshot
from musicsim.explorer.playlists.draft import MAX_NAME, own_playlist, save_draft
from musicsim.library import OWN_PLAYLISTS, SavedPlaylist, Song
from musicsim.public import is_public
from musicsim.ui.base import DIALOG, Key, close_dialog, off_if, plain, shorten, subject_of, toast_errors
from musicsim.ui.components import show_playlist_row
from musicsim.ui.playlist.actions import PLAYLIST_TROUBLE
from musicsim.ui.playlist.draft import PLAYLIST, PLAYLIST_NAME, amend
from musicsim.ui.playlist.request_form import open_draft, playlists_of
from musicsim.wording import clock, count

_MAX_TITLE = 45  # so that two titles fit into a name
_MAX_LISTED = 8  # maximum number of playlists in sight; if there are more, the user types to search
_RENAME, _DELETE = "rename playlist", "delete playlist"  # names of dialogs; their subject is the playlist's id
_PARAMETER = "playlist"


@dataclass(slots=True)
class _State:
    """The proposed name, the name of a playlist that may be replaced, and if a link to a playlist was followed."""

    proposed: str = ""
    confirmed: str = ""
    is_followed: bool = False


_STATE: Key[_State] = Key("playlist_saving", _State, "state of the saved playlists")
_TEXT: Key[str] = Key("playlist_search", str, "part of the name of a saved playlist")
_NEW_NAME: Key[str] = Key("playlist_renamed", str, "new name of the playlist in the dialog")


def follow_address(snapshot: Snapshot) -> None:
    """Open the playlist that a link such as ``?playlist=3`` names, once per session."""
    text = st.query_params.get(_PARAMETER)
    if text is None or _STATE.get().is_followed:
        return
    _STATE.get().is_followed = True
    is_id = text.isascii() and text.isdigit() and len(text) < 19
    playlist = playlists_of(snapshot).get(int(text)) if is_id else None
    if playlist is None:
        PLAYLIST_TROUBLE.set(
            f"The link leads to playlist {text}, which is not in this library. It may have been deleted."
        )
    else:
        _open(snapshot, playlist)


def show_address(snapshot: Snapshot) -> SavedPlaylist | None:
    """If a saved playlist is shown, put its id in the URL and return it; otherwise return None."""
    _STATE.get().is_followed = True
    draft = PLAYLIST.get()
    saved = playlists_of(snapshot).get(draft.saved_id) if draft and draft.saved_id is not None else None
    # the id may belong to a playlist that has replaced this one
    if saved is None or draft is None or snapshot.present_ids(saved.song_ids) != draft.song_ids:
        st.query_params.pop(_PARAMETER, None)
        return None
    st.query_params[_PARAMETER] = str(saved.id)
    return saved


def _open(snapshot: Snapshot, playlist: SavedPlaylist) -> None:
    draft = PlaylistDraft.from_saved(playlist, snapshot)
    if not draft.song_ids:
        PLAYLIST_TROUBLE.set(
            f"The songs in “{playlist.name}” cannot be compared in this library. Add their files first."
        )
        return
    open_draft(snapshot, draft)
    PLAYLIST_NAME.set(playlist.name)


def show_saved(snapshot: Snapshot, *, busy: bool) -> None:
    """Show the library's playlists: the newest of the user's own, then imported ones; a field finds others by name.

    Lists that musicsim has generated for itself, such as daily mixes, are left out: their extensions show them.
    """
    playlists = [p for p in playlists_of(snapshot).values() if p.source == OWN_PLAYLISTS or not p.is_generated]
    st.header("Yours", anchor=False)
    if not playlists:
        st.caption("Playlists that you save appear here.")
        return
    text = ""
    if len(playlists) > _MAX_LISTED:
        text = st.text_input(
            "Find a playlist", **_TEXT.widget(), live=True, placeholder=f"Search {count(len(playlists), 'playlist')}",
            label_visibility="collapsed", width=360,
        )  # fmt: skip
    words = text.casefold().split()
    found = [p for p in playlists if all(word in f"{p.name} {p.source}".casefold() for word in words)]
    found.sort(key=lambda p: (p.source != OWN_PLAYLISTS, -p.created_at, p.name.casefold()))
    for playlist in found[:_MAX_LISTED]:
        _show_row(snapshot, playlist)
    if not found:
        st.caption(f"No playlist has “{plain(text.strip())}” in its name.")
    elif len(found) > _MAX_LISTED:
        st.caption(f"{count(len(found) - _MAX_LISTED, 'more playlist')}: type a part of a name to find one.")
    _show_dialogs(snapshot)


def _show_row(snapshot: Snapshot, playlist: SavedPlaylist) -> None:
    present = snapshot.present_ids(playlist.song_ids)
    where = "saved" if playlist.source == OWN_PLAYLISTS else f"from {playlist.source},"
    facts = [count(len(playlist.song_ids), "song"), clock(snapshot.duration_of(present))]
    facts += [f"{where} {_date(playlist.created_at)}"] if playlist.created_at else []
    actions: dict[str, Callable[[], None]] = {}
    if not is_public():
        actions = {"Rename": partial(_ask, _RENAME, playlist), "Delete": partial(_ask, _DELETE, playlist)}
    show_playlist_row(
        snapshot.library, playlist.name, " · ".join(facts), key=f"saved_{playlist.id}", song_ids=present,
        on_open=partial(_open, snapshot, playlist), actions=actions,
        nothing_to_play="" if present else "The songs are not in the library.",
    )  # fmt: skip


def _date(seconds: float) -> str:
    """Return the time if it is today, and the date otherwise, both in local time."""
    at = datetime.fromtimestamp(seconds)
    return f"today at {at:%H:%M}" if at.date() == date.today() else f"{at:%Y-%m-%d}"


def _ask(dialog: str, playlist: SavedPlaylist) -> None:
    _NEW_NAME.set(playlist.name)
    DIALOG.set((dialog, playlist.id))


def _show_dialogs(snapshot: Snapshot) -> None:
    for name, show in ((_RENAME, _rename_dialog), (_DELETE, _delete_dialog)):
        playlist = playlists_of(snapshot).get(subject_of(name))
        if playlist is not None:
            show(snapshot, playlist)


@st.dialog("Rename the playlist", on_dismiss=close_dialog)
def _rename_dialog(snapshot: Snapshot, playlist: SavedPlaylist) -> None:
    st.text_input("New name", **_NEW_NAME.widget(), max_chars=MAX_NAME)
    if st.button("Rename it", key="playlist_rename_it", type="primary"):
        _rename(snapshot, playlist)
        close_dialog()
        st.rerun()


@st.dialog("Delete the playlist", on_dismiss=close_dialog)
def _delete_dialog(snapshot: Snapshot, playlist: SavedPlaylist) -> None:
    st.write(f"“{plain(playlist.name)}” will be deleted. Its songs stay in the library.")
    if st.button("Delete it", key="playlist_delete_it", type="primary"):
        _delete(snapshot, playlist)
        close_dialog()
        st.rerun()


def _rename(snapshot: Snapshot, playlist: SavedPlaylist) -> None:
    name = _NEW_NAME.get().strip()
    if not name or name == playlist.name:
        return
    others = playlists_of(snapshot).values()
    if any((p.source, p.name, p.category) == (playlist.source, name, playlist.category) for p in others):
        st.toast(f"A playlist “{plain(name)}” already exists: choose a different name.", icon=":material/warning:")
        return
    with toast_errors():  # the playlist may have been deleted in the meantime
        snapshot.library.saved_playlists.rename(playlist.id, name)
        st.toast(f"Renamed to “{plain(name)}”.", icon=":material/check_circle:")


def _delete(snapshot: Snapshot, playlist: SavedPlaylist) -> None:
    snapshot.library.saved_playlists.delete(playlist.id)
    st.toast(f"“{plain(playlist.name)}” was deleted.", icon=":material/check_circle:")


def _save(snapshot: Snapshot) -> None:
    """Save the current playlist; an existing playlist with this name is replaced only after confirmation."""
    draft, name = PLAYLIST.get(), PLAYLIST_NAME.get().strip()
    if draft is None or not name:
        return
    if own_playlist(snapshot.library, name) is not None and _STATE.get().confirmed != name:
        _STATE.get().confirmed = name
        return
    with toast_errors(ValueError):
        amend(save_draft(snapshot.library, draft, name))
        _STATE.get().confirmed = ""
        st.toast(f"Saved as “{plain(name)}”.", icon=":material/check_circle:")


def propose_name(songs: Sequence[Song]) -> None:
    """Name the playlist after its first and last song, unless it has a name."""
    proposed = " → ".join(dict.fromkeys(shorten(song.title, _MAX_TITLE) for song in (songs[0], songs[-1])))
    if PLAYLIST_NAME.get().strip() in {"", _STATE.get().proposed}:
        PLAYLIST_NAME.set(proposed)
    _STATE.get().proposed = proposed


def save_button(snapshot: Snapshot) -> None:
    """Show a field for the name, and a button that saves the playlist."""
    with st.popover("Save", icon=":material/save:", key="playlist_save"):
        st.text_input("Name", **PLAYLIST_NAME.widget(), max_chars=MAX_NAME)
        name = PLAYLIST_NAME.get().strip()
        identity = (OWN_PLAYLISTS, None, name)
        same = next((p for p in playlists_of(snapshot).values() if (p.source, p.category, p.name) == identity), None)
        must_confirm = same is not None and _STATE.get().confirmed == name
        if same is not None and must_confirm:
            st.warning(
                f"“{plain(name)}” with {count(len(same.song_ids), 'song')} already exists and will be replaced.",
                icon=":material/warning:",
            )
        st.button(
            "Replace it" if must_confirm else "Save in the library", key="playlist_save_it", type="primary",
            on_click=_save, args=(snapshot,), **off_if(not name, "Enter a name first."),
        )  # fmt: skip
