"""The quality of a library's models: scores, genres, confusions, hubs and orphans."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from musicsim.explorer import RANKING_MEASURES, TRAINING_KINDS, Snapshot
from musicsim.explorer.evaluation import quality
from musicsim.explorer.evaluation.quality import list_known_faults
from musicsim.explorer.learning.supervision import Coverage, rank_kinds
from musicsim.explorer.requests.training import ANSWERS, JUDGMENTS
from musicsim.explorer.snapshot.map_columns import UNKNOWN_COLOR, label_colors
from musicsim.library import ModelRecord
from musicsim.library.stores.judgments import FORMS, RESULT
from musicsim.ui.base import (
    AT_ONCE_S,
    EXPLAINED_INTERVAL,
    Key,
    escape_for_chart,
    get_desk,
    interval,
    kept,
    openers,
    plain,
    task_key,
    value_of,
    wait_for,
)
from musicsim.ui.base.desk import Computation, count_done, result_of
from musicsim.ui.base.runtime import Container
from musicsim.ui.components import ask_coverage, chart, row_of, show_song_list, table_download
from musicsim.wording import count

_ALL: Key[str] = Key("evaluate_all", str, "name of the library for which all models are evaluated")
_KIND = "evaluate_kind"
_SPLIT: Key[str] = Key("evaluate_split", str, "name of the fixed split; empty for none")

MIN_SONGS = 20  # a smaller group's score says little about the group
_MAX_GENRES = 30
_MAX_LABEL = 32
_DENSE = 0.4  # smallest share that is shown as an opaque cell
_MAX_TEXT_CELLS = 16  # maximum number of genres for which numbers fit into the cells
_MAX_LISTED = 10
_MEASURES = {
    "same genre in the ten nearest": "Share of the ten nearest songs by other artists that have the same genre.",
    "average precision": "With a genre's songs as queries: how high similar songs rank among all songs.",
    "precision at 10": "With a genre's songs as queries: share of similar songs in the top ten.",
}


_TERMS = {
    "AUC": EXPLAINED_INTERVAL,
    "Hubness": "Hubness is 0 if no song is favored, and above 1 if a few songs are close to everything.",
    "Coverage": "Coverage is the share of songs in at least one top ten. Values after an arrow are with hub reduction.",
}
"""The meanings of columns of the table, in a sentence each."""


def scores_key(snapshot: Snapshot, kind: str) -> Hashable:
    """Return the task key for the scores with one kind of ground truth; it changes when the scores do."""
    # answers and thumbs do not change the revision, because that would redraw every page; they change this mark
    mark = snapshot.library.judgments.mark(*{ANSWERS: FORMS, JUDGMENTS: (RESULT,)}.get(kind, ()))
    return task_key(snapshot, f"scores by {kind} {mark} split {_SPLIT.get()}")


def _ask_scores(snapshot: Snapshot, kind: str) -> Computation:
    split = _SPLIT.get() or None
    return get_desk().ask(
        scores_key(snapshot, kind),
        lambda progress: quality.measure_scores(snapshot, kind, split=split, progress=progress),
    )


def _scores(snapshot: Snapshot, kind: str) -> quality.KindScores | None:
    scores: quality.KindScores | None = result_of(get_desk().find(scores_key(snapshot, kind)))
    return scores


def _ask_lists(snapshot: Snapshot) -> Computation:
    return get_desk().ask(
        task_key(snapshot, "lists"), lambda progress: quality.measure_lists(snapshot, progress=progress)
    )


def show_library(snapshot: Snapshot, *, busy: bool) -> None:
    """Show the quality of a library's models, starting with the chosen one."""
    coverage = ask_coverage(snapshot)
    is_covered = coverage.wait(AT_ONCE_S)
    # one container per part, so that parts do not move or appear twice
    verdict, more, progress, rest = st.container(), st.popover("More"), st.container(), st.container()
    kind = choose_kind(value_of(coverage), more)
    _choose_split(snapshot, more)
    lists = _ask_lists(snapshot)
    scores = _ask_scores(snapshot, kind) if kind else None
    tasks = [coverage, *([scores] if scores else []), lists]
    models = snapshot.library.models
    own_id = snapshot.record.id if snapshot.record else None
    others = [record for record in models.all() if record.id != own_id and models.is_whole(record)]
    if _ALL.get() == snapshot.library.name and kind:
        for record in others:
            other = openers.snapshot(record.id)
            tasks += [_ask_scores(other, kind), _ask_lists(other)]
    if scores is not None:
        scores.wait(AT_ONCE_S)
    lists.wait(AT_ONCE_S)
    n_shown = is_covered + count_done(tasks[1:])
    if kind:
        with verdict:
            _models_table(snapshot, others, kind, more)
    with progress:
        wait_for(tasks, n_shown)
    both = value_of(lists)
    if both is not None:
        with rest:
            _show_lists(snapshot, both, value_of(scores) if scores else None, more)


def summarize_library(snapshot: Snapshot, *, busy: bool) -> None:
    """Show the verdict on the model in use as a row of the overview; it is measured if necessary."""
    record = snapshot.record
    if record is None or snapshot.n_indexed < 2:
        st.markdown("There are no songs to compare yet.")
        return
    coverage = ask_coverage(snapshot)
    tasks, n_shown = [coverage], int(coverage.wait(AT_ONCE_S))
    kinds = [c.kind for c in rank_kinds(value_of(coverage) or [])]
    if kinds:
        kind = st.session_state.get(_KIND)
        kind = kind if kind in kinds else kinds[0]
        scores = _ask_scores(snapshot, kind)
        tasks.append(scores)
        n_shown += int(scores.wait(AT_ONCE_S))
        claim = _claim(record, _scores(snapshot, kind))
        if claim:
            st.markdown(f"{claim}.")
    elif n_shown:
        st.markdown("This library has no data about similar songs yet.")
    wait_for(tasks, n_shown)


def choose_kind(covered: list[Coverage] | None, options: Any = st) -> str | None:
    """Let the user choose a kind of ground truth; return None if there is none, or while coverage is computed.

    `options` is the container for the choice.
    """
    if covered is None:
        return None
    available = {c.kind: c for c in rank_kinds(covered)}
    if not available:
        st.info(
            "This library has no data about similar songs yet. Import plays or playlists, or give songs genres or "
            "tags. The measures below do not need such data.", icon=":material/info:",
        )  # fmt: skip
        return None
    kind = options.selectbox(
        "Ground truth", list(available), **kept(_KIND),
        help="A model's rankings are compared with these data.",
        format_func=lambda name: f"{TRAINING_KINDS[name].words} ({available[name].share:.0%} of all songs)",
    )  # fmt: skip
    options.caption(plain(f"{available[kind].detail}. Evaluated on the {available[kind].n_songs:,} songs it covers."))
    return str(kind)


def _choose_split(snapshot: Snapshot, options: Container) -> None:
    names = snapshot.library.splits.names()
    if _SPLIT.get() not in names:
        _SPLIT.set("")
    if names:
        options.selectbox(
            "Split", ["", *names], **_SPLIT.widget(),
            format_func=lambda name: (
                f"{name}: test songs are compared with training songs" if name else "None: all songs are compared"
            ),
            help="Splits come with data sets or are imported with `musicsim splits import`.",
        )  # fmt: skip
    for fault in list_known_faults(snapshot.library):
        st.warning(fault, icon=":material/report:")


def _models_table(snapshot: Snapshot, others: Sequence[ModelRecord], kind: str, more: Container) -> None:
    """Show a verdict on the chosen model, and the scores of the models that were evaluated."""
    own = snapshot.record
    if own is None:
        return
    trained = quality.load_held_out(snapshot.library, own)
    _show_verdict(snapshot, own, kind, trained)
    models = [(own, snapshot), *((record, openers.snapshot(record.id)) for record in others)]
    rows = [
        _table_row(model, record, kind, trained if record is own else quality.load_held_out(snapshot.library, record))
        for record, model in models
        if record is own or _scores(model, kind)
    ]
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
    frame = pd.DataFrame([{name: row[name] for name in columns} for row in rows])
    st.table(frame, hide_index=True, border="horizontal")
    st.caption(" ".join(text for column, text in _TERMS.items() if column in columns))
    with more:
        _explain_table(snapshot, kind)
        table_download("models", lambda: frame, "evaluate_models")
        if len(rows) < len(models):
            st.button(
                f"Evaluate all {len(models)} models", icon=":material/calculate:", key="evaluate_all_models",
                on_click=_ALL.set, args=(snapshot.library.name,),
            )  # fmt: skip


def _show_verdict(snapshot: Snapshot, record: ModelRecord, kind: str, trained: quality.HeldOut | None) -> None:
    scores = _scores(snapshot, kind)
    if trained is not None:
        target = (
            f" They use the model's own target: {TRAINING_KINDS[trained.kind].words}." if trained.kind != kind else ""
        )
        st.info(
            "This model was trained on these artists, so scores on all songs are optimistic. Use the held-out scores: "
            f"they compare the model before and after training, on {trained.n_songs:,} songs by {trained.n_artists:,} "
            f"artists that training did not use.{target}", icon=":material/school:",
        )  # fmt: skip
    claim = _claim(record, scores)
    if trained is not None or scores is None or not claim:
        return
    auc, nearest = scores.figures["auc"], scores.figures["precision"]
    is_proven = auc.low > 0.5
    sentences = [
        f"**{claim}.** They rank above other songs in {auc.mean:.0%} of all cases (chance: 50%).",
        f"On average, {10 * nearest.mean:.1f} of the ten nearest songs are similar.",
        f"Similar songs here: {plain(TRAINING_KINDS[kind].words)}.",
    ]
    (st.success if is_proven else st.info)(" ".join(sentences), icon=":material/insights:")


def _claim(record: ModelRecord, scores: quality.KindScores | None) -> str:
    """Return if a model finds similar songs, as a clause; "" if this was not measured."""
    if scores is None or math.isnan(scores.figures["auc"].mean):
        return ""
    name = plain(record.name)
    is_proven = scores.figures["auc"].low > 0.5
    return f"{name} finds similar songs" if is_proven else f"It is not certain that {name} finds similar songs"


def _table_row(snapshot: Snapshot, record: ModelRecord, kind: str, report: quality.HeldOut | None) -> dict[str, str]:
    row = {"Model": plain(record.name)}
    scores = _scores(snapshot, kind)
    both: quality.ListsOfBoth | None = result_of(get_desk().find(task_key(snapshot, "lists")))
    for name, title in RANKING_MEASURES.items():
        row[title] = format_figure(scores.figures[name]) if scores else ""
    row["Hubness"] = f"{both.plain.hubness:.2f} → {both.reduced.hubness:.2f}" if both else ""
    row["Coverage"] = f"{both.plain.coverage:.0%} → {both.reduced.coverage:.0%}" if both else ""
    for name in ("auc", "map"):
        lead = report.leads.get(name) if report else None
        row[f"Held out: {RANKING_MEASURES[name]}"] = f"{lead.before:.2f} → **{lead.after:.2f}**" if lead else ""
    return row


def format_figure(figure: quality.Figure) -> str:
    """Return a mean and its interval for a table cell."""
    if math.isnan(figure.mean):
        return "–"
    return f"{figure.mean:.2f}" if math.isnan(figure.low) else interval(figure.mean, figure.low, figure.high, 2)


def _explain_table(snapshot: Snapshot, kind: str) -> None:
    scores, facts = _scores(snapshot, kind), []
    if scores is not None:
        facts.append(f"Means over {scores.n_queries:,} query songs, {scores.n_skipped:,} skipped")
        facts += [f"{scores.n_left_out:,} not sampled"] if scores.n_left_out else []
        if scores.n_ranked < snapshot.n_indexed:
            among = "training songs" if _SPLIT.get() else "sampled songs"
            facts.append(f"ranked among {scores.n_ranked:,} {among}")
        facts.append("intervals from resampled artists")
    facts += ["songs by the query's own artist are left out"] if kind not in ("artist", "folder") else []
    st.caption("; ".join(facts) + ". AUC, MAP, MRR and P@10 range from 0 to 1; higher is better.")


def _show_lists(
    snapshot: Snapshot, both: quality.ListsOfBoth, scores: quality.KindScores | None, more: Container
) -> None:
    default = "on" if snapshot.library.settings["hub_reduction"] else "off"
    hub_reduction = more.segmented_control(
        "Hub reduction", ("off", "on"), default=default, key="evaluate_hub_reduction",
        help="Show the genres, confusions and hubs below with or without hub reduction.",
    )  # fmt: skip
    lists = both.reduced if (hub_reduction or default) == "on" else both.plain
    if both.n_compared < both.n_songs:
        st.caption(f"A sample of {both.n_compared:,} of {both.n_songs:,} songs, compared with each other.")
    confusion = lists.confusion.of_size(MIN_SONGS)
    if len(confusion.genres) > 1:
        left, right = st.columns([2, 3], gap="large")
        with left:
            _show_genres(snapshot, lists, scores, confusion.genres, more)
        with right:
            _show_confusions(confusion, more)
    _tell_left_out(snapshot, len(confusion.genres))
    _show_hubs(snapshot, lists, both.n_compared)


def _tell_left_out(snapshot: Snapshot, n_shown: int) -> None:
    """Say once how many genres are too small for a chart."""
    facts = []
    if n_shown < 2:
        facts.append(f"With two or more genres of at least {MIN_SONGS} songs, charts show how well each is found.")
        n_shown = 0
    n_small = len(snapshot.columns.genre.counts()) - n_shown
    if n_small > 0:
        facts.append(f"{count(n_small, 'genre')} left out: fewer than {MIN_SONGS} songs.")
    if facts:
        st.caption(" ".join(facts))


def _show_genres(
    snapshot: Snapshot, lists: quality.ListStatistics, scores: quality.KindScores | None, genres: Sequence[str],
    more: Container,
) -> None:  # fmt: skip
    st.header("By genre", anchor=False)
    options = list(_MEASURES) if scores and scores.by_genre else list(_MEASURES)[:1]
    measure = more.selectbox("Measure by genre", options, key="evaluate_by")
    sizes = dict(zip(lists.confusion.genres, lists.confusion.n_songs.tolist(), strict=True))
    if measure == options[0] or scores is None:
        values = dict(lists.same_genre_of)
    else:
        values = {g.genre: g.map if measure == "average precision" else g.precision for g in scores.by_genre}
    ordered = sorted((genre for genre in genres[:_MAX_GENRES] if genre in values), key=lambda genre: values[genre])
    colors = label_colors(snapshot, "genre")
    figure = go.Figure(
        go.Bar(
            x=[values[g] for g in ordered], y=[escape_for_chart(g, _MAX_LABEL) for g in ordered], orientation="h",
            marker_color=[colors.get(g, UNKNOWN_COLOR) for g in ordered], text=[f"{values[g]:.2f}" for g in ordered],
            textposition="outside", cliponaxis=False, customdata=[sizes.get(g, 0) for g in ordered],
            hovertemplate="%{y}: %{x:.3f}, %{customdata} songs<extra></extra>",
        )
    )  # fmt: skip
    figure.update_layout(
        height=26 * len(ordered) + 60,
        margin={"l": 0, "r": 36, "t": 4, "b": 0},
        xaxis={"range": [0, 1], "fixedrange": True, "dtick": 0.25, "title": f"{measure} (0 to 1)"},
        yaxis={"automargin": True, "fixedrange": True, "ticksuffix": " "},
    )
    chart(figure, key="evaluate_genres", name="quality by genre", options=more)
    st.caption(_MEASURES[measure])


def _show_confusions(confusion: quality.Confusion, more: Container) -> None:
    st.header("Genre confusion", anchor=False)
    largest = confusion.largest(_MAX_GENRES)
    rows, columns = (
        [escape_for_chart(name, _MAX_LABEL) for name in names] for names in (largest.genres, largest.columns)
    )
    figure = go.Figure(
        go.Heatmap(
            z=largest.shares, x=columns, y=rows, zmin=0, zmax=1, showscale=False,
            colorscale=[
                [0, "rgba(95,176,183,0)"], [0.05, "rgba(95,176,183,0.15)"], [_DENSE, "rgba(95,176,183,0.4)"],
                [_DENSE, "#5fb0b7"], [1, "#3d9aa3"],
            ],
            hovertemplate="%{z:.0%} of the songs nearest to %{y} are %{x}<extra></extra>", xgap=1, ygap=1,
        )
    )  # fmt: skip
    # as annotations, because their default color is the page's text color, which suits pale cells on dark pages, too
    texts = [
        {"x": x, "y": y, "text": f"{100 * share:.0f}", "showarrow": False}
        | ({"font": {"color": "#0b1f24"}} if share >= _DENSE else {})
        for (y, x), share in np.ndenumerate(largest.shares)
        if share >= 0.005 and len(columns) <= _MAX_TEXT_CELLS
    ]
    figure.update_layout(
        annotations=texts,  # all at once: one by one takes quadratic time
        height=max(300, 26 * len(rows) + 130),
        margin={"l": 0, "r": 0, "t": 4, "b": 0},
        xaxis={"tickangle": -45, "automargin": True, "fixedrange": True, "dtick": 1},
        yaxis={"autorange": "reversed", "automargin": True, "fixedrange": True, "dtick": 1, "ticksuffix": " "},
    )
    chart(figure, key="evaluate_confusion", name="genre confusion", options=more)
    st.caption(
        "Each row shows the genres of the songs nearest to one genre, in %. Songs by the query's artist and songs "
        "without a genre are not counted."
    )
    pairs = confusion.pairs(5)
    if pairs:
        st.markdown("\n".join(f"- {plain(pair.words)}" for pair in pairs))


def _show_hubs(snapshot: Snapshot, lists: quality.ListStatistics, n_songs: int) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        st.header("Hubs: close to everything", anchor=False)
        reasons = {
            hub.song_id: f"near {hub.n_lists:,} of {n_songs:,} songs, from {count(hub.n_artists, 'artist')}"
            for hub in lists.hubs[:_MAX_LISTED]
        }
        _show_songs(snapshot, reasons, "hubs")
        st.caption(f"If no song were favored, each would be in {min(10, n_songs - 1)} lists of ten.")
    with right:
        st.header(f"Orphans: songs in no other song's top ten ({len(lists.orphans):,})", anchor=False)
        orphans = lists.orphans[:_MAX_LISTED]
        if orphans:
            _show_songs(snapshot, dict.fromkeys(orphans, "never among the ten nearest"), "orphans")
        else:
            st.caption("Every song is in some other song's top ten.")
        if len(lists.orphans) > len(orphans):
            st.caption(f"{len(lists.orphans) - len(orphans):,} more are not listed here.")


def _show_songs(snapshot: Snapshot, reasons: dict[int, str], name: str) -> None:
    songs = snapshot.songs_by_id(list(reasons))
    rows = [row_of(song, why=reasons[song.id]) for song in songs]
    show_song_list(snapshot.library, rows, key=f"evaluate_{name}")
