"""What leads from song to song: weights of a library's walk by family, its strongest edges, gains of its dialects."""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from musicsim.explorer.playlists.walk import Dialect, Walk
from musicsim.ui.base.state import Key
from musicsim.ui.base.text import in_chart, plain

__all__ = ["show_weights"]

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
    if len(walker.snapshot.indexed) < 2:
        st.info("One song leads to no other: add some more.", icon=":material/info:")
        return
    st.caption(
        "A playlist goes from song to song along what both have in common: their sound, a tag, the artist, the years, "
        "who listens. How often each leads on is its weight."
    )
    if not walker.n_playlists:
        st.info(
            "These weights are defaults, sound first: this library has no playlists to learn from. Import some on the "
            "Library page, and they are weighed as people go from song to song.", icon=":material/info:",
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
            help="A kind of playlist with weights of its own, shown beside those of all playlists.",
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
    for (label, shares), colour in reversed(
        list(zip(bars.items(), reversed(_COLOURS[: len(bars)]), strict=True))
    ):
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
    st.plotly_chart(figure, key="weights_families", config={"displayModeBar": False})
    st.caption(
        "Share of all weight. What holds two families at once, such as “both tagged calm and from 1990-1999”, "
        "counts for each of its parts, so that the shares may sum to more than 100 %."
    )


def _strongest(walker: Walk, chosen: str) -> None:
    edges = walker.strongest(chosen or None, _LISTED)
    if not edges:
        st.caption("Nothing but chance: these songs have nothing in common that is known.")
        return
    lines = [f"- {plain(edge.reason)} :small[:gray[{_percent(edge.probability)}]]" for edge in edges]
    st.markdown("\n".join(lines))
    whose = f"of “{plain(chosen)}”" if chosen else "of all playlists" if walker.n_playlists else "by default"
    st.caption(
        f"Share of all weight {whose}. A song's next step is drawn among what the song is part of, in proportion."
    )


def _gains(dialects: Sequence[Dialect]) -> None:
    st.subheader("What it is worth", anchor=False)
    whole, *kinds = dialects
    judged = sorted(kinds, key=lambda one: (one.gain is None, -(one.gain or 0.0), -one.n_playlists, one.name))
    table = {
        "": [plain(one.name or _ALL) for one in (whole, *judged)],
        "playlists": [f"{one.n_playlists:,}" for one in (whole, *judged)],
        "gain": [_gain(one.gain) for one in (whole, *judged)],
        "with the weights of all": ["", *(_gain(one.gain_global) for one in judged)],
    }
    st.table(pd.DataFrame(table), hide_index=True, border="horizontal")
    if whole.gain is None:
        st.caption(
            f"{whole.n_playlists:,} playlists are too few to keep some back: nothing is said of how well the walk "
            f"foretells others."
        )
        return
    st.caption(
        "Gain over shuffling, on playlists that the weights were not learned from: a quarter of them was kept back. "
        "0 % is as good as the shuffle, less is worse, 100 % would know each next song. The walks that draw were then "
        "learned from all. “–”: too few were kept back."
    )
    ahead = sum(
        one.gain > one.gain_global for one in kinds if one.gain is not None and one.gain_global is not None
    )
    n_judged = sum(one.gain is not None for one in kinds)
    if n_judged:
        st.caption(
            f"Of {n_judged:,} dialects that could be judged, {ahead:,} foretell their own playlists better than the "
            f"weights of all."
        )


def _gain(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _percent(share: float) -> str:
    return "< 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"
