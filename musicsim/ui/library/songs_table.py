"""The songs of a library as a table: filter, play, and correct the tags of one or many."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from musicsim._arrays import Int64Array
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library, Song
from musicsim.library.stores.tag_edits import EDITABLE
from musicsim.ui.base.text import shown
from musicsim.ui.components.listening import play_songs
from musicsim.ui.components.table_download import table_download

_KEY = "library_songs"
_SEVERAL = "several values: unchanged"
# Widths in pixels: Streamlit's own follow the first rows, which may have no artist.
_COLUMNS: dict[str, Any] = {
    "title": st.column_config.TextColumn(width=220),
    "artist": st.column_config.TextColumn(width=170),
    "album": st.column_config.TextColumn(width=170),
    "track": st.column_config.NumberColumn(width=50),
    "year": st.column_config.NumberColumn(width=60, format="%d"),
    "genre": st.column_config.TextColumn(width=130),
    "edited": st.column_config.TextColumn(width=70, help="Tags that were corrected here; the file is as it was."),
    "tempo": st.column_config.NumberColumn(help="Beats per minute; empty where there is no beat.", format="%d"),
    "key": st.column_config.TextColumn(help="The key that the pitches fit best; empty where none does."),
    "loudness": st.column_config.NumberColumn(help="LUFS: the higher, the louder.", format="%.1f"),
    "brightness": st.column_config.NumberColumn(help="Centroid of the spectrum, in Hz.", format="%d"),
    "energy": st.column_config.NumberColumn(help="How much the level rises, in dB per second.", format="%d"),
}
_ROW_PX = 35
_MAX_ROWS_SHOWN = 16
_MAX_LISTED = 1_000  # songs that are sent to the browser: of more, one finds some by typing
_AT_ONCE = 10_000  # songs of a download that are read together
_PLACES = "Title, artist, album, genre, year or folder"
_PLACES_OF_VISITORS = "Title, artist, album, genre or year"
_LABELS = {name: name.replace("_", " ").capitalize() for name in EDITABLE}


def _table(songs: Sequence[Song], edited: set[int], *, is_owner: bool) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "title": [shown(s.title) for s in songs],
            "artist": [s.artist or "" for s in songs],
            "album": [s.album or "" for s in songs],
            "track": pd.array([s.track for s in songs], dtype="Int64"),
            "year": pd.array([s.year for s in songs], dtype="Int64"),
            "genre": [s.genre or "" for s in songs],
            "seconds": [round(s.duration_s, 1) for s in songs],
            "tempo": [_rounded(s.tempo) for s in songs],
            "key": [s.key_words for s in songs],
            "loudness": [_rounded(s.loudness, 1) for s in songs],
            "brightness": [_rounded(s.brightness) for s in songs],
            "energy": [_rounded(s.energy) for s in songs],
            "notes": [s.notes for s in songs],
            "edited": ["edited" if s.id in edited else "" for s in songs],
        }
        | ({"file": [shown(s.path) for s in songs]} if is_owner else {})
    )


def _rounded(value: float | None, digits: int = 0) -> float | None:
    return None if value is None else round(value, digits)


@st.cache_resource(max_entries=8, show_spinner=False)
def _matching(folder: Path, revision: int, words: tuple[str, ...], _library: Library) -> Int64Array:
    return _library.ids_matching(words)


@st.cache_resource(max_entries=8, show_spinner=False)
def _listed(
    folder: Path, revision: int, words: tuple[str, ...], _library: Library, is_owner: bool
) -> tuple[list[Song], set[int], pd.DataFrame]:
    """The songs that are listed, which of them were edited, and their table."""
    songs = _library.songs(_matching(folder, revision, words, _library)[:_MAX_LISTED])
    edited = set(_library.edits.edited(song.id for song in songs))
    return songs, edited, _table(songs, edited, is_owner=is_owner)


def _whole_table(library: Library, ids: Int64Array, *, is_owner: bool) -> pd.DataFrame:
    edited = set(library.edits.edited())
    parts = [ids[start : start + _AT_ONCE] for start in range(0, max(1, len(ids)), _AT_ONCE)]
    return pd.concat([_table(library.songs(part), edited, is_owner=is_owner) for part in parts])


def songs_table(now: Snapshot, *, is_owner: bool) -> None:
    """Show the songs with a filter. Selected rows can be played; the owner sees their files and can edit them."""
    if not now.n_songs:
        st.info("No songs yet: add a folder of music or load the demo collection.", icon=":material/info:")
        return
    wanted = st.text_input(
        "Search songs", key="library_search", placeholder=_PLACES if is_owner else _PLACES_OF_VISITORS,
        label_visibility="collapsed",
    )  # fmt: skip
    key = (now.library.folder, now.revision, tuple(wanted.casefold().split()), now.library)
    ids = _matching(*key)
    songs, edited, table = _listed(*key, is_owner)
    actions = st.container(horizontal=True, vertical_alignment="center")  # above: a long table has its end far below
    event = st.dataframe(
        table, hide_index=True, key=_KEY, on_select="rerun", selection_mode="multi-row",
        column_config=_COLUMNS | ({} if any(s.notes for s in songs) else {"notes": None}), placeholder="",
        height=_ROW_PX * (min(len(songs), _MAX_ROWS_SHOWN) + 1) + 3,
    )  # fmt: skip
    # a filter may have been typed since the rows were marked
    chosen = [songs[row] for row in event.selection.rows if row < len(songs)]
    with actions:
        st.button(
            f"Play {len(chosen)} songs" if len(chosen) > 1 else "Play", icon=":material/play_arrow:",
            disabled=not chosen, on_click=play_songs, args=(now.library, chosen), key="library_play",
        )  # fmt: skip
        if is_owner:
            if st.button("Edit tags", icon=":material/edit:", disabled=not chosen, key="library_edit"):
                _edit(now.library, chosen)
            st.button(
                "Reset to file tags", icon=":material/undo:", key="library_undo",
                disabled=not any(s.id in edited for s in chosen),
                on_click=now.library.edits.undo, args=([s.id for s in chosen],),
            )  # fmt: skip
        table_download("songs", lambda: _whole_table(now.library, ids, is_owner=is_owner), "library_songs_file")
        first = f" The first {len(songs):,} are listed; a download has all." if len(songs) < len(ids) else ""
        what = "play or edit" if is_owner else "play"
        st.caption(f"{len(ids):,} of {now.n_songs:,} songs.{first} Select rows to {what} them.")


def _common(songs: Sequence[Song], name: str) -> tuple[str, bool]:
    """What all songs have in a tag, and whether they agree."""
    values = {getattr(song, name) for song in songs}
    return ("", False) if len(values) > 1 else (str(values.pop() or ""), True)


@st.dialog("Edit tags")
def _edit(library: Library, songs: Sequence[Song]) -> None:
    """Fields that all songs share; only what is changed is stored, and only in the library."""
    many = f"{len(songs)} songs" if len(songs) > 1 else f"“{shown(songs[0].title)}”"
    st.caption(f"{many}. The files are not changed: your edits are kept in this library.")
    changes: dict[str, Any] = {}
    with st.form("edit_tags", border=False):
        for name in EDITABLE:
            value, agree = _common(songs, name)
            typed = st.text_input(
                _LABELS[name], value, key=f"edit_{name}", placeholder="" if agree else _SEVERAL, max_chars=300
            )
            if typed != value:
                changes[name] = typed
        saved = st.form_submit_button("Save", type="primary", icon=":material/save:")
    if not saved:
        return
    try:
        library.edits.edit([song.id for song in songs], changes)
    except ValueError as error:
        st.error(str(error))
        return
    st.rerun()
