"""The walk that playlists follow: its weights by family and by edge, the gains of its dialects, and the seed."""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from musicsim.explorer import PlaylistRequest, Snapshot, Walk
from musicsim.explorer.playlists.reason_weights import read_factors, restore_reason
from musicsim.explorer.playlists.walk import Dialect
from musicsim.public import is_public
from musicsim.ui.base import escape_for_chart, kept, option_limits, plain
from musicsim.ui.components import chart, show_table
from musicsim.ui.playlist.draft import PLAYLIST
from musicsim.ui.playlist.request_form import KEYS
from musicsim.ui.playlist.walks import open_walk
from musicsim.wording import count

_ALL = "all playlists"
_COLORS = ("#0f6b75", "#d08a3c")
_MAX_LISTED = 12
_MAX_LABEL = 26


def show_walk(snapshot: Snapshot, *, busy: bool) -> None:
    """Show the weights of the walk: shares of families, strongest edges, and the gain of each dialect; and the seed."""
    walker = open_walk(snapshot)
    if walker is None:
        return
    st.caption(
        "Each step in a playlist follows a feature that two songs share: sound, tags, artist, years or listeners. The "
        "weights show how often each feature is used."
    )
    if not walker.n_playlists:
        st.info(
            "These are default weights, which put sound first, because this library has no playlists yet. Import "
            "playlists on the Library page to learn weights from them.", icon=":material/info:",
        )  # fmt: skip
    chosen = _choose_dialect(walker.dialects)
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.header("By family", anchor=False)
        _show_families(walker, chosen)
    with right:
        st.header("The strongest", anchor=False)
        _show_strongest(walker, chosen)
    _show_lowered(walker)
    if walker.n_playlists:
        _show_gains(walker.dialects)
    _show_seed(walker)


def _show_seed(walker: Walk) -> None:
    """Show the seed and the number of candidates of the next playlist, which the Playlists page does not ask for."""
    st.header("Repeat a playlist", anchor=False)
    surprise, dialect = KEYS["surprise"].get(), KEYS["dialect"].get() or None
    n_candidates, n_usual = (round(walker.step_width(one, dialect)) for one in (surprise, 0.5))
    st.caption(
        f"At the surprise of {surprise:.0%} that is chosen on Playlists, a step chooses from about "
        f"{count(n_candidates, 'candidate')}; at 50%, from {n_usual:,}."
    )
    limits = option_limits(PlaylistRequest, "seed")
    st.number_input(**limits | KEYS["seed"].widget(), placeholder="random", width=240)
    draft = PLAYLIST.get()
    if draft is not None and draft.seed is not None:
        st.caption(f"The seed of the open playlist is {draft.seed}.")


def _choose_dialect(dialects: Sequence[Dialect]) -> str:
    """Return the dialect to compare with all playlists, or "" for none."""
    names = [dialect.name for dialect in dialects if dialect.name]
    if not names:
        return ""
    return str(
        st.selectbox(
            "Dialect", ["", *names], **kept("weights_dialect"), width=360,
            format_func=lambda name: name or _ALL,
            help="A kind of playlist with its own weights, shown next to those of all playlists.",
        )
    )  # fmt: skip


def _show_families(walker: Walk, chosen: str) -> None:
    of_all = dict(walker.families())
    bars = {_ALL if walker.n_playlists else "default": of_all}
    if chosen:
        bars = {chosen: dict(walker.families(chosen))} | bars
    names = sorted(of_all, key=lambda name: max(shares.get(name, 0.0) for shares in bars.values()))
    figure = go.Figure()
    for (label, shares), color in reversed(list(zip(bars.items(), reversed(_COLORS[: len(bars)]), strict=True))):
        values = [shares.get(name, 0.0) for name in names]
        figure.add_bar(
            name=escape_for_chart(label, _MAX_LABEL), x=values, y=names, orientation="h", marker_color=color,
            text=[_percent(value) for value in values], textposition="outside", textangle=0, cliponaxis=False,
            hovertemplate="%{y}: %{x:.1%}<extra>%{fullData.name}</extra>",
        )  # fmt: skip
    top = max(max(shares.values(), default=0.0) for shares in bars.values())
    figure.update_layout(
        height=(24 if len(bars) == 1 else 40) * len(names) + 80,
        barmode="group",
        bargap=0.3,
        margin={"l": 0, "r": 44, "t": 4, "b": 0},
        xaxis={"range": [0, 1.02 * max(top, 0.01)], "fixedrange": True, "tickformat": ".0%", "nticks": 5},
        yaxis={"automargin": True, "fixedrange": True, "ticksuffix": " "},
        showlegend=len(bars) > 1,
        # reversed, because the dialect's bars are drawn above the others
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "traceorder": "reversed"},
    )
    chart(figure, key="weights_families", name="weights")
    st.caption(
        "Share of the total weight. A reason from two families, such as “both tagged calm and from 1990-1999”, "
        "counts for both, so the shares may add up to more than 100%."
    )


def _show_strongest(walker: Walk, chosen: str) -> None:
    edges = walker.strongest(chosen or None, _MAX_LISTED)
    if not edges:
        st.caption("Only random jumps: these songs share no known features.")
        return
    lines = [f"- {plain(edge.reason)} :small[:gray[{_percent(edge.probability)}]]" for edge in edges]
    st.markdown("\n".join(lines))
    whose = f"for “{plain(chosen)}”" if chosen else "for all playlists" if walker.n_playlists else "by default"
    st.caption(
        f"Share of the total weight {whose}. Each step picks one of a song's reasons in proportion to these weights."
    )


def _show_lowered(walker: Walk) -> None:
    """Show the reasons whose weights the user has lowered, each with a button that restores its weight."""
    library = walker.snapshot.library
    factors = read_factors(library)
    if not factors:
        return
    st.header("Less often", anchor=False)
    for n, (name, factor) in enumerate(factors.items()):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"{plain(walker.describe(name))}: {factor:.1%} of its weight", width="content")
            if not is_public():
                st.button("Restore", key=f"weights_restore_{n}", on_click=restore_reason, args=(library, name))


def _show_gains(dialects: Sequence[Dialect]) -> None:
    st.header("Quality", anchor=False)
    whole, *kinds = dialects
    kinds = sorted(kinds, key=lambda one: (one.gain is None, -(one.gain or 0.0), -one.n_playlists, one.name))
    table = {
        "": [plain(one.name or _ALL) for one in (whole, *kinds)],
        "playlists": [f"{one.n_playlists:,}" for one in (whole, *kinds)],
        "gain": [_gain(one.gain) for one in (whole, *kinds)],
        "with the general weights": ["", *(_gain(one.gain_global) for one in kinds)],
    }
    show_table(pd.DataFrame(table), name="dialects", key="weights_dialects")
    if whole.gain is None:
        st.caption(f"With only {whole.n_playlists:,} playlists, none are held out, so the weights cannot be evaluated.")
        return
    st.caption(
        "Gain over shuffling, measured on the held-out quarter of the playlists. 0% is no better than shuffling; below "
        "0% is worse; 100% would mean predicting every next song. “–” means that too few playlists were held out. The "
        "weights in use are learned from all playlists."
    )
    evaluated = [one for one in kinds if one.gain is not None]
    n_better = sum(one.gain_global is not None and (one.gain or 0.0) > one.gain_global for one in evaluated)
    if evaluated:
        st.caption(
            f"{n_better:,} of {len(evaluated):,} evaluated dialects predict their own playlists better than the "
            "general weights."
        )


def _gain(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _percent(share: float) -> str:
    return "< 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"
