"""What leads from song to song: weights of a library's walk by family, its strongest edges, gains of its dialects."""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from musicsim.explorer.playlists.walk import Dialect, Walk
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import in_chart, plain
from musicsim.ui.components.charts import chart
from musicsim.ui.components.table_download import saved_table

_ALL = "all playlists"
_COLOURS = ("#0f6b75", "#d08a3c")
_LISTED = 12
_MAX_LABEL = 26

_DIALECT: Key[str] = Key("weights_dialect", str, "dialect whose weights are shown; empty for all playlists")


def show_weights(walker: Walk) -> None:
    """Weights of a walk: shares of the families, the strongest edges, and what each dialect is worth.

    Parameters
    ----------
    walker : Walk
        Of the snapshot that the page is about.
    """
    if walker.snapshot.n_indexed < 2:
        st.info("A playlist needs at least two songs: add more.", icon=":material/info:")
        return
    st.caption(
        "A playlist moves from song to song by what they have in common: sound, a tag, the artist, the "
        "years, the listeners. The weight says how often each is used."
    )
    if not walker.n_playlists:
        st.info(
            "These weights are defaults, sound first: this library has no playlists to learn from. "
            "Import some on the Library page to learn the weights from them.", icon=":material/info:",
        )  # fmt: skip
    chosen = _choose(walker.dialects)
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.subheader("By family", anchor=False)
        _families(walker, chosen)
    with right:
        st.subheader("The strongest", anchor=False)
        _strongest(walker, chosen)
    if walker.n_playlists:
        _gains(walker.dialects)


def _choose(dialects: Sequence[Dialect]) -> str:
    """The dialect to show beside the walk of all playlists; "" for none."""
    names = [dialect.name for dialect in dialects if dialect.name]
    if not names:
        return ""
    if _DIALECT.get() not in names:
        _DIALECT.set("")
    _DIALECT.keep()
    return str(
        st.selectbox(
            "Dialect", ["", *names], key=_DIALECT.name, width=360,
            format_func=lambda name: name or _ALL,
            help="A kind of playlist with weights of its own, shown next to those of all playlists.",
        )
    )  # fmt: skip


def _families(walker: Walk, chosen: str) -> None:
    """Bars of the shares, those of a dialect above those of all playlists."""
    of_all = dict(walker.families())
    bars = {_ALL if walker.n_playlists else "default": of_all}
    if chosen:
        bars = {chosen: dict(walker.families(chosen))} | bars
    names = sorted(of_all, key=lambda name: max(shares.get(name, 0.0) for shares in bars.values()))
    figure = go.Figure()
    for (label, shares), colour in reversed(list(zip(bars.items(), reversed(_COLOURS[: len(bars)]), strict=True))):
        values = [shares.get(name, 0.0) for name in names]
        figure.add_bar(
            name=in_chart(label, _MAX_LABEL),
            x=values,
            y=names,
            orientation="h",
            marker_color=colour,
            text=[_percent(value) for value in values],
            textposition="outside",
            textangle=0,
            cliponaxis=False,
            hovertemplate="%{y}: %{x:.1%}<extra>%{fullData.name}</extra>",
        )
    top = max(max(shares.values(), default=0.0) for shares in bars.values())
    figure.update_layout(
        height=(24 if len(bars) == 1 else 40) * len(names) + 80,
        barmode="group",
        bargap=0.3,
        margin={"l": 0, "r": 44, "t": 4, "b": 0},
        xaxis={"range": [0, 1.02 * max(top, 0.01)], "fixedrange": True, "tickformat": ".0%", "nticks": 5},
        yaxis={"automargin": True, "fixedrange": True, "ticksuffix": " "},
        showlegend=len(bars) > 1,
        # those of the dialect stand above, so they come first
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "traceorder": "reversed"},
    )
    chart(figure, key="weights_families", name="weights")
    st.caption(
        "Share of all weight. A reason from two families, such as “both tagged calm and from 1990-1999”, "
        "counts for both, so the shares may add up to more than 100 %."
    )


def _strongest(walker: Walk, chosen: str) -> None:
    edges = walker.strongest(chosen or None, _LISTED)
    if not edges:
        st.caption("Chance only: nothing is known that these songs have in common.")
        return
    lines = [f"- {plain(edge.reason)} :small[:gray[{_percent(edge.probability)}]]" for edge in edges]
    st.markdown("\n".join(lines))
    whose = f"of “{plain(chosen)}”" if chosen else "of all playlists" if walker.n_playlists else "by default"
    st.caption(f"Share of all weight {whose}. Each step picks one of a song's reasons in proportion to these weights.")


def _gains(dialects: Sequence[Dialect]) -> None:
    st.subheader("How good it is", anchor=False)
    whole, *kinds = dialects
    judged = sorted(kinds, key=lambda one: (one.gain is None, -(one.gain or 0.0), -one.n_playlists, one.name))
    table = {
        "": [plain(one.name or _ALL) for one in (whole, *judged)],
        "playlists": [f"{one.n_playlists:,}" for one in (whole, *judged)],
        "gain": [_gain(one.gain) for one in (whole, *judged)],
        "with the weights of all": ["", *(_gain(one.gain_global) for one in judged)],
    }
    saved_table(pd.DataFrame(table), name="dialects", key="weights_dialects")
    if whole.gain is None:
        st.caption(
            f"{whole.n_playlists:,} playlists are too few to hold some out, so nothing is known about how "
            "well the weights predict others."
        )
        return
    st.caption(
        "Gain over shuffling on held-out playlists, a quarter of all. 0 % is as good as shuffling, below "
        "0 is worse, 100 % would predict every next song. The weights in use are learned from all "
        "playlists. “–”: too few were held out."
    )
    ahead = sum(one.gain > one.gain_global for one in kinds if one.gain is not None and one.gain_global is not None)
    n_judged = sum(one.gain is not None for one in kinds)
    if n_judged:
        st.caption(
            f"Of {n_judged:,} dialects that could be evaluated, {ahead:,} predict their own playlists "
            "better than the weights of all."
        )


def _gain(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _percent(share: float) -> str:
    return "< 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"
