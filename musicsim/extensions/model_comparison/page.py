"""Ours against theirs on the Evaluate page: the sound and an embedding, before and after learning on each."""

from collections.abc import Hashable, Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from musicsim.explorer.learning.verdict import BETTER, NO_DIFFERENCE, RANKED, WORSE
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.model_comparison.comparison import Against, Difference, comparable, compare_with
from musicsim.progress import Progress
from musicsim.ui.base.desk import AT_ONCE_S, desk, task_key, value_of, wait_for
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import in_chart, plain
from musicsim.ui.components.charts import chart
from musicsim.ui.components.coverage import ask_coverage
from musicsim.ui.components.table_download import saved_table
from musicsim.ui.evaluate.quality_view import choose_kind, written

_MODEL: Key[str] = Key("evaluate_against", str, "id of the model that is compared with the sound", per_library=True)
_DESK = "against"  # of its own: what takes a minute should not hold up the figures of other sessions
_COLOURS = {BETTER: "#0f8b8d", NO_DIFFERENCE: "#8a8f98", WORSE: "#d1495b"}
_MAX_LABEL = 24


def draw(now: Snapshot, *, busy: bool) -> None:
    """Choose a model, and compare it with the sound."""
    names = {record.id: record.name for record in comparable(now.library)}
    if not names:
        st.info(
            "There is nothing to compare the sound with yet: bring vectors of your own on the Train page, or run an "
            "ONNX model with `musicsim models add-onnx`.", icon=":material/info:",
        )  # fmt: skip
        return
    covered = ask_coverage(now)
    covered.within(AT_ONCE_S)
    kind = choose_kind(value_of(covered))
    if kind is None:
        wait_for([covered])
        return
    if _MODEL.get() not in names:
        _MODEL.set(next(iter(names)))
    _MODEL.keep()
    chosen = st.selectbox(
        "Compare with", list(names), key=_MODEL.name, format_func=lambda model_id: plain(names[model_id]),
        help="Vectors of your own, or another way to describe songs; it and the sound are compared before and after "
        "learning on each.",
    )  # fmt: skip
    key = task_key(now, f"against {chosen} by {kind}")
    task = desk(_DESK).known(key)
    if task is None:
        st.button(
            "Compare", icon=":material/balance:", type="primary", key="evaluate_compare",
            on_click=_ask, args=(key, now, names[chosen], kind),
            help="It learns on each model, once for each fold of artists: a minute for 300 songs.",
        )  # fmt: skip
        return
    task.within(AT_ONCE_S)
    found = value_of(task)
    if found is not None:
        _show(found)
    wait_for([task])


def _ask(key: Hashable, now: Snapshot, name: str, kind: str) -> None:
    def work(progress: Progress) -> Against:
        return compare_with(now.library, name, kind, progress)

    desk(_DESK).ask(key, work)


def _show(found: Against) -> None:
    st.markdown("\n".join(f"- {plain(one.words)}" for one in found.differences))
    cells = [
        {"Model": plain(row.name)} | {title: written(row.figures[name]) for name, title in RANKED.items()}
        for row in found.rows
    ]
    saved_table(pd.DataFrame(cells), name="ours against theirs", key="evaluate_against_table")
    notes = [f"{row.name}: {row.note}." for row in found.rows if row.note]
    st.caption(plain(" ".join([found.words, *notes])))
    differences = [one for one in found.differences if one.leads]
    if differences:
        by = st.segmented_control(
            "Measure", list(RANKED), default="map", key="evaluate_against_by", format_func=RANKED.__getitem__,
            required=True,
        )  # fmt: skip
        _differences(differences, str(by))


def _differences(differences: Sequence[Difference], by: str) -> None:
    """The paired differences of one measure with their intervals, and where none is."""
    leads = [one.leads[by] for one in differences]
    figure = go.Figure(
        go.Scatter(
            x=[lead.mean for lead in leads],
            y=[f"{in_chart(d.name, _MAX_LABEL)}<br>over {in_chart(d.other, _MAX_LABEL)}" for d in differences],
            mode="markers",
            marker={"size": 11, "color": [_COLOURS[lead.words] for lead in leads]},
            error_x={
                "array": [lead.high - lead.mean for lead in leads],
                "arrayminus": [lead.mean - lead.low for lead in leads],
                "color": _COLOURS[NO_DIFFERENCE],
            },
            hovertemplate="%{y}: %{x:+.3f}<extra></extra>",
        )
    )
    figure.add_vline(x=0, line_dash="dot", line_color=_COLOURS[NO_DIFFERENCE])
    figure.update_layout(
        height=48 * len(differences) + 60,
        margin={"l": 0, "r": 8, "t": 4, "b": 0},
        xaxis={"fixedrange": True, "tickformat": "+.2f", "zeroline": False},
        yaxis={"automargin": True, "fixedrange": True, "autorange": "reversed", "ticksuffix": " "},
    )
    chart(figure, key="evaluate_against_chart", name="ours against theirs")
    st.caption(
        f"Gain in {RANKED[by]} of the first over the second on the same queries, with the 95 % interval over resampled "
        "artists: right of the dotted line the first is better. Of so many intervals, one in twenty misses by chance."
    )
