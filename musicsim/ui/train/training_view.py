"""Training: the form, the running job with its curves, and its outcome."""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from musicsim.explorer import LEARNED_KIND, ORDER_LOSS, TRAINING_KINDS, Snapshot, jobs
from musicsim.explorer.learning.supervision import Coverage, rank_kinds
from musicsim.explorer.refresh.learned_model import choose_default_models
from musicsim.explorer.refresh.model_text import name_for
from musicsim.explorer.requests.training import (
    ANSWERS,
    AUTOMATIC,
    LOSSES,
    METHODS,
    OVERLAPS,
    PENALTIES,
    RANKING,
    STRUCTURES,
    TrainingRequest,
)
from musicsim.explorer.snapshot.map_columns import UNKNOWN_COLOR
from musicsim.library import Library
from musicsim.library.stores.jobs import Job
from musicsim.ui.base import Key, describe_option, option_keys, option_limits, plain, value_of
from musicsim.ui.base.keys import SECTIONS
from musicsim.ui.components import ask_coverage, chart, start_job
from musicsim.ui.components.jobs_view import watch_training
from musicsim.wording import capitalize, clock, count

_DEFAULT = TrainingRequest()
_CS = tuple(round(10 ** (half / 2), 1 if half < 2 else 0) for half in range(13))
_CHART_HEIGHT = 280

_KEYS = option_keys("train", TrainingRequest, quick=True, C=1000.0)
_SUPERVISION: Key[str] = _KEYS["supervision"]
_METHOD, _LOSS, _ON, _LISTENER, _C = (_KEYS[field] for field in ("method", "loss", "on", "listener", "C"))
_MANUAL_C: Key[bool] = Key("train_by_hand", lambda: False, "True if the user sets C")


@dataclass(slots=True)
class _Last:
    """The kind of supervision and the model in use when the page was last drawn."""

    kind: str = ""
    in_use: str = ""


IS_DETAILED: Key[bool] = Key("train_details", lambda: False, "True if the details of Other teachers are open")
_LAST: Key[_Last] = Key("train_last", _Last, "state of the page when it was last drawn")


def show_start(snapshot: Snapshot, *, busy: bool) -> None:
    """Show a choice of supervision and a button that starts training; `snapshot` uses the model Sound."""
    covered: list[Coverage] | None = value_of(ask_coverage(snapshot))
    if covered is None:
        return
    enough = {c.kind: c for c in rank_kinds(covered)}
    if _SUPERVISION.get() not in enough:
        _SUPERVISION.set(next(iter(enough), _DEFAULT.supervision))
    _fit_to_kind()
    _fit_to_models(snapshot.library)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if enough:
            st.selectbox(
                **_widget("supervision"), options=list(enough), width=360,
                format_func=lambda kind: f"{TRAINING_KINDS[kind].model_name} ({count(enough[kind].n_songs, 'song')})",
            )  # fmt: skip
        st.button(
            "Train", type="primary", icon=":material/school:", key="train_start",
            disabled=busy or not enough, on_click=_start, args=(snapshot.library,),
        )  # fmt: skip
    running = jobs.current(snapshot.library) if busy else None
    if running is not None and running.kind != "train":
        st.caption(f"Wait for “{jobs.job_kinds()[running.kind].title}” to finish.")
    elif enough:
        kind = _SUPERVISION.get()
        st.caption(f"{capitalize(TRAINING_KINDS[kind].words)}: {plain(enough[kind].detail)}.")


def show_options(snapshot: Snapshot) -> None:
    """Show the training options; `snapshot` uses the model Sound."""
    left, right = st.columns(2, gap="large")
    with left:
        _show_method(snapshot.library)
    with right:
        _show_more_options(snapshot.library)


def _fit_to_kind() -> None:
    """Select the loss for answers, or a loss that other kinds of supervision allow."""
    kind, last = _SUPERVISION.get(), _LAST.get().kind
    if kind == ANSWERS and last != ANSWERS:
        _LOSS.set(ORDER_LOSS)
        _METHOD.set(RANKING)
    elif kind != ANSWERS and (_LOSS.get() in {ORDER_LOSS, ""} or not _METHOD.get()):
        _LOSS.set(_DEFAULT.loss)
        _METHOD.set(_DEFAULT.method)
    _LAST.get().kind = kind


def _bases(library: Library) -> list[str]:
    return [record.name for record in library.models.all() if record.kind != LEARNED_KIND]


def _fit_to_models(library: Library) -> None:
    """If no existing model is chosen, or another model is in use, choose the default ones."""
    bases, active = _bases(library), library.models.active()
    in_use = active.name if active else ""
    chosen = [name for name in _ON.get() if name in bases]
    if not chosen or in_use != _LAST.get().in_use:
        chosen = [record.name for record in choose_default_models(library, _METHOD.get())] or bases[:1]
    _ON.set(chosen)
    _LAST.get().in_use = in_use


def _show_method(library: Library) -> None:
    st.selectbox(
        **_widget("method"), options=[RANKING] if _SUPERVISION.get() == ANSWERS else list(METHODS),
        format_func=lambda method: capitalize(METHODS[method]), on_change=_ON.set, args=([],),
    )  # fmt: skip
    st.toggle(**_widget("quick"), disabled=_METHOD.get() != AUTOMATIC)
    is_ranking = _METHOD.get() == RANKING
    losses = [loss for loss in LOSSES if loss != ORDER_LOSS or _SUPERVISION.get() == ANSWERS]
    st.selectbox(**_widget("loss"), options=losses, format_func=LOSSES.__getitem__, disabled=_METHOD.get() == AUTOMATIC)
    is_manual = st.toggle("Set regularization C manually", **_MANUAL_C.widget(), disabled=not is_ranking)
    st.select_slider(
        **_widget("C"), options=_CS, format_func=lambda C: f"{C:,g}", disabled=not (is_manual and is_ranking)
    )
    st.multiselect(**_widget("on"), options=_bases(library), placeholder="Choose models")
    st.text_input(**_widget("name"), max_chars=50, placeholder=name_for(library, _SUPERVISION.get()))
    st.toggle(**_widget("use"))


def _widget(field: str) -> dict[str, Any]:
    return describe_option(TrainingRequest, field) | _KEYS[field].widget()


def _number(field: str) -> dict[str, Any]:
    return _widget(field) | option_limits(TrainingRequest, field)


def _show_more_options(library: Library) -> None:
    kind, loss, is_ranking = _SUPERVISION.get(), _LOSS.get(), _METHOD.get() == RANKING
    if kind == ANSWERS:
        people = ["", *library.judgments.listeners()]
        if _LISTENER.get() not in people:
            _LISTENER.set("")
        st.selectbox(**_widget("listener"), options=people, format_func=lambda name: plain(name) or "everybody's")
    has_k = kind in ("plays", "sittings", "playlists")
    first, second = st.columns(2)
    noun = TRAINING_KINDS[kind].of.capitalize() if has_k else "Songs"
    first.number_input(
        **_number("k") | {"label": f"{noun} that count as similar"},
        disabled=not has_k and loss not in {"ndcg", "precision"},
    )
    second.number_input(**_number("threshold"), disabled=kind != "plays")
    st.selectbox(
        **_widget("overlap"), options=list(OVERLAPS), format_func=lambda name: capitalize(OVERLAPS[name]),
        disabled=not has_k,
    )  # fmt: skip
    first.radio(
        **_widget("structure"), options=list(STRUCTURES), format_func=STRUCTURES.__getitem__, disabled=not is_ranking
    )
    second.radio(
        **_widget("regularizer"), options=list(PENALTIES), format_func=PENALTIES.__getitem__,
        disabled=kind == ANSWERS or not is_ranking,
    )  # fmt: skip
    st.toggle(**_widget("generated"), disabled=kind != "playlists")
    st.number_input(**_number("random_state"))


def _start(library: Library) -> None:
    """Start training with the chosen options; this must be a callback, so that it sees the value typed last."""
    values = {field: key.get() for field, key in _KEYS.items()} | {
        "C": float(_C.get()) if _MANUAL_C.get() and _METHOD.get() == RANKING else None,
        "listener": _LISTENER.get() if _SUPERVISION.get() == ANSWERS else "",
        "quick": _KEYS["quick"].get() and _METHOD.get() == AUTOMATIC,
    }
    request = TrainingRequest(**values)
    start_job(library, "train", **request.job_arguments(name_for(library, request.supervision, request.name)))
    _KEYS["name"].set("")


def select_training(kind: str) -> None:
    """Choose the supervision for the next training, and open the section of the Teach page that starts it."""
    _SUPERVISION.set(kind)
    SECTIONS["train"].set("train")
    IS_DETAILED.set(True)


def show_result(library: Library, job: Job) -> None:
    """Show the curves of a training that runs or has ended, or why it has failed."""
    if not job.is_active and job.state != "done":
        _show_failed(library, job)
        return
    points = library.jobs.trace(job.id)
    if job.state == "done":
        duration = clock(max(0.0, job.updated_at - job.created_at))
        st.markdown(f"Trained **{plain(job.arguments['name'])}** in {duration}")
    if points:
        _show_charts(points, job)


def show_running(library: Library, job: Job) -> None:
    """Show the progress of a training with buttons to stop it; the page runs again when the job ends."""
    watch_training(library, job)
    is_stopping = job.finish_requested or job.cancel_requested
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Stop and keep the best", icon=":material/check:", key="train_finish", disabled=is_stopping,
            on_click=library.jobs.update, args=(job.id,), kwargs={"finish_requested": True},
            help="Stops now, and keeps the metric that has been best on held-out artists so far.",
        )  # fmt: skip
        st.button(
            "Cancel", icon=":material/close:", key="train_cancel", disabled=is_stopping,
            on_click=jobs.cancel, args=(library, job.id),
        )  # fmt: skip
        if is_stopping:
            st.caption("Canceling…" if job.cancel_requested else "Keeping the best metric so far…")


def _show_failed(library: Library, job: Job) -> None:
    duration = clock(max(0.0, job.updated_at - job.created_at))
    name = plain(job.arguments["name"])
    if job.state == "failed":
        st.error(plain(job.message), icon=":material/error:")
    elif job.state == "cancelled":
        st.info(f"**{name}** was canceled after {duration}; nothing was saved.", icon=":material/info:")
    else:
        st.info(f"**{name}** stopped after {duration} because its process ended.", icon=":material/info:")

    def start_again() -> None:
        new_name = name_for(library, job.arguments["settings"]["supervision"], job.arguments["name"])
        start_job(library, "train", **{**job.arguments, "name": new_name})

    st.button(
        "Start again", icon=":material/replay:", key="train_again", on_click=start_again,
        disabled=jobs.current(library) is not None,
    )  # fmt: skip


def _show_charts(points: list[dict[str, Any]], job: Job) -> None:
    settings = job.arguments["settings"]
    if not _has_steps(job):
        chart(_trials_figure(points, settings), key=f"train_trials_{job.id}", name="settings tried")
        return
    left, right = st.columns(2)
    with left:
        chart(_objective_figure(points), key=f"train_objective_{job.id}", name="objective")
    with right:
        chart(_quality_figure(points, settings), key=f"train_quality_{job.id}", name="held-out quality")


def _has_steps(job: Job) -> bool:
    """Return True if the training has steps; closed-form methods only try settings."""
    return job.arguments["settings"].get("method", RANKING) == RANKING


def _trials_figure(points: list[dict[str, Any]], settings: dict[str, Any]) -> go.Figure:
    is_automatic = settings["method"] == AUTOMATIC
    measure = "Mean of AUC, MAP, MRR and P@10" if is_automatic else LOSSES[settings["loss"]].split(":")[0]
    # one row per method, because automatic training tries many settings
    rows = [str(p["setting"]).split(",")[0] if is_automatic else str(p["setting"]) for p in points]
    figure = go.Figure()
    figure.add_scatter(
        x=[point["quality"] for point in points], y=rows, text=[point["setting"] for point in points],
        name="held-out artists", mode="markers", marker={"size": 9, "opacity": 0.7},
        hovertemplate="%{text}: %{x:.3f}<extra></extra>",
    )  # fmt: skip
    if points:
        figure.add_vline(
            points[0]["untrained"], line={"width": 2, "dash": "dash", "color": UNKNOWN_COLOR},
            annotation_text="untrained", annotation_position="top",
        )  # fmt: skip
    figure.update_yaxes(autorange="reversed", automargin=True)
    figure.update_xaxes(range=[0, 1])  # a shorter axis would exaggerate the differences
    figure.update_layout(
        height=140 + 28 * len(set(rows)), margin={"l": 56, "r": 48, "t": 64, "b": 40}, uirevision="kept",
        title={"text": f"{measure} on held-out artists", "font": {"size": 14}, "x": 0.0},
    )  # fmt: skip
    return figure


def _fits(points: list[dict[str, Any]]) -> list[list[tuple[int, dict[str, Any]]]]:
    """Return the numbered points of each fit; a new fit begins when C changes."""
    return [list(fit) for _, fit in groupby(enumerate(points, 1), key=lambda numbered: numbered[1]["C"])]


def _insert_gaps(
    points: list[dict[str, Any]], name: str, *, is_log: bool = False
) -> tuple[list[int | None], list[float | None]]:
    """Return cut numbers and values with a gap between fits; values that a log scale cannot show become None."""
    x: list[int | None] = []
    y: list[float | None] = []
    for fit in _fits(points):
        x += [*(number for number, _ in fit), None]
        y += [*(point[name] if point[name] > 0 or not is_log else None for _, point in fit), None]
    return x, y


def _add_frame(figure: go.Figure, title: str, points: list[dict[str, Any]]) -> go.Figure:
    """Give both figures the same size and style, so that nothing moves while points arrive."""
    for fit in _fits(points):
        number, C = fit[0][0], fit[0][1]["C"]
        figure.add_vline(number - 0.5, line={"width": 1, "color": UNKNOWN_COLOR, "dash": "dot"})
        if len(fit) >= len(points) / 12:  # label the fit only if there is enough space
            figure.add_annotation(
                x=number, y=1, yref="paper", text="all songs" if C is None else f"C = {C:,g}",
                showarrow=False, xanchor="left", yanchor="bottom", font={"size": 10},
            )  # fmt: skip
    figure.update_layout(
        height=_CHART_HEIGHT, margin={"l": 56, "r": 48, "t": 64, "b": 76}, uirevision="kept",
        title={"text": title, "font": {"size": 14}, "x": 0.0, "y": 0.98, "yanchor": "top"},
        legend={"orientation": "h", "x": 0, "y": -0.34, "yanchor": "top"}, showlegend=True,
    )  # fmt: skip
    figure.update_xaxes(title={"text": "steps (all fits)", "standoff": 6}, range=[0, max(20, len(points) * 1.02)])
    return figure


def _objective_figure(points: list[dict[str, Any]]) -> go.Figure:
    figure = go.Figure()
    is_log = any(point["objective"] > 0 for point in points)  # it is 0 if the untrained model makes no error
    for name, label in (("objective", "objective"), ("dual_bound", "lower bound")):
        x, y = _insert_gaps(points, name, is_log=is_log)
        # a fit with a single step is a marker
        figure.add_scatter(x=x, y=y, name=label, mode="lines+markers", line={"width": 2}, marker={"size": 4})
    if is_log:
        figure.update_yaxes(type="log", dtick=1, exponentformat="power")
    return _add_frame(figure, f"Objective and its bound{' (log)' if is_log else ''}", points)


def _quality_figure(points: list[dict[str, Any]], settings: dict[str, Any]) -> go.Figure:
    is_survey = settings["supervision"] == ANSWERS
    source = "held-out answers" if is_survey else "held-out artists"
    measure = "Comparisons in order" if is_survey else LOSSES[settings["loss"]].split(":")[0]
    evaluated = [point for point in points if "quality" in point]
    figure = go.Figure()
    x, y = _insert_gaps(evaluated, "quality")
    figure.add_scatter(x=x, y=y, name=source, mode="lines", line={"width": 2})
    if evaluated:
        figure.add_scatter(
            x=[1, len(points)], y=[evaluated[0]["untrained"]] * 2, name="untrained", mode="lines",
            line={"width": 2, "dash": "dash", "color": UNKNOWN_COLOR},
        )  # fmt: skip
    figure.update_yaxes(range=[0, 1])
    return _add_frame(figure, f"{measure} on {source}", points)
