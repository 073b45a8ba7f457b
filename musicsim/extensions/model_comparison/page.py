"""The comparison of Sound with another model on the Research page."""

from collections.abc import Hashable, Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from musicsim.explorer import BETTER, NO_DIFFERENCE, RANKING_MEASURES, WORSE, Snapshot
from musicsim.extensions.model_comparison.comparison import Against, Difference, comparable, compare_with
from musicsim.library import Library
from musicsim.ui import choose_kind, format_figure
from musicsim.ui.base import (
    AT_ONCE_S,
    EXPLAINED_INTERVAL,
    escape_for_chart,
    get_desk,
    kept,
    plain,
    task_key,
    value_of,
    wait_for,
)
from musicsim.ui.components import ask_coverage, chart, show_table

_DESK = "against"  # name of a separate thread: a comparison takes a minute and must not delay other sessions
_COLORS = {BETTER: "#0f8b8d", NO_DIFFERENCE: "#8a8f98", WORSE: "#d1495b"}
_MAX_LABEL = 24


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw a menu of models, and the comparison of the selected model with Sound."""
    names = {record.id: record.name for record in comparable(snapshot.library)}
    if not names:
        st.info(
            "There is no model to compare with Sound yet. Import vectors on the Teach page, or run an ONNX model with "
            "`musicsim models add-onnx`.", icon=":material/info:",
        )  # fmt: skip
        return
    coverage = ask_coverage(snapshot)
    is_covered = coverage.wait(AT_ONCE_S)
    kind = choose_kind(value_of(coverage))
    if kind is None:
        wait_for([coverage], n_shown=int(is_covered))
        return
    chosen = st.selectbox(
        "Compare with", list(names), **kept("evaluate_against"), format_func=lambda model_id: plain(names[model_id]),
        help="A model with your own vectors or a different representation. It is compared with Sound, each before and "
        "after training.",
    )  # fmt: skip
    key = task_key(snapshot, f"against {chosen} by {kind}")
    task = get_desk(_DESK).find(key)
    if task is None:
        st.button(
            "Compare", icon=":material/balance:", type="primary", key="evaluate_compare",
            on_click=_start, args=(key, snapshot.library, names[chosen], kind),
            help="Trains each model once per artist fold; takes about a minute for 300 songs.",
        )  # fmt: skip
        return
    task.wait(AT_ONCE_S)
    wait_for([task])
    result = value_of(task)
    if result is not None:
        _show(result)


def _start(key: Hashable, library: Library, name: str, kind: str) -> None:
    get_desk(_DESK).ask(key, lambda progress: compare_with(library, name, kind, progress))


def _show(result: Against) -> None:
    st.markdown("\n".join(f"- {plain(difference.summary)}" for difference in result.differences))
    cells = [
        {"Model": plain(row.name)}
        | {title: format_figure(row.figures[name]) for name, title in RANKING_MEASURES.items()}
        for row in result.rows
    ]
    show_table(pd.DataFrame(cells), name="ours vs theirs", key="evaluate_against_table")
    notes = [f"{row.name}: {row.note}." for row in result.rows if row.note]
    st.caption(" ".join([plain(" ".join([result.summary, *notes])), EXPLAINED_INTERVAL]))
    differences = [difference for difference in result.differences if difference.leads]
    if differences:
        by = st.segmented_control(
            "Measure", list(RANKING_MEASURES), default="map", key="evaluate_against_by", required=True,
            format_func=RANKING_MEASURES.__getitem__,
        )  # fmt: skip
        _draw_chart(differences, str(by))


def _draw_chart(differences: Sequence[Difference], by: str) -> None:
    leads = [difference.leads[by] for difference in differences]
    figure = go.Figure(
        go.Scatter(
            x=[lead.mean for lead in leads],
            y=[
                f"{escape_for_chart(d.name, _MAX_LABEL)}<br>over {escape_for_chart(d.other, _MAX_LABEL)}"
                for d in differences
            ],
            mode="markers",
            marker={"size": 11, "color": [_COLORS[lead.words] for lead in leads]},
            error_x={
                "array": [lead.high - lead.mean for lead in leads],
                "arrayminus": [lead.mean - lead.low for lead in leads],
                "color": _COLORS[NO_DIFFERENCE],
            },
            hovertemplate="%{y}: %{x:+.3f}<extra></extra>",
        )
    )
    figure.add_vline(x=0, line_dash="dot", line_color=_COLORS[NO_DIFFERENCE])
    figure.update_layout(
        height=48 * len(differences) + 60,
        margin={"l": 0, "r": 8, "t": 4, "b": 0},
        xaxis={"fixedrange": True, "tickformat": "+.2f", "zeroline": False},
        yaxis={"automargin": True, "fixedrange": True, "autorange": "reversed", "ticksuffix": " "},
    )
    chart(figure, key="evaluate_against_chart", name="ours vs theirs")
    st.caption(
        f"Gain in {RANKING_MEASURES[by]} of the first model over the second on the same queries, with the 95% interval "
        "over resampled artists. To the right of the dotted line, the first model is better."
    )
