"""The songs of a library as a table: filter and play songs, and edit the tags of one or many."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from musicsim._arrays import Int64Array
from musicsim.audio import DESCRIPTORS
from musicsim.explorer import Snapshot
from musicsim.library import Library, Song
from musicsim.library.stores.tag_edits import EDITABLE
from musicsim.public import is_public
from musicsim.ui.base import BY_STATE, DIALOG, close_dialog, subject_of
from musicsim.ui.components import show_play_button, table_download
from musicsim.wording import clean, clock, count

_KEY = "library_songs"
_EDIT = "edit tags"  # name of the dialog; its subject is a list of song ids
_SEVERAL = "several values: unchanged"
# Widths are in pixels. Streamlit would derive them from the first rows, which may have no artist.
_COLUMNS: dict[str, Any] = {
    "title": st.column_config.TextColumn(width=190),
    "artist": st.column_config.TextColumn(width=170),
    "length": st.column_config.TextColumn(width=70, alignment="right"),
    "folder": st.column_config.TextColumn(width=200),
    "album": st.column_config.TextColumn(width=130),
    "genre": st.column_config.TextColumn(width=100),
    "year": st.column_config.NumberColumn(width=60, format="%d"),
    "track": st.column_config.NumberColumn(width=50),
    "edited": st.column_config.TextColumn(
        width=70, help="Tags that were edited in this library; the file is unchanged."
    ),
    "key": st.column_config.TextColumn(help="The key that fits the pitches best; empty if no key fits."),
    **{
        name: st.column_config.NumberColumn(help=descriptor.about, format=f"%.{descriptor.digits}f")
        for name, descriptor in DESCRIPTORS.items()
    },
    "notes": st.column_config.TextColumn(),
    "file": st.column_config.TextColumn(),
}
_ROW_PX = 35
_MAX_ROWS_SHOWN = 16
_MAX_LISTED = 1_000  # maximum number of songs that are sent to the browser; the filter finds the others
_BATCH = 10_000  # number of songs that a download reads at a time
_LABELS = {name: name.replace("_", " ").capitalize() for name in EDITABLE}


def _table(songs: Sequence[Song], edited: set[int], *, is_owner: bool) -> pd.DataFrame:
    columns: dict[str, Any] = {
        "title": [clean(s.title) for s in songs],
        "artist": [s.artist or "" for s in songs],
        "album": [s.album or "" for s in songs],
        "track": pd.array([s.track for s in songs], dtype="Int64"),
        "year": pd.array([s.year for s in songs], dtype="Int64"),
        "genre": [s.genre or "" for s in songs],
        "seconds": [s.duration_s for s in songs],
        "key": [s.key_words for s in songs],
        **{name: [getattr(s, name) for s in songs] for name in DESCRIPTORS},
        "notes": [s.notes for s in songs],
        "edited": ["edited" if s.id in edited else "" for s in songs],
    }
    if is_owner:
        columns["file"] = [clean(s.path) for s in songs]
    digits = {name: descriptor.digits for name, descriptor in DESCRIPTORS.items()}
    return pd.DataFrame(columns).round({"seconds": 1} | digits)


_cache = st.cache_resource(max_entries=8, show_spinner=False, hash_funcs=BY_STATE)
_matching = _cache(Library.ids_matching)


@_cache
def _load_songs(library: Library, words: tuple[str, ...], is_owner: bool) -> tuple[list[Song], set[int], pd.DataFrame]:
    songs = library.songs(_matching(library, words)[:_MAX_LISTED])
    edited = set(library.edits.all(song.id for song in songs))
    table = _table(songs, edited, is_owner=is_owner)
    table["length"] = [clock(s.duration_s).rjust(8) for s in songs]  # padded, because as text, 10:05 comes before 4:51
    if is_owner:
        table["folder"] = [clean(s.place) for s in songs]
    return songs, edited, table


def _whole_table(library: Library, ids: Int64Array, *, is_owner: bool) -> pd.DataFrame:
    edited = set(library.edits.all())
    parts = [ids[start : start + _BATCH] for start in range(0, max(1, len(ids)), _BATCH)]
    return pd.concat([_table(library.songs(part), edited, is_owner=is_owner) for part in parts])


def show_songs(snapshot: Snapshot, *, busy: bool = False) -> None:
    """Show the songs with a filter. Users can play selected rows; the owner also sees files and can edit tags."""
    if not snapshot.n_songs:
        st.info("No songs yet: add a folder of music or load the demo collection.", icon=":material/info:")
        return
    library, is_owner = snapshot.library, not is_public()
    with st.container(horizontal=True):
        text = st.text_input(
            "Search songs", key="library_search", label_visibility="collapsed",
            placeholder="Title, artist, album, genre, year or folder" if is_owner
            else "Title, artist, album, genre or year",
        )  # fmt: skip
        actions = st.container(horizontal=True, width="content")
    words = tuple(text.casefold().split())
    ids = _matching(library, words)
    songs, edited, table = _load_songs(library, words, is_owner)
    found = f"{len(ids):,} of {count(snapshot.n_songs, 'song')}." if words else ""
    first = f"The first {len(songs):,} are listed; the download has all of them." if len(songs) < len(ids) else ""
    st.caption(f"{found} {first} Select rows to {'play or edit' if is_owner else 'play'} them.".strip())
    event = st.dataframe(
        table, hide_index=True, key=_KEY, on_select="rerun", selection_mode="multi-row",
        column_config=_COLUMNS, placeholder="", height=_ROW_PX * (min(len(songs), _MAX_ROWS_SHOWN) + 1) + 3,
        column_order=[name for name in _COLUMNS if name in table and (name != "notes" or table["notes"].any())],
    )  # fmt: skip
    table_download("songs", lambda: _whole_table(library, ids, is_owner=is_owner), "library_songs_file")
    # the user may have changed the filter since selecting rows
    chosen = [songs[row] for row in event.selection.rows if row < len(songs)]
    if chosen:
        with actions:
            _show_actions(library, chosen, edited, is_owner=is_owner)
    to_edit = subject_of(_EDIT)
    if to_edit is not None and (songs := library.songs(to_edit)):
        _edit(library, songs)


def _show_actions(library: Library, chosen: Sequence[Song], edited: set[int], *, is_owner: bool) -> None:
    ids = [song.id for song in chosen]
    label = f"Play {count(len(chosen), 'song')}" if len(chosen) > 1 else "Play"
    show_play_button(label, key="library_play", library=library, song_ids=ids)
    if is_owner:
        st.button("Edit tags", icon=":material/edit:", key="library_edit", on_click=DIALOG.set, args=((_EDIT, ids),))
    if is_owner and not edited.isdisjoint(ids):
        st.button(
            "Reset to file tags", icon=":material/undo:", key="library_undo",
            on_click=library.edits.undo, args=(ids,),
        )  # fmt: skip


@st.dialog("Edit tags", on_dismiss=close_dialog)
def _edit(library: Library, songs: Sequence[Song]) -> None:
    """Show the tags that songs share; save only tags that the user changes, and only in the library."""
    title = count(len(songs), "song") if len(songs) > 1 else f"“{clean(songs[0].title)}”"
    st.caption(f"{title}. Edits are saved in this library; your files are not changed.")
    changes: dict[str, Any] = {}
    with st.form("edit_tags", border=False):
        for name in EDITABLE:
            values = {getattr(song, name) for song in songs}
            value = str(values.pop() or "") if len(values) == 1 else ""
            text = st.text_input(
                _LABELS[name], value, key=f"edit_{name}", placeholder=_SEVERAL if values else "", max_chars=300
            )
            if text != value:
                changes[name] = text
        if not st.form_submit_button("Save", type="primary", icon=":material/save:"):
            return
    try:
        library.edits.edit([song.id for song in songs], changes)
    except ValueError as error:
        st.error(str(error))
        return
    close_dialog()
    st.rerun()
