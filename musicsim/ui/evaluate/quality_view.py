"""Quality of a library's models on the Evaluate page: side by side, by genre, confusions, hubs and orphans."""

import math
from collections.abc import Hashable, Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from musicsim.explorer.evaluation.fixed_splits import known_faults
from musicsim.explorer.evaluation.quality import (
    Confusion,
    Figure,
    HeldOut,
    Lists,
    ListsOfBoth,
    Scores,
    held_out,
    measure_lists,
    measure_scores,
)
from musicsim.explorer.learning.supervision import Coverage
from musicsim.explorer.learning.verdict import RANKED
from musicsim.explorer.requests.training import ANSWERS, JUDGEMENTS, KINDS
from musicsim.explorer.snapshot.map_colours import UNKNOWN_COLOUR, label_colours
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.stores.judgments import FORMS, RESULT
from musicsim.library.stores.models import ModelRecord
from musicsim.progress import Progress
from musicsim.ui.base.desk import AT_ONCE_S, Task, desk, done_of, result_of, task_key, value_of, wait_for
from musicsim.ui.base.keys import Key
from musicsim.ui.base.openers import snapshot
from musicsim.ui.base.text import in_chart, interval, plain
from musicsim.ui.components.charts import chart
from musicsim.ui.components.coverage import ask_coverage
from musicsim.ui.components.listening import follow
from musicsim.ui.components.song_list import Action, row_of, song_list
from musicsim.ui.components.table_download import saved_table

_ALL: Key[str] = Key("evaluate_all", str, "name of the library whose models are all to be worked out")
_SPLIT: Key[str] = Key("evaluate_split", str, "name of the fixed split to evaluate by; empty for none")
_KIND: Key[str | None] = Key("evaluate_kind", lambda: None, "what says that two songs are similar")

_MAX_GENRES = 30
_MAX_LABEL = 22
_WRITTEN_IN_CELLS = 16  # genres, up to which a figure fits into a cell
_LISTED = 10
_SEEN_AS = ("off", "on")

_BY = {
    "same genre in the ten nearest": ("Share of the ten nearest songs by other artists that have the same genre."),
    "average precision": "With a genre's songs as queries: how high similar songs rank among all songs.",
    "precision at 10": "With a genre's songs as queries: share of similar songs in the top ten.",
}


def _scores_key(of: Snapshot, kind: str) -> Hashable:
    # answers and thumbs are no change of the library's revision, or every page would be drawn again after each of them
    mark = of.library.judgments.mark(*{ANSWERS: FORMS, JUDGEMENTS: (RESULT,)}.get(kind, ()))
    return task_key(of, f"scores by {kind} {mark} split {_SPLIT.get()}")


def _ask_scores(of: Snapshot, kind: str) -> Task:
    split = _SPLIT.get() or None

    def work(progress: Progress) -> Scores:
        return measure_scores(of, kind, split=split, progress=progress)

    return desk().ask(_scores_key(of, kind), work)


def _ask_lists(of: Snapshot) -> Task:
    def work(progress: Progress) -> ListsOfBoth | None:
        return measure_lists(of, progress=progress)

    return desk().ask(task_key(of, "lists"), work)


def show_library(now: Snapshot) -> None:
    """Quality of the models of a library, the one in view first."""
    if now.n_indexed < 2:
        st.info("A single song cannot be compared: add more songs.", icon=":material/info:")
        return
    covered = ask_coverage(now)
    is_covered = covered.within(AT_ONCE_S)
    kind = choose_kind(value_of(covered))
    _choose_split(now)
    lists = _ask_lists(now)
    scores = _ask_scores(now, kind) if kind else None
    waiting = [covered, *([scores] if scores else []), lists]
    models = now.library.models
    others = [r for r in models.all() if (now.record is None or r.id != now.record.id) and models.is_whole(r)]
    if _ALL.get() == now.library.name and kind:
        for record in others:
            of = snapshot(record.id)
            waiting += [_ask_scores(of, kind), _ask_lists(of)]
    if scores is not None:
        scores.within(AT_ONCE_S)
    lists.within(AT_ONCE_S)
    n_shown = is_covered + done_of(waiting[1:])
    # A place of their own for each: what comes later moves nothing, or it would be seen twice for a moment.
    table, progress, rest = st.container(), st.container(), st.container()
    if kind:
        with table:
            _models_table(now, others, kind)
    with progress:
        wait_for(waiting, n_shown)
    both = value_of(lists)
    if both is not None:
        with rest:
            _show_lists(now, both, value_of(scores) if scores else None)


def choose_kind(covered: list[Coverage] | None) -> str | None:
    """What says that two songs are similar; None where nothing does, or that is not known yet."""

    if covered is None:
        return None
    able = {c.kind: c for c in covered if c.n_songs}
    if not able:
        st.info(
            "Nothing in this library says which songs are similar: import plays or playlists, or give "
            "songs genres or tags. Figures that need no ground truth are below.", icon=":material/info:",
        )  # fmt: skip
        return None
    if _KIND.get() not in able:
        _KIND.set(next(iter(able)))
    _KIND.keep()
    kind = st.selectbox(
        "Ground truth", list(able), key=_KIND.name, help="What the rankings of a model are compared with.",
        format_func=lambda name: f"{KINDS[name].words} ({able[name].share:.0%} of all songs)",
    )  # fmt: skip
    st.caption(plain(f"{able[kind].detail}. Evaluated on the {able[kind].n_songs:,} songs it covers."))
    return str(kind)


def _choose_split(now: Snapshot) -> None:
    """Which songs search which, where the library has fixed splits; what is known to be wrong with its data sets."""
    names = now.library.splits.names()
    if _SPLIT.get() not in names:
        _SPLIT.set("")
    if names:
        _SPLIT.keep()
        st.selectbox(
            "Split", ["", *names], key=_SPLIT.name, format_func=_split_words,
            help="Splits come with data sets, or from `musicsim splits import`.",
        )  # fmt: skip
    for fault in known_faults(now.library):
        st.warning(fault, icon=":material/report:")


def _split_words(name: str) -> str:
    return f"{name}: test songs search training songs" if name else "None: all songs search all songs"


def _models_table(now: Snapshot, others: Sequence[ModelRecord], kind: str) -> None:
    lines, heard = [], None
    for record in [now.record, *others]:
        if record is None:
            continue
        of = now if now.record is record else snapshot(record.id)
        known = held_out(now.library, record)
        heard = known if now.record is record else heard
        lines.append(_line(of, record, kind, known))
    columns = [name for name in lines[0] if any(line[name] for line in lines)]
    frame = pd.DataFrame([{name: line[name] for name in columns} for line in lines])
    saved_table(frame, name="models", key="evaluate_models")
    _explain_table(now, kind, heard)
    is_waiting = any(desk().known(_scores_key(snapshot(r.id), kind)) is None for r in others)
    if others and is_waiting:
        st.button(
            f"Evaluate all {len(others) + 1} models", icon=":material/calculate:", key="evaluate_all_models",
            on_click=_ALL.set, args=(now.library.name,),
        )  # fmt: skip


def _line(of: Snapshot, record: ModelRecord, kind: str, known: HeldOut | None) -> dict[str, str]:
    """A model's row of the table; empty cells where nothing has been worked out."""
    line = {"Model": plain(record.name)}
    scores, both = (result_of(desk().known(key)) for key in (_scores_key(of, kind), task_key(of, "lists")))
    for name, title in RANKED.items():
        line[title] = written(scores.figures[name]) if scores else ""
    line["Hubness"] = f"{both.plain.hubness:.2f} → {both.reduced.hubness:.2f}" if both else ""
    line["Coverage"] = f"{both.plain.coverage:.0%} → {both.reduced.coverage:.0%}" if both else ""
    for name in ("auc", "map"):
        lead = known.leads.get(name) if known else None
        line[f"Held out: {RANKED[name]}"] = f"{lead.before:.3f} → **{lead.after:.3f}**" if lead else ""
    return line


def written(figure: Figure) -> str:
    """A mean and its interval as a cell."""
    if math.isnan(figure.mean):
        return "–"
    if math.isnan(figure.low):
        return f"{figure.mean:.3f}"
    return interval(figure.mean, figure.low, figure.high)


def _explain_table(now: Snapshot, kind: str, heard: "HeldOut | None") -> None:

    if heard is not None:
        other = (
            "" if heard.kind == kind else (f" They are judged on its own training target: {KINDS[heard.kind].words}.")
        )
        st.info(
            "Trained on these artists: all-song scores are optimistic, use the held-out ones: "
            f"{heard.n_songs:,} songs by {heard.n_artists:,} artists not used in training, before → after "
            f"training.{other}", icon=":material/school:",
        )  # fmt: skip
    scores: Scores | None = result_of(_ask_scores(now, kind))
    facts = []
    if scores is not None:
        facts.append(f"Means over {scores.n_queries:,} query songs, {scores.n_skipped:,} skipped")
        facts += [f"{scores.n_left_out:,} not sampled"] if scores.n_left_out else []
        is_part = scores.n_ranked < now.n_indexed
        among = "training songs" if _SPLIT.get() else "songs of a sample"
        facts += [f"ranked among {scores.n_ranked:,} {among}"] if is_part else []
        facts += ["in grey the 95 % interval over resampled artists"]
    facts += ["songs by the query's own artist are left out" if kind not in ("artist", "folder") else ""]
    st.caption(
        "; ".join(f for f in facts if f)
        + ". All range from 0 to 1, higher is better. Hubness (0: no song is favoured; above 1: a few "
        "are close to everything) and coverage (songs in at least one top ten): without → with hub "
        "reduction."
    )


def _show_lists(now: Snapshot, both: ListsOfBoth, scores: Scores | None) -> None:
    default = _SEEN_AS[bool(now.library.settings["hub_reduction"])]
    seen_as = st.segmented_control(
        "Hub reduction", _SEEN_AS, default=default, key="evaluate_hub_reduction",
        help="Shows genres, confusions and hubs below with or without hub reduction.",
    )  # fmt: skip
    lists = both.reduced if (seen_as or default) == "on" else both.plain
    if both.n_compared < both.n_songs:
        st.caption(f"A sample of {both.n_compared:,} of {both.n_songs:,} songs, compared with each other.")
    if len(lists.confusion.genres) > 1:
        left, right = st.columns([2, 3], gap="large")
        with left:
            _by_genre(now, lists, scores)
        with right:
            _confusions(lists.confusion)
    else:
        st.caption("With at least two genres, this page shows how well each is found and which are confused.")
    _hubs(now, lists, both.n_compared)


def _by_genre(now: Snapshot, lists: Lists, scores: Scores | None) -> None:
    st.subheader("By genre", anchor=False)
    options = list(_BY) if scores and scores.by_genre else list(_BY)[:1]
    by = st.selectbox("Measure", options, key="evaluate_by", label_visibility="collapsed")
    sizes = dict(zip(lists.confusion.genres, lists.confusion.n_songs.tolist(), strict=True))
    if by == options[0]:
        values = dict(lists.same_genre_of)
    else:
        assert scores is not None
        values = {g.genre: g.map if by == "average precision" else g.precision for g in scores.by_genre}
    largest = sorted(values, key=lambda genre: -sizes.get(genre, 0))[:_MAX_GENRES]
    ordered = sorted(largest, key=lambda genre: values[genre])
    colours = label_colours(now, "genre")
    figure = go.Figure(
        go.Bar(
            x=[values[g] for g in ordered],
            y=[in_chart(g, _MAX_LABEL) for g in ordered],
            orientation="h",
            marker_color=[colours.get(g, UNKNOWN_COLOUR) for g in ordered],
            text=[f"{values[g]:.2f}" for g in ordered],
            textposition="outside",
            cliponaxis=False,
            customdata=[sizes.get(g, 0) for g in ordered],
            hovertemplate="%{y}: %{x:.3f}, %{customdata} songs<extra></extra>",
        )
    )
    figure.update_layout(
        height=26 * len(ordered) + 60,
        margin={"l": 0, "r": 36, "t": 4, "b": 0},
        xaxis={"range": [0, 1], "fixedrange": True, "dtick": 0.25},
        yaxis={"automargin": True, "fixedrange": True, "ticksuffix": " "},
    )
    chart(figure, key="evaluate_genres", name="quality by genre")
    st.caption(_BY[by])


def _confusions(whole: Confusion) -> None:
    st.subheader("Genre confusion", anchor=False)
    confusion = whole.largest(_MAX_GENRES)
    rows, columns = ([in_chart(name, _MAX_LABEL) for name in names] for names in (confusion.genres, confusion.columns))
    is_written = len(columns) <= _WRITTEN_IN_CELLS
    written = [[f"{100 * v:.0f}" if v >= 0.005 else "" for v in line] for line in confusion.shares]
    figure = go.Figure(
        go.Heatmap(
            z=confusion.shares, x=columns, y=rows, zmin=0, zmax=1, showscale=False,
            colorscale=[[0, "rgba(95,176,183,0)"], [0.05, "rgba(95,176,183,0.25)"], [0.4, "#5fb0b7"], [1, "#0f6b75"]],
            text=written if is_written else None, texttemplate="%{text}" if is_written else None,
            hovertemplate="%{z:.0%} of the songs nearest to %{y} are %{x}<extra></extra>", xgap=1, ygap=1,
        )
    )  # fmt: skip
    figure.update_layout(
        height=max(300, 26 * len(rows) + 130),
        margin={"l": 0, "r": 0, "t": 4, "b": 0},
        xaxis={"tickangle": -45, "automargin": True, "fixedrange": True, "dtick": 1},
        yaxis={"autorange": "reversed", "automargin": True, "fixedrange": True, "dtick": 1, "ticksuffix": " "},
    )
    chart(figure, key="evaluate_confusion", name="genre confusion")
    st.caption("Each row: the genres of the songs nearest to one genre, in %; the query's own artist is left out.")
    pairs = whole.pairs(5)
    if pairs:
        st.markdown("\n".join(f"- {plain(pair.words)}" for pair in pairs))


def _hubs(now: Snapshot, lists: Lists, n_songs: int) -> None:
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Hubs: close to everything", anchor=False)
        hubs = lists.hubs[:_LISTED]
        words = {
            h.song_id: (f"in {h.n_lists:,} of {n_songs:,} lists, by {h.n_artists:,} artist{'s' * (h.n_artists > 1)}")
            for h in hubs
        }
        _songs(now, [h.song_id for h in hubs], words, "hubs")
        st.caption(f"If no song were favoured, each would be in {min(10, n_songs - 1)} lists of ten.")
    with right:
        st.subheader(f"Orphans: songs in nobody's top ten ({len(lists.orphans):,})", anchor=False)
        orphans = lists.orphans[:_LISTED]
        if orphans:
            _songs(now, orphans, dict.fromkeys(orphans, "never among the ten nearest"), "orphans")
        else:
            st.caption("Every song is in some other song's top ten.")
        if len(lists.orphans) > len(orphans):
            st.caption(f"{len(lists.orphans) - len(orphans):,} more are not listed here.")


def _songs(now: Snapshot, ids: Sequence[int], words: dict[int, str], name: str) -> None:
    songs = now.songs_by_id(ids)

    def act(action: Action) -> None:
        follow(action, now, songs)

    song_list([row_of(song, why=words[song.id]) for song in songs], key=f"evaluate_{name}", on_action=act)
