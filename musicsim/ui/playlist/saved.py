"""Playlists of the library on the page: save, open, rename, delete, and the address that names one."""

from collections import Counter
from dataclasses import replace
from functools import partial

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import SavedPlaylist
from musicsim.library.stores.playlists import OWN_PLAYLISTS
from musicsim.public import is_public
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain, shown
from musicsim.ui.components.song_finder import Match, find_song, name_matches
from musicsim.ui.playlist.actions import TROUBLE
from musicsim.ui.playlist.draft import PLAYLIST, PlaylistDraft, amend, change, present_ids
from musicsim.ui.playlist.request_form import playlists_of

MAX_NAME = 100
_MAX_LISTED = 200  # playlists, above which one types
_PARAMETER = "playlist"

NAME: Key[str] = Key("playlist_name", lambda: "My playlist", "name under which the playlist is saved")
_SOURCE: Key[str] = Key("playlist_source", str, "where the playlists to choose from came from")
_WANTED: Key[int | None] = Key("playlist_saved", lambda: None, "id of the playlist that is chosen among them")
_RENAMED: Key[str] = Key("playlist_renamed", str, "name it is to have")
_CONFIRMED: Key[str] = Key("playlist_confirmed", str, "name of a playlist that may be replaced")
_READ: Key[bool] = Key("playlist_address_read", lambda: False, "whether the link to a playlist was followed")


# --- the address ----------------------------------------------------------------------------------


def follow_address(now: Snapshot) -> None:
    """Open the playlist of a link such as ``?playlist=3``, once a session."""
    asked = st.query_params.get(_PARAMETER)
    if asked is None or _READ.get():
        return
    _READ.set(True)
    known = asked.isascii() and asked.isdigit() and len(asked) < 19
    playlist = playlists_of(now).get(int(asked)) if known else None
    if playlist is None:
        TROUBLE.set(f"The link asks for playlist {asked}, which is not in this library: it may have been deleted.")
    else:
        _open(now, playlist)


def show_address(now: Snapshot) -> SavedPlaylist | None:
    """Keep the address at the playlist that is shown; that playlist, if it is one of the library's."""
    _READ.set(True)
    draft = PLAYLIST.get()
    saved = playlists_of(now).get(draft.saved_id) if draft and draft.saved_id is not None else None
    # ids are given again when a playlist is replaced
    if saved is None or draft is None or present_ids(now, saved.song_ids) != draft.song_ids:
        st.query_params.pop(_PARAMETER, None)
        return None
    st.query_params[_PARAMETER] = str(saved.id)
    return saved


# --- open, rename, delete -------------------------------------------------------------------------


def _open(now: Snapshot, playlist: SavedPlaylist) -> None:
    """Take a playlist into work, with the reasons that were saved with it."""
    draft = PlaylistDraft.opened(playlist, now)
    if not draft.song_ids:
        TROUBLE.set(f"None of the songs of “{playlist.name}” can be compared here: add their files first.")
        return
    change(draft)
    NAME.set(playlist.name)


def _rename(now: Snapshot, playlist: SavedPlaylist) -> None:
    name = _RENAMED.get().strip()
    others = playlists_of(now).values()
    if not name or name == playlist.name:
        return
    if any((p.source, p.name, p.category) == (playlist.source, name, playlist.category) for p in others):
        st.toast(f"There is a playlist “{plain(name)}” already: choose another name.", icon=":material/warning:")
        return
    try:
        now.library.saved_playlists.rename(playlist.id, name)
    except MusicsimError as error:  # it has gone meanwhile
        st.toast(plain(error), icon=":material/warning:")
        return
    st.toast(f"Renamed to “{plain(name)}”.", icon=":material/check_circle:")


def _delete(now: Snapshot, playlist: SavedPlaylist) -> None:
    now.library.saved_playlists.delete(playlist.id)
    st.toast(f"“{plain(playlist.name)}” was deleted.", icon=":material/check_circle:")


def _source_words(source: str, n: int) -> str:
    return f"{'saved here' if source == OWN_PLAYLISTS else f'from {source}'} ({n:,})"


def saved_lists(now: Snapshot) -> None:
    """Choose among the playlists of the library, those saved here first, to open, rename or delete one."""
    playlists = playlists_of(now)
    if not playlists:
        return
    n_of = Counter(p.source for p in playlists.values())
    sources = sorted(n_of, key=lambda source: (source != OWN_PLAYLISTS, source.casefold()))
    if _SOURCE.get() not in sources:
        _SOURCE.set(sources[0])
    shown_lists = st.expander(
        "Playlists of this library", icon=":material/folder_open:", key="playlist_lists", on_change="rerun"
    )
    if not shown_lists.open:
        return
    with shown_lists:
        if len(sources) > 1:
            _SOURCE.get()
            st.selectbox(
                "Source",
                sources,
                key=_SOURCE.name,
                persist_state="session",
                format_func=lambda s: _source_words(s, n_of[s]),
            )
        source = _SOURCE.get()
        listed = {p.id: p for p in playlists.values() if p.source == source}
        order = sorted(listed, key=lambda i: listed[i].name.casefold())
        if _WANTED.get() not in listed:
            _WANTED.set(order[0])
        if len(order) <= _MAX_LISTED:
            _WANTED.get()
            st.selectbox(
                "Playlist", order, key=_WANTED.name, persist_state="session",
                format_func=lambda i: _words(listed[i]),
                label_visibility="collapsed" if len(sources) == 1 else "visible",
            )  # fmt: skip
        else:
            find_song(
                "Playlist", key="playlist_saved_finder", search=partial(_matches, listed),
                on_pick=lambda _, value: _WANTED.set(int(value) if value.isdigit() else None),
                placeholder=f"Type to search {len(order):,} playlists",
            )  # fmt: skip
            st.caption(plain(_words(listed[_WANTED.get() or order[0]])))
        chosen = listed[_WANTED.get() or order[0]]
        _what_to_do(now, chosen)


def _matches(listed: dict[int, SavedPlaylist], text: str) -> list[Match]:
    """Playlists whose names hold a text; several may have one name."""
    by_name: dict[str, list[SavedPlaylist]] = {}
    for playlist in listed.values():
        by_name.setdefault(shown(playlist.name), []).append(playlist)
    return [
        Match("name", str(playlist.id), match.title, f"{len(playlist.song_ids)} songs")
        for match in name_matches(list(by_name), text)
        for playlist in by_name[match.value]
    ]


def _words(playlist: SavedPlaylist) -> str:
    n = len(playlist.song_ids)
    return f"{playlist.name} · {n} {'song' if n == 1 else 'songs'}"


def _what_to_do(now: Snapshot, playlist: SavedPlaylist) -> None:
    with st.container(horizontal=True, gap="small"):
        st.button("Open", icon=":material/open_in_new:", key="playlist_open", on_click=_open, args=(now, playlist))
        if is_public():
            return
        with st.popover("Rename", icon=":material/edit:", key=f"playlist_rename_{playlist.id}"):
            _RENAMED.get()
            st.text_input(
                "New name", key=_RENAMED.name, persist_state="session", max_chars=MAX_NAME, placeholder=playlist.name
            )
            st.button("Rename it", key="playlist_rename_it", on_click=_rename, args=(now, playlist))
        with st.popover("Delete", icon=":material/delete:", key=f"playlist_delete_{playlist.id}"):
            st.write(f"“{plain(playlist.name)}” will be deleted; its songs stay in the library.")
            st.button("Delete it", key="playlist_delete_it", on_click=_delete, args=(now, playlist))


# --- save -----------------------------------------------------------------------------------------


def _named(now: Snapshot, name: str) -> SavedPlaylist | None:
    """The playlist of this name that was saved here."""
    lists = (p for p in now.library.playlists(source=OWN_PLAYLISTS) if p.category is None)
    return next((p for p in lists if p.name == name), None)


def _save(now: Snapshot) -> None:
    """Save the playlist in work; one of the same name only after it was said that it will be replaced."""
    draft, name = PLAYLIST.get(), NAME.get().strip()
    if draft is None or not name:
        return
    if _named(now, name) is not None and _CONFIRMED.get() != name:
        _CONFIRMED.set(name)
        return
    try:
        now.library.add_playlists([(name, None, draft.song_ids, draft.details())], source=OWN_PLAYLISTS)
    except (MusicsimError, ValueError) as error:
        st.toast(plain(error), icon=":material/warning:")
        return
    _CONFIRMED.set("")
    saved = _named(now, name)
    amend(replace(draft, saved_id=saved.id if saved else None))
    st.toast(f"Saved as “{plain(name)}”.", icon=":material/check_circle:")


def save_button(now: Snapshot) -> None:
    """Save under a name."""
    NAME.get()
    with st.popover("Save", icon=":material/save:", key="playlist_save"):
        st.text_input("Name", key=NAME.name, persist_state="session", max_chars=MAX_NAME)
        name = NAME.get().strip()
        known = next(
            (p for p in playlists_of(now).values() if (p.source, p.category, p.name) == (OWN_PLAYLISTS, None, name)),
            None,
        )
        must_confirm = known is not None and _CONFIRMED.get() == name
        if must_confirm and known is not None:
            st.warning(
                f"There is a playlist “{plain(name)}” with {len(known.song_ids)} songs: it will be replaced.",
                icon=":material/warning:",
            )
        st.button(
            "Replace it" if must_confirm else "Save in the library", key="playlist_save_it", type="primary",
            on_click=_save, args=(now,), disabled=not name,
        )  # fmt: skip
