"""Training on the page: what says that songs are similar, how to learn it, and the training at work."""

import time
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from musicsim.explorer import jobs
from musicsim.explorer.learning.supervision import Coverage, preselected
from musicsim.explorer.refresh.learned_model import LEARNED_KIND, preselected_models
from musicsim.explorer.refresh.model_text import name_for
from musicsim.explorer.requests.options import options_of
from musicsim.explorer.requests.training import (
    ANSWERS,
    AUTOMATIC,
    KINDS,
    LOSSES,
    METHODS,
    ORDER,
    PENALTIES,
    RANKING,
    STRUCTURES,
    TrainingRequest,
)
from musicsim.explorer.snapshot.map_colours import UNKNOWN_COLOUR
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library
from musicsim.library.stores.jobs import Job
from musicsim.ui.base.desk import AT_ONCE_S, value_of, wait_for
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.keys import SECTION, Key
from musicsim.ui.base.option_widgets import labelled, limits, option_key
from musicsim.ui.base.text import plain
from musicsim.ui.components.charts import chart
from musicsim.ui.components.coverage import ask_coverage
from musicsim.ui.components.jobs_view import start_job
from musicsim.ui.components.song_list import clock

_DEFAULT = TrainingRequest()
_CS = tuple(round(10 ** (half / 2), 1 if half < 2 else 0) for half in range(13))
_CHART_HEIGHT = 280

_NAMES = {"supervision": "kind", "random_state": "seed"}  # of keys, where it is not that of the field
_KEYS = {
    field: option_key(f"train_{_NAMES.get(field, field)}", TrainingRequest, field)
    for field in options_of(TrainingRequest)
}
_KEYS["C"] = Key("train_C", lambda: 1000.0, "C, where the listener chooses it")
_KIND, _METHOD, _LOSS, _ON, _LISTENER, _C = (
    _KEYS[field] for field in ("supervision", "method", "loss", "on", "listener", "C")
)
SUPERVISION: Key[str] = _KIND
"""What is learned from."""
_BY_HAND: Key[bool] = Key("train_by_hand", lambda: False, "whether the listener chooses C")
_LAST_KIND: Key[str] = Key("train_last_kind", str, "what was chosen when the page was drawn last")
_WATCHED: Key[int | None] = Key("train_watched", lambda: None, "id of the training that was seen at work")
_CHOICES: tuple[Key[Any], ...] = (*_KEYS.values(), _BY_HAND)


# --- what and how ---------------------------------------------------------------------------------


def learn_from(kind: str) -> None:
    """Let the page open with something chosen as what says that songs are similar.

    Parameters
    ----------
    kind : str
        One of :data:`musicsim.explorer.learning.supervision.KINDS`.
    """
    _KIND.set(kind)


def choices(of: Snapshot, *, busy: bool) -> None:
    """What to learn from, and how, with the button that starts.

    Parameters
    ----------
    of : Snapshot
        The library under its native model: all songs that can be learned from.
    busy : bool
        Whether a job is at work.
    """
    for key in _CHOICES:
        key.keep()
    assert of.record is not None
    covered = ask_coverage(of)
    covered.within(AT_ONCE_S)
    wait_for([covered])
    found = value_of(covered)
    if found is None:
        return
    enough = [c for c in found if c.is_enough]
    if _KIND.get() not in {c.kind for c in enough}:
        _KIND.set(preselected(found) or _DEFAULT.supervision)
    _follow_kind()
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("1 · Learn similarity from", anchor=False)
        _kinds(enough, [c for c in found if not c.is_enough])
    with right:
        st.subheader("2 · How?", anchor=False)
        _how(of.library)
        st.button(
            "Train", type="primary", icon=":material/school:", width="stretch", key="train_start",
            disabled=busy or not enough, on_click=_start, args=(of.library,),
            help="Takes ten to sixty seconds for a few hundred songs. The model in use stays until you "
            "choose another.",
        )  # fmt: skip
        running = jobs.current(of.library) if busy else None
        if running is not None and running.kind != "train":
            st.caption(f"Wait for “{jobs.job_kinds()[running.kind].title}” to finish.")
        elif running is not None:
            st.caption("Training; progress curves appear below.")


def _follow_kind() -> None:
    """Answers say in which order pairs are: they begin with the loss that is theirs, and others cannot have it."""
    kind, last = _KIND.get(), _LAST_KIND.get()
    if kind == ANSWERS and last != ANSWERS:
        _LOSS.set(ORDER)
        _METHOD.set(RANKING)
    elif kind != ANSWERS and (_LOSS.get() in {ORDER, ""} or not _METHOD.get()):
        _LOSS.set(_DEFAULT.loss)
        _METHOD.set(_DEFAULT.method)
    _LAST_KIND.set(kind)


def _words(kind: str) -> str:
    return _capital(KINDS[kind].words)


def _method_words(method: str) -> str:
    return _capital(METHODS[method])


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def _kinds(enough: list[Coverage], lacking: list[Coverage]) -> None:
    """A choice of what there is enough of; what there is not stands below with its reason."""
    if enough:
        of = {c.kind: c for c in enough}
        st.radio(
            **_said("supervision"), options=list(of), format_func=_words, label_visibility="collapsed",
            captions=[f"{c.n_songs:,} songs ({c.share:.0%}) · {plain(c.detail)}" for c in of.values()],
        )  # fmt: skip
    else:
        st.info(
            "Nothing here says yet which songs are similar. Import plays, tags or playlists, or add more songs.",
            icon=":material/info:",
        )
    if not lacking:
        return
    st.radio(
        "Not enough for" if enough else "What is missing", [c.kind for c in lacking], index=None,
        format_func=_words, disabled=True, key="train_lacking", captions=[plain(c.lacks) for c in lacking],
    )  # fmt: skip
    if st.button("Import plays, tags or playlists", icon=":material/upload:", type="tertiary"):
        SECTION.set("listening")
        st.switch_page(PAGES["library"])


def _how(library: Library) -> None:
    bases = [record.name for record in library.models.all() if record.kind != LEARNED_KIND]
    known = [name for name in _ON.get() if name in bases]
    if not known:
        built_in = preselected_models(library)
        some = built_in if _METHOD.get() == AUTOMATIC else built_in[:1]
        known = [record.name for record in some] or bases[:1]
    _ON.set(known)
    methods = [RANKING] if _KIND.get() == ANSWERS else list(METHODS)
    st.selectbox(**_said("method"), options=methods, format_func=_method_words, on_change=_ON.set, args=([],))
    in_steps = _METHOD.get() == RANKING
    losses = [loss for loss in LOSSES if loss != ORDER or _KIND.get() == ANSWERS]
    st.selectbox(**_said("loss"), options=losses, format_func=LOSSES.__getitem__, disabled=_METHOD.get() == AUTOMATIC)
    by_hand = st.toggle("Set regularisation C manually", key=_BY_HAND.name, disabled=not in_steps)
    st.select_slider(**_said("C"), options=_CS, format_func=lambda C: f"{C:,g}", disabled=not (by_hand and in_steps))
    st.multiselect(**_said("on"), options=bases, placeholder="Choose models")
    with st.expander("More options", icon=":material/tune:"):
        _more(library)
    st.text_input(**_said("name"), max_chars=50, placeholder=name_for(library, _KIND.get()))
    st.toggle(**_said("use"))


def _said(field: str) -> dict[str, Any]:
    return labelled(TrainingRequest, field) | {"key": _KEYS[field].name}


def _number(field: str) -> dict[str, Any]:
    return _said(field) | limits(TrainingRequest, field)


def _more(library: Library) -> None:
    kind, loss = _KIND.get(), _LOSS.get()
    if kind == ANSWERS:
        people = ["", *library.judgments.listeners()]
        if _LISTENER.get() not in people:
            _LISTENER.set("")
        st.selectbox(**_said("listener"), options=people, format_func=lambda name: plain(name) or "everybody's")
    has_k = kind in ("plays", "sittings", "playlists")
    first, second = st.columns(2)
    of = KINDS[kind].of.capitalize() if has_k else "Songs"
    first.number_input(
        **_number("k") | {"label": f"{of} that count as similar"},
        disabled=not has_k and loss not in {"ndcg", "precision"},
    )
    second.number_input(**_number("threshold"), disabled=kind != "plays")
    in_steps = _METHOD.get() == RANKING
    first.radio(
        **_said("structure"), options=list(STRUCTURES), format_func=STRUCTURES.__getitem__, disabled=not in_steps
    )
    second.radio(
        **_said("regularizer"), options=list(PENALTIES), format_func=PENALTIES.__getitem__,
        disabled=kind == ANSWERS or not in_steps,
    )  # fmt: skip
    st.toggle(**_said("generated"), disabled=kind != "playlists")
    st.number_input(**_number("random_state"))


def _start(library: Library) -> None:
    """Start a training as chosen; for callbacks, so that what was typed last counts."""
    values = {field: key.get() for field, key in _KEYS.items()}
    request = TrainingRequest(
        **values | {
            "C": float(_C.get()) if _BY_HAND.get() and _METHOD.get() == RANKING else None,
            "listener": _LISTENER.get() if _KIND.get() == ANSWERS else "",
        }
    )  # fmt: skip
    name = name_for(library, request.supervision, request.name)
    start_job(library, "train", **request.job_arguments(name))
    _KEYS["name"].set("")


def _start_again(library: Library, job: Job) -> None:
    name = name_for(library, job.arguments["settings"]["supervision"], job.arguments["name"])
    start_job(library, "train", **{**job.arguments, "name": name})


# --- at work --------------------------------------------------------------------------------------


def latest_training(library: Library) -> Job | None:
    """The training at work, or the last one there was."""
    jobs.current(library)  # notices a process that has gone
    return next((job for job in library.jobs.recent() if job.kind == "train"), None)


def training_run(library: Library, job: Job) -> None:
    """A training with its live lines and ways to stop it; the page runs again when it has ended."""

    @st.fragment(run_every=1.0 if job.is_active else None)
    def watch() -> None:
        jobs.current(library)
        now = library.jobs.get(job.id)
        if now.is_active != job.is_active:
            st.rerun()
        _at_work(library, now) if now.is_active else _ended(library, now)

    watch()


def _at_work(library: Library, job: Job) -> None:
    _WATCHED.set(job.id)
    points = library.jobs.trace(job.id)
    share = min(1.0, job.done / job.total) if job.total else 0.0
    words = "paused" if job.state == "paused" else job.message or "starting"
    st.progress(share, text=f"**{plain(job.arguments['name'])}** · {plain(words)}")
    in_steps = _in_steps(job)
    facts = [clock(max(0.0, time.time() - job.created_at))]
    facts += [f"{len(points):,} cuts" if in_steps else f"{len(points):,} tried"]
    facts += [f"gap {points[-1]['gap']:.1%}"] if points and in_steps else []
    st.caption(" · ".join(facts))
    _charts(points, job)
    stopping = job.finish_requested or job.cancel_requested
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Stop and keep the best", icon=":material/check:", key="train_finish", disabled=stopping,
            on_click=jobs.finish, args=(library, job.id),
            help="Stops now and keeps the metric that was best on held-out artists so far.",
        )  # fmt: skip
        st.button(
            "Cancel", icon=":material/close:", key="train_cancel", disabled=stopping,
            on_click=jobs.cancel, args=(library, job.id),
        )  # fmt: skip
        if stopping:
            st.caption("Cancelling…" if job.cancel_requested else "Keeping the best so far…")


def _ended(library: Library, job: Job) -> None:
    """How a training ended; one that did not come to its end can be started again."""
    took = clock(max(0.0, job.updated_at - job.created_at))
    name = plain(job.arguments["name"])
    if job.state == "done":
        # the lines that were watched stay where they are
        seen = _WATCHED.get() == job.id
        with st.expander(f"How **{name}** was learned, in {took}", seen, icon=":material/show_chart:"):
            _charts(library.jobs.trace(job.id), job)
        return
    said = {
        "failed": plain(job.message),
        "cancelled": f"**{name}** was cancelled after {took}; nothing was kept.",
        "interrupted": f"**{name}** stopped after {took}: its process ended before it had finished.",
    }
    show = st.error if job.state == "failed" else st.info
    show(said[job.state], icon=":material/error:" if job.state == "failed" else ":material/info:")
    st.button(
        "Start again", icon=":material/replay:", key="train_again", on_click=_start_again,
        args=(library, job), disabled=jobs.current(library) is not None,
    )  # fmt: skip


# --- the lines ------------------------------------------------------------------------------------


def _charts(points: list[dict[str, Any]], job: Job) -> None:
    settings = job.arguments["settings"]
    if not _in_steps(job):
        chart(_trials_figure(points, settings), key=f"train_trials_{job.id}", name="settings tried")
        return
    left, right = st.columns(2)
    with left:
        chart(_objective_figure(points), key=f"train_objective_{job.id}", name="objective")
    with right:
        chart(_quality_figure(points, settings), key=f"train_quality_{job.id}", name="held-out quality")


def _in_steps(job: Job) -> bool:
    """Whether there are steps to watch; a metric in closed form has settings that are tried."""
    return job.arguments["settings"].get("method", RANKING) == RANKING


def _trials_figure(points: list[dict[str, Any]], settings: dict[str, Any]) -> go.Figure:
    """Held-out quality of each of the settings that were tried."""
    is_automatic = settings["method"] == AUTOMATIC
    what = "Mean of AUC, MAP, MRR and P@10" if is_automatic else LOSSES[settings["loss"]].split(":")[0]
    # of many settings a row a method
    rows = [str(p["setting"]).split(",")[0] if is_automatic else str(p["setting"]) for p in points]
    figure = go.Figure()
    figure.add_scatter(
        x=[point["quality"] for point in points], y=rows, text=[point["setting"] for point in points],
        name="held-out artists", mode="markers", marker={"size": 9, "opacity": 0.7},
        hovertemplate="%{text}: %{x:.3f}<extra></extra>",
    )  # fmt: skip
    if points:
        figure.add_vline(
            points[0]["untrained"], line={"width": 2, "dash": "dash", "color": UNKNOWN_COLOUR},
            annotation_text="untrained", annotation_position="top",
        )  # fmt: skip
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_layout(
        height=140 + 28 * len(set(rows)), margin={"l": 56, "r": 48, "t": 64, "b": 40}, uirevision="kept",
        title={"text": f"{what} on held-out artists", "font": {"size": 14}, "x": 0.0},
    )  # fmt: skip
    return figure


def _fits(points: list[dict[str, Any]]) -> list[int]:
    """Where a fit with another C begins, and the end."""
    starts = [0] if points else []
    starts += [i for i, (a, b) in enumerate(pairwise(points), 1) if a["C"] != b["C"]]
    return [*starts, len(points)]


def _with_gaps(points: list[dict[str, Any]], name: str) -> tuple[list[int | None], list[float | None]]:
    """Cuts and values, with nothing between two fits; what a log scale cannot show is left out."""
    x: list[int | None] = []
    y: list[float | None] = []
    for start, end in pairwise(_fits(points)):
        x += [*range(start + 1, end + 1), None]
        y += [point[name] if point[name] > 0 else None for point in points[start:end]] + [None]
    return x, y


def _framed(figure: go.Figure, title: str, points: list[dict[str, Any]]) -> go.Figure:
    """One size and one look for both figures, so that nothing moves while points come."""
    for start, end in pairwise(_fits(points)):
        C = points[start]["C"]
        figure.add_vline(start + 0.5, line={"width": 1, "color": UNKNOWN_COLOUR, "dash": "dot"})
        if end - start < len(points) / 12:  # no room for its label
            continue
        figure.add_annotation(
            x=start + 1, y=1, yref="paper", text="all songs" if C is None else f"C = {C:,g}",
            showarrow=False, xanchor="left", yanchor="bottom", font={"size": 10},
        )  # fmt: skip
    figure.update_layout(
        height=_CHART_HEIGHT, margin={"l": 56, "r": 48, "t": 64, "b": 76}, uirevision="kept",
        title={"text": title, "font": {"size": 14}, "x": 0.0, "y": 0.98, "yanchor": "top"},
        legend={"orientation": "h", "x": 0, "y": -0.34, "yanchor": "top"}, showlegend=True,
    )  # fmt: skip
    figure.update_xaxes(title={"text": "steps, over all fits", "standoff": 6}, range=[0, max(20, len(points) * 1.02)])
    return figure


def _objective_figure(points: list[dict[str, Any]]) -> go.Figure:
    figure = go.Figure()
    for name, words in (("objective", "objective"), ("dual_bound", "lower bound")):
        x, y = _with_gaps(points, name)
        figure.add_scatter(x=x, y=y, name=words, mode="lines", line={"width": 2})
    figure.update_yaxes(type="log", dtick=1, exponentformat="power")
    return _framed(figure, "Objective and its bound (log)", points)


def _quality_figure(points: list[dict[str, Any]], settings: dict[str, Any]) -> go.Figure:
    of_answers = settings["supervision"] == ANSWERS
    who = "held-out answers" if of_answers else "held-out artists"
    what = "Comparisons in order" if of_answers else LOSSES[settings["loss"]].split(":")[0]
    seen = [point for point in points if "quality" in point]
    figure = go.Figure()
    x, y = _with_gaps(seen, "quality")
    figure.add_scatter(x=x, y=y, name=who, mode="lines", line={"width": 2})
    if seen:
        figure.add_scatter(
            x=[1, len(points)], y=[seen[0]["untrained"]] * 2, name="untrained", mode="lines",
            line={"width": 2, "dash": "dash", "color": UNKNOWN_COLOUR},
        )  # fmt: skip
    return _framed(figure, f"{what} on {who}", points)
