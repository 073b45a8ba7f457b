"""The verdict on a learned model: scores, settings, and the queries whose results changed most."""

from typing import Any

import pandas as pd
import streamlit as st

from musicsim.explorer import BETTER, LEARNED_KIND, NO_DIFFERENCE, WORSE, Snapshot
from musicsim.explorer.refresh.model_text import describe_split, figures, headline, path_rows, report_of, source_rows
from musicsim.library import ModelRecord, Song
from musicsim.ui.base import Key, kept, plain
from musicsim.ui.components import row_of, show_song_list, show_table, start_job, use_button
from musicsim.wording import count

_MAX_SETTINGS = 6


def show_verdict(snapshot: Snapshot, *, busy: bool) -> None:
    """Show the verdict on one learned model, by default the newest; without learned models, show nothing."""
    models = snapshot.library.models.all()
    reports = {m.id: (m, report) for m in models if (report := report_of(snapshot.library, m))}
    if not reports:
        return
    newest = list(reports)[-1]
    shown: Key[str] = Key(f"verdict_of_{newest}", lambda: newest, "id of the model whose verdict is shown")
    if shown.get() not in reports:
        shown.set(newest)
    if len(reports) > 1:
        st.selectbox("Model", list(reports), **shown.widget(), format_func=lambda i: reports[i][0].name, width=360)
    record, report = reports[shown.get()]
    _show_headline(snapshot, record, report, busy=busy)
    _show_scores(report)
    _show_changes(snapshot, report["changed"])


def _show_headline(snapshot: Snapshot, record: ModelRecord, report: dict[str, Any], *, busy: bool) -> None:
    outcome, sentence = headline(report)
    show, icon = {
        BETTER: (st.success, ":material/trending_up:"),
        NO_DIFFERENCE: (st.info, ":material/trending_flat:"),
        WORSE: (st.warning, ":material/trending_down:"),
    }[outcome]
    n_left = int(report.get("untried", 0)) if record.kind == LEARNED_KIND else 0
    show(f"**{plain(record.name)}{', first result' if n_left else ''}.** {plain(sentence)}", icon=icon)

    def try_others() -> None:
        start_job(snapshot.library, "train", name=record.name, settings=report["settings"] | {"quick": False})

    with st.container(horizontal=True):
        use_button(snapshot.library, record, where="verdict", is_primary=outcome == BETTER)
        if n_left:
            st.button(
                f"Try {count(n_left, 'more setting')}", icon=":material/double_arrow:", key="verdict_go_on",
                disabled=busy, on_click=try_others, help="Continues from this result; this takes minutes.",
            )  # fmt: skip


def _show_scores(report: dict[str, Any]) -> None:
    left, right = st.columns([3, 2], gap="large")
    with left:
        show_table(pd.DataFrame(figures(report)), name="verdict", key="train_verdict")
        st.caption(
            f"{plain(describe_split(report))} Scores are from models trained the same way on part of the data; "
            "the saved model is trained on all of it. Hubness is the skewness of the number of top tens in which a "
            "song appears."
        )
    with right:
        rows = path_rows(report)
        _show_table(rows[:_MAX_SETTINGS])
        which = "each setting" if len(rows) <= _MAX_SETTINGS else "the best settings"
        st.caption(f"Held-out quality of {which} tried; {report['untrained']:.3f} before training.")
        if len(rows) > _MAX_SETTINGS:
            with st.expander(f"{len(rows) - _MAX_SETTINGS} other settings"):
                _show_table(rows[_MAX_SETTINGS:])
        sources = source_rows(report)
        if sources:
            _show_table(sources)
            st.caption(
                "Each model's share of the distances after training, and its own score before training. "
                "Before training, all shares are equal."
            )


def _show_table(rows: list[dict[str, Any]]) -> None:
    st.table(pd.DataFrame(rows), hide_index=True, border="horizontal")


def _show_changes(snapshot: Snapshot, changes: list[dict[str, Any]]) -> None:
    ids = {i for change in changes for i in (change["query"], *change["before"], *change["after"])}
    songs = {song.id: song for song in snapshot.songs_by_id(ids)}
    changes_by_query = {change["query"]: change for change in changes if change["query"] in songs}
    if not changes_by_query:
        return
    st.markdown(f"**The {len(changes_by_query)} songs whose results changed most**")
    query, left, right = st.columns(3, gap="medium")
    with query:
        chosen = st.selectbox(
            "Query", list(changes_by_query), **kept("verdict_example"), format_func=lambda i: songs[i].label,
            label_visibility="collapsed",
        )  # fmt: skip
        change = changes_by_query[chosen]
        _show_songs(snapshot, [songs[change["query"]]], set(), "query")
    before, after = ([songs[i] for i in change[side] if i in songs] for side in ("before", "after"))
    with left:
        st.markdown("Nearest before training")
        _show_songs(snapshot, before, set(), "before")
    with right:
        st.markdown("Nearest after training")
        _show_songs(snapshot, after, {song.id for song in before}, "after")


def _show_songs(snapshot: Snapshot, songs: list[Song], known: set[int], side: str) -> None:
    rows = [row_of(song, why="also near before training" if song.id in known else "") for song in songs]
    show_song_list(snapshot.library, rows, key=f"verdict_{side}")
    if not songs:
        st.caption("These songs were removed.")
