"""The library's playlists: save, open, rename and delete them, and link to one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from musicsim.explorer import PlaylistDraft, Snapshot
from musicsim.explorer.playlists.draft import MAX_NAME, own_playlist, save_draft
from musicsim.explorer.search.matches import TextMatch
from musicsim.library import OWN_PLAYLISTS, SavedPlaylist, Song
from musicsim.public import is_public
from musicsim.ui.base import Key, kept, off_if, plain, shorten, toast_errors
from musicsim.ui.components.song_finder import find_entry
from musicsim.ui.playlist.actions import PLAYLIST_TROUBLE
from musicsim.ui.playlist.draft import PLAYLIST, PLAYLIST_NAME, amend
from musicsim.ui.playlist.request_form import open_draft, playlists_of
from musicsim.wording import clean, count

_MAX_TITLE = 45  # so that two titles fit into a name
_MAX_LISTED = 200  # maximum number of playlists in a select box; if there are more, the user types to search
_PARAMETER = "playlist"


@dataclass(slots=True)
class _State:
    """The proposed name, the name of a playlist that may be replaced, and if a link to a playlist was followed."""

    proposed: str = ""
    confirmed: str = ""
    is_followed: bool = False


_STATE: Key[_State] = Key("playlist_saving", _State, "state of the saved playlists")
_CHOSEN: Key[int | None] = Key("playlist_saved", lambda: None, "id of the playlist chosen in the list")
_NEW_NAME: Key[str] = Key("playlist_renamed", str, "new name of the chosen playlist")


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


def show_saved(snapshot: Snapshot) -> None:
    """Show the library's playlists, starting with those saved in musicsim; the user can open or change one."""
    playlists = playlists_of(snapshot)
    if not playlists:
        if PLAYLIST.get() is None and not is_public():
            st.caption("Playlists that you save appear here.")
        return
    sizes = Counter(p.source for p in playlists.values())
    sources = sorted(sizes, key=lambda source: (source != OWN_PLAYLISTS, source.casefold()))
    expander = st.expander(
        f"Saved playlists ({len(playlists):,})", icon=":material/folder_open:", key="playlist_lists", on_change="rerun"
    )
    if not expander.open:
        return
    with expander:
        chosen = sources[0]
        if len(sources) > 1:
            chosen = st.selectbox(
                "Source", sources, **kept("playlist_source"),
                format_func=lambda s: f"{'saved in musicsim' if s == OWN_PLAYLISTS else f'from {s}'} ({sizes[s]:,})",
            )  # fmt: skip
        listed = {p.id: p for p in playlists.values() if p.source == chosen}
        _show_actions(snapshot, _choose_playlist(listed, is_labelled=len(sources) > 1))


def _choose_playlist(listed: dict[int, SavedPlaylist], *, is_labelled: bool) -> SavedPlaylist:
    order = sorted(listed, key=lambda i: listed[i].name.casefold())
    if _CHOSEN.get() not in listed:
        _CHOSEN.set(order[0])
    if len(order) <= _MAX_LISTED:
        st.selectbox(
            "Playlist", order, **_CHOSEN.widget(),
            format_func=lambda i: _label(listed[i]), label_visibility="visible" if is_labelled else "collapsed",
        )  # fmt: skip
        return listed[_CHOSEN.get() or order[0]]
    entries = [TextMatch("name", str(i), clean(listed[i].name), count(len(listed[i].song_ids), "song")) for i in order]
    find_entry(
        "Playlist", entries, key="playlist_saved_finder", on_pick=lambda value: _CHOSEN.set(int(value)),
        placeholder=f"Type to search {count(len(order), 'playlist')}",
    )  # fmt: skip
    chosen = listed[_CHOSEN.get() or order[0]]
    st.caption(plain(_label(chosen)))
    return chosen


def _label(playlist: SavedPlaylist) -> str:
    return f"{playlist.name} · {count(len(playlist.song_ids), 'song')}"


def _show_actions(snapshot: Snapshot, playlist: SavedPlaylist) -> None:
    args = (snapshot, playlist)
    with st.container(horizontal=True, gap="small"):
        st.button("Open", icon=":material/open_in_new:", key="playlist_open", on_click=_open, args=args)
        if is_public():
            return
        with st.popover("Rename", icon=":material/edit:", key=f"playlist_rename_{playlist.id}"):
            st.text_input("New name", **_NEW_NAME.widget(), max_chars=MAX_NAME, placeholder=playlist.name)
            st.button("Rename it", key="playlist_rename_it", on_click=_rename, args=args)
        with st.popover("Delete", icon=":material/delete:", key=f"playlist_delete_{playlist.id}"):
            st.write(f"“{plain(playlist.name)}” will be deleted. Its songs stay in the library.")
            st.button("Delete it", key="playlist_delete_it", on_click=_delete, args=args)


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
