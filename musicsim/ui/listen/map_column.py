"""The map of the Listen page, or the maps of two models next to each other."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from musicsim._arrays import Float32Array, Int64Array
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.ui.base import openers
from musicsim.ui.base.keys import COLOR_BY, MARKED, SECOND_MODEL
from musicsim.ui.base.text import plain
from musicsim.ui.components.listening import play_preview
from musicsim.ui.components.song_map import song_map
from musicsim.ui.listen.seed import mark, start_song

MAP_KEY = "explore_map"


def map_options(snapshot: Snapshot) -> None:
    """Show the colors of the map, and a choice of a model for a second map."""
    offered, by = openers.colors_of(snapshot), _color_by(snapshot)
    # The key includes the value, because the default changes with the songs, and only a new widget shows it.
    widget = f"color_by_{by}"
    st.selectbox(
        "Color by", offered, offered.index(by), key=widget, on_change=lambda: COLOR_BY.set(st.session_state[widget])
    )
    others = _other_models(snapshot)
    if others:
        st.selectbox(
            "Compare with model", list(others), **SECOND_MODEL.widget(), format_func=others.__getitem__,
            placeholder="none",
            help="Shows the map of another model next to this one, with the same songs marked.",
        )  # fmt: skip


def _color_by(snapshot: Snapshot) -> str:
    """Return the property that colors the map: the chosen one if it is available, or the default."""
    offered = openers.colors_of(snapshot)
    return COLOR_BY.get() if COLOR_BY.get() in offered else offered[0]


def fit_second_model(snapshot: Snapshot) -> None:
    """Reset the model of the second map if it was deleted or is now the model in use."""
    if SECOND_MODEL.get() not in _other_models(snapshot):
        SECOND_MODEL.set(None)


def _other_models(snapshot: Snapshot) -> dict[str, str]:
    models, own = snapshot.library.models, snapshot.record
    return {r.id: r.name for r in models.all() if models.is_whole(r) and (own is None or r.id != own.id)}


def show_maps(snapshot: Snapshot, chosen: int | None, near: Sequence[int], star: Float32Array | None) -> None:
    """Show the map with the chosen song, and rings around the marked songs, or around `near` if MARKED is empty."""
    marked = MARKED.get() if len(MARKED.get()) else near
    others, second = _other_models(snapshot), SECOND_MODEL.get()
    if second not in others or snapshot.record is None:
        _show_map(snapshot, MAP_KEY, snapshot, chosen, marked, star)
    else:
        named = {second: others[second], snapshot.record.id: snapshot.record.name}
        for column, (model_id, name) in zip(st.columns(2), named.items(), strict=True):
            with column:
                st.markdown(f"**{plain(name)}**")
                drawn = openers.snapshot(second) if model_id == second else snapshot
                _show_map(drawn, f"{MAP_KEY}_{model_id}", snapshot, chosen, marked, star if drawn is snapshot else None)
    st.caption(_facts(snapshot, star is not None))


def _show_map(
    drawn: Snapshot, key: str, snapshot: Snapshot, chosen: int | None, marked: Sequence[int] | Int64Array,
    star: Float32Array | None,
) -> None:  # fmt: skip
    """Show the map of the snapshot `drawn`; clicks act on the page's `snapshot`."""
    song_map(
        drawn, key=key, color_by=_color_by(snapshot), chosen=chosen, marked=marked, query=star, height=None,
        on_pick=partial(_click, snapshot), on_hear=partial(play_preview, snapshot),
        on_outline=partial(_lasso, snapshot),
    )  # fmt: skip


def _click(snapshot: Snapshot, song_id: int) -> None:
    start_song(snapshot, song_id)


def _lasso(snapshot: Snapshot, ids: Int64Array) -> None:
    """Mark the songs inside a lasso; a lasso around one song counts as a click."""
    if len(ids) == 1:
        _click(snapshot, int(ids[0]))
    elif len(ids):
        mark(ids)


def _facts(snapshot: Snapshot, has_star: bool) -> str:
    n_hidden = int((snapshot.rows_of(snapshot.representative_of) >= 0).sum())
    n_waiting = snapshot.n_songs - snapshot.n_indexed - n_hidden
    native = snapshot.library.models.native()
    if snapshot.record and native and snapshot.record.id != native.id:
        alike = f"similar according to the model “{plain(snapshot.record.name)}”"
    else:
        alike = "similar in sound"
    facts = [f"{snapshot.n_indexed:,} songs; nearby songs are {alike}. Click a point to play it."]
    if has_star:
        facts += ["The star is your query; rings mark the nearest songs."]
    elif SECOND_MODEL.get() is not None:
        facts += ["Rings mark the nearest songs, on both maps."]
    if snapshot.representative_of:
        facts += [f"{len(snapshot.representative_of):,} duplicates hidden."]
    if n_waiting:
        facts += [f"{n_waiting:,} more are not on the map yet."]
    return " ".join(facts)
