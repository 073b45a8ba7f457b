"""Songs that a lasso or a search marked: their table, and actions on all of them."""

import numpy as np
import pandas as pd
import streamlit as st

from musicsim._arrays import Int64Array
from musicsim.audio import HEARD
from musicsim.explorer.playlists.queue import MAX_EXAMPLES
from musicsim.explorer.search.query import sample_evenly
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.media.playlist_files import MIME, m3u8
from musicsim.public import is_public
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.keys import MARKED, Key
from musicsim.ui.base.text import off_if
from musicsim.ui.components.downloads import table_download
from musicsim.ui.components.listening import enqueue_songs, play_songs
from musicsim.ui.components.song_map import MAX_MARKED
from musicsim.ui.listen.seed import PLAY_AT, start_like
from musicsim.ui.playlist.request_form import plan_around
from musicsim.ui.train.training_view import select_training
from musicsim.wording import count

MAX_PLAYED = 500  # maximum number of songs that go into the player's queue together
_MAX_LISTED = 200
_MAX_AROUND = 25  # maximum number of songs that a playlist stays close to
_MAX_TAG = 60
_TAG: Key[str] = Key("selection_tag", str, "tag for the marked songs")


def show_selection(snapshot: Snapshot) -> None:
    """Show actions on the marked songs, if at least two are marked."""
    ids = MARKED.get()
    if len(ids) <= 1:
        return
    st.header(f"{count(len(ids), 'song')} marked", anchor=False)
    if len(ids) > MAX_MARKED:
        st.caption(f"{MAX_MARKED:,} shown with a ring.")
    first = snapshot.songs_by_id(ids[:MAX_PLAYED].tolist())
    label = "Play them" if len(first) == len(ids) else f"Play {len(first)} of them"
    with st.container(horizontal=True, key="listen_marked"):
        st.button(label, icon=":material/play_arrow:", on_click=play_songs, args=(snapshot.library, first))
        st.button("Queue", icon=":material/playlist_add:", on_click=enqueue_songs, args=(snapshot.library, first))
        if st.button("Playlist around them", icon=":material/queue_music:"):
            plan_around(sample_evenly(ids, _MAX_AROUND).tolist())
            st.switch_page(PAGES["playlist"])
        st.button(
            "Similar songs", icon=":material/graph_3:", key="selection_search", on_click=_search,
            args=(snapshot, ids.tolist()),
            help=f"Play songs like the marked ones, or like a sample if more than {MAX_EXAMPLES} are marked.",
        )  # fmt: skip
        st.button("Clear", icon=":material/close:", on_click=MARKED.set, args=(MARKED.default(),))
    is_owner = not is_public()
    expander = st.expander(
        "Table, export and tag" if is_owner else "Table and export", icon=":material/table_rows:",
        key="selection_table", on_change="rerun",
    )  # fmt: skip
    if not expander.open:
        return
    with expander:
        st.dataframe(_table(snapshot, ids[:_MAX_LISTED]), hide_index=True, height=240)
        if len(ids) > _MAX_LISTED:
            st.caption(f"The first {_MAX_LISTED} are shown; the download has all.")
        with st.container(horizontal=True):
            table_download("selection", lambda: _table(snapshot, ids), key="selection_csv")
            st.download_button(
                "Download as M3U", lambda: m3u8("Selection", snapshot.songs_by_id(ids.tolist())), "selection.m3u8",
                MIME["m3u8"], key="selection_m3u", icon=":material/download:", type="tertiary", on_click="ignore",
            )  # fmt: skip
        if is_owner:
            with st.container(horizontal=True, vertical_alignment="bottom"):
                tag = st.text_input("Tag", key=_TAG.name, max_chars=_MAX_TAG).strip()
                if st.button("Add tag", **off_if(not tag, "Enter a tag first.")):
                    _add_tag(snapshot, tag)
                if st.button(
                    "Add and train", **off_if(not tag, "Enter a tag first.", "Trains a model from your tags.")
                ):
                    _add_tag(snapshot, tag)
                    select_training("tags")
                    st.switch_page(PAGES["train"])


def _search(snapshot: Snapshot, ids: list[int]) -> None:
    start_like(snapshot, ids)
    PLAY_AT.set(0)


def _add_tag(snapshot: Snapshot, tag: str) -> None:
    ids = MARKED.get().tolist()
    snapshot.library.add_tags([{"song_id": song_id, "tag": tag, "weight": 1.0} for song_id in ids])
    st.toast(f"{count(len(ids), 'song')} have the tag “{tag}”.")


def _table(snapshot: Snapshot, ids: Int64Array) -> pd.DataFrame:
    """Return a table of the songs, read from columns, because creating an object per song would be slow."""
    rows = snapshot.rows_of(ids)
    rows = rows[rows >= 0]
    names = snapshot.names_at(rows)
    columns = snapshot.columns
    table = {"title": [title for title, _ in names], "artist": [by for _, by in names]}
    table |= {name: getattr(columns, name).texts(rows) for name in ("genre", "key", "mode")}
    table |= {"year": pd.array([y or None for y in columns.year[rows].tolist()], dtype="Int64")}
    return pd.DataFrame(table | {name: np.round(getattr(columns, name)[rows], 2) for name in HEARD})
