"""Is a learned model better? Its verdict in words and figures, and the queries whose answers changed most."""

from typing import Any

import pandas as pd
import streamlit as st

from musicsim.explorer.learning.verdict import BETTER, NO_DIFFERENCE, WORSE
from musicsim.explorer.refresh.model_text import figures, headline, judged_on, path_rows, report_of, source_rows
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song
from musicsim.library.stores.models import ModelRecord
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain
from musicsim.ui.components.listening import follow
from musicsim.ui.components.song_list import Action, row_of, song_list
from musicsim.ui.components.table_download import saved_table
from musicsim.ui.train.models_view import delete_button, rename_button, use_button

_SHOWN: Key[str | None] = Key("verdict_of", lambda: None, "id of the model whose verdict is shown")
_NEWEST: Key[str | None] = Key("verdict_newest", lambda: None, "id of the newest model that has a verdict")
_BEST_SETTINGS = 6
_EXAMPLE: Key[int | None] = Key("verdict_example", lambda: None, "id of the query whose answers are shown")


def verdict(now: Snapshot, *, busy: bool) -> None:
    """The verdict on one learned model, the newest by default; nothing where none was learned."""
    reports = {m.id: (m, report_of(now.library, m)) for m in now.library.models.all()}
    reports = {model_id: pair for model_id, pair in reports.items() if pair[1]}
    if not reports:
        return
    newest = list(reports)[-1]
    if _NEWEST.get() != newest or _SHOWN.get() not in reports:
        _NEWEST.set(newest)
        _SHOWN.set(newest)
    st.subheader("4 · Is it better?", anchor=False)
    if len(reports) > 1:
        _SHOWN.keep()
        st.selectbox("Model", list(reports), key=_SHOWN.name, format_func=lambda i: reports[i][0].name, width=360)
    record, report = reports[str(_SHOWN.get())]
    _figures(now, record, report, busy=busy)
    _changed(now, report["changed"])


def _figures(now: Snapshot, record: ModelRecord, report: dict[str, Any], *, busy: bool) -> None:
    said, sentence = headline(report)
    show, icon = {
        BETTER: (st.success, ":material/trending_up:"),
        NO_DIFFERENCE: (st.info, ":material/trending_flat:"),
        WORSE: (st.warning, ":material/trending_down:"),
    }[said]
    show(f"**{plain(record.name)}**. {plain(sentence)}", icon=icon)
    with st.container(horizontal=True):
        use_button(now.library, record, where="verdict", is_primary=said == BETTER)
        rename_button(now.library, record, where="verdict")
        delete_button(now.library, record, where="verdict", busy=busy, label="Delete")
    left, right = st.columns([3, 2], gap="large")
    with left:
        saved_table(pd.DataFrame(figures(report)), name="verdict", key="train_verdict")
        st.caption(
            f"{plain(judged_on(report))} Scores are from models trained the same way on part of the data; "
            "the saved model is trained on all of it. Hubness is the skew of how often a song is among "
            "the ten nearest of others."
        )
    with right:
        _settings(report)
        sources = source_rows(report)
        if sources:
            st.table(pd.DataFrame(sources), hide_index=True, border="horizontal")
            st.caption(
                "Each model's share of the distances after training (before, all are equal), and how "
                "good each is alone before training."
            )


def _settings(report: dict[str, Any]) -> None:
    """The best settings that were tried, and all others folded."""
    rows = path_rows(report)
    st.table(pd.DataFrame(rows[:_BEST_SETTINGS]), hide_index=True, border="horizontal")
    which = "each setting" if len(rows) <= _BEST_SETTINGS else "the best settings"
    st.caption(f"Held-out quality of {which} tried; {report['untrained']:.3f} before training.")
    if len(rows) > _BEST_SETTINGS:
        with st.expander(f"{len(rows) - _BEST_SETTINGS} other settings"):
            st.table(pd.DataFrame(rows[_BEST_SETTINGS:]), hide_index=True, border="horizontal")


def _changed(now: Snapshot, changed: list[dict[str, Any]]) -> None:
    """One of the queries whose answers changed most: the five nearest before and after."""
    shown = {i for one in changed for i in (one["query"], *one["before"], *one["after"])}
    by_id = {song.id: song for song in now.songs_by_id(shown)}
    examples = {one["query"]: one for one in changed if one["query"] in by_id}
    if not examples:
        return
    if _EXAMPLE.get() not in examples:
        _EXAMPLE.set(next(iter(examples)))
    _EXAMPLE.keep()
    st.markdown(f"**The {len(examples)} songs whose answers changed most**")
    query, before, after = st.columns(3, gap="medium")
    with query:
        st.selectbox(
            "Query", list(examples), key=_EXAMPLE.name, format_func=lambda i: by_id[i].label,
            label_visibility="collapsed",
        )  # fmt: skip
        one = examples[_EXAMPLE.get()]
        _songs(now, [by_id[one["query"]]], set(), "query")
    found = {side: [by_id[i] for i in one[side] if i in by_id] for side in ("before", "after")}
    with before:
        st.markdown("Nearest before")
        _songs(now, found["before"], set(), "before")
    with after:
        st.markdown("Nearest after")
        _songs(now, found["after"], {song.id for song in found["before"]}, "after")


def _songs(now: Snapshot, songs: list[Song], known: set[int], side: str) -> None:
    """Songs to listen to; among the answers after learning, those that were there before are said to stay."""

    def act(action: Action) -> None:
        follow(action, now, songs)
        if action.kind == "similar":
            st.toast("Explore and Search by example now start from this song.", icon=":material/check_circle:")

    rows = [row_of(song, why="also before" if song.id in known else "") for song in songs]
    song_list(rows, key=f"verdict_{side}", on_action=act)
    if not songs:
        st.caption("These songs were removed.")
