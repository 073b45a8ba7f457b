"""The map as a plotly figure: a point a song, the chosen song, its neighbours and a query marked."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from musicsim.explorer.snapshot import Snapshot
from musicsim.library import Song

__all__ = ["COLOUR_BY", "UNKNOWN_COLOUR", "colours_of", "map_figure"]

COLOUR_BY = ("genre", "artist", "folder", "year", "cluster")
UNKNOWN_COLOUR = "#b9b4a8"
# Okabe and Ito's colours first: told apart by every kind of colour vision; then Paul Tol's muted ones.
_PALETTE = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9",
    "#882255", "#999933", "#332288", "#44aa99", "#aa4499", "#117733",
)  # fmt: skip
# Beyond twelve, colours come again with another shape.
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x")
_MOST_IN_LEGEND = 24
_INK = "#1f2a2e"


def _labels(snapshot: Snapshot, by: str) -> list[str | None]:
    if by == "cluster":
        smallest = min(snapshot.clusters, key=int, default=None)
        if smallest is None:
            return [None] * len(snapshot.indexed)
        return [f"cluster {label}" if label >= 0 else None for label in snapshot.clusters[smallest].tolist()]
    return [_field(song, by) for song in snapshot.indexed]


def _field(song: Song, by: str) -> str | None:
    if by == "folder":
        return song.folder.rstrip("/").rsplit("/", 1)[-1] or song.folder
    value = getattr(song, by)
    return None if value in (None, "") else str(value)


def colours_of(labels: Sequence[str | None]) -> dict[str, tuple[str, str]]:
    """Colour and shape of each label, the most frequent first; the same on every page of a library."""
    counts = Counter(label for label in labels if label is not None)
    ordered = sorted(counts, key=lambda label: (-counts[label], label))
    styles = [(colour, symbol) for symbol in _SYMBOLS for colour in _PALETTE]
    return dict(zip(ordered, styles, strict=False))


def _hover(songs: Sequence[Song]) -> list[str]:
    # plotly reads a little HTML in hover texts, and titles come from files
    return [f"<b>{escape(s.title)}</b><br>{escape(s.by)}" for s in songs]


def _points(snapshot: Snapshot, rows: npt.NDArray[np.int64], **options: Any) -> go.Scattergl:
    songs = [snapshot.indexed[row] for row in rows]
    places = snapshot.map[rows]
    return go.Scattergl(
        x=places[:, 0],
        y=places[:, 1],
        mode="markers",
        customdata=[song.id for song in songs],
        hovertext=_hover(songs),
        hovertemplate="%{hovertext}<extra></extra>",
        **options,
    )


def _category_traces(snapshot: Snapshot, by: str, size: float) -> list[go.Scattergl]:
    labels = _labels(snapshot, by)
    styles = colours_of(labels)
    placed = np.isfinite(snapshot.map).all(axis=1)
    groups: dict[str, list[int]] = {}
    for row in np.flatnonzero(placed).tolist():
        label = labels[row]
        name = label if label in styles else ("unknown" if label is None else "others")
        groups.setdefault(str(name), []).append(row)
    ordered = [label for label in styles if label in groups]
    ordered += [name for name in ("others", "unknown") if name in groups and name not in styles]
    traces = []
    for name in ordered:
        colour, symbol = styles.get(name, (UNKNOWN_COLOUR, "circle"))
        marker = {"color": colour, "symbol": symbol, "size": size, "line": {"width": 0.5, "color": "white"}}
        traces.append(_points(snapshot, np.array(groups[name]), name=escape(name), marker=marker))
    return traces


def _year_trace(snapshot: Snapshot, size: float) -> list[go.Scattergl]:
    placed = np.flatnonzero(np.isfinite(snapshot.map).all(axis=1))
    years = np.array([snapshot.indexed[row].year or 0 for row in placed])
    traces = []
    if (years == 0).any():
        marker = {"color": UNKNOWN_COLOUR, "size": size}
        traces.append(_points(snapshot, placed[years == 0], name="unknown", marker=marker))
    if (years > 0).any():
        marker = {
            "color": years[years > 0],
            "colorscale": "Cividis",
            "size": size,
            "colorbar": {"title": "year", "thickness": 10, "tickformat": "d"},
        }
        traces.append(_points(snapshot, placed[years > 0], name="year", showlegend=False, marker=marker))
    return traces


def _marks(snapshot: Snapshot, ids: Sequence[int], name: str, **marker: Any) -> list[go.Scattergl]:
    rows = [snapshot.row_of[i] for i in ids if i in snapshot.row_of]
    rows = [row for row in rows if np.isfinite(snapshot.map[row]).all()]
    if not rows:
        return []
    return [_points(snapshot, np.array(rows), name=name, showlegend=False, marker=marker)]


def _ranges(snapshot: Snapshot, query: npt.NDArray[np.float32] | None) -> list[list[float]]:
    """Limits of both axes with room for the marks at the edge, which plotly's own limits cut."""
    places = snapshot.map if query is None else np.vstack([snapshot.map, query[None, :]])
    places = places[np.isfinite(places).all(axis=1)]
    if not len(places):
        return [[-1.0, 1.0], [-1.0, 1.0]]
    low, high = places.min(axis=0), places.max(axis=0)
    room = np.maximum(0.06 * (high - low), 1e-3)
    return np.stack([low - room, high + room], axis=1).tolist()


def map_figure(
    snapshot: Snapshot,
    colour_by: str = "genre",
    *,
    chosen: int | None = None,
    found: Sequence[int] = (),
    path: Sequence[int] = (),
    query: npt.NDArray[np.float32] | None = None,
    height: int = 600,
    legend: bool = True,
) -> go.Figure:
    """The map of a library.

    Parameters
    ----------
    snapshot : Snapshot
    colour_by : one of COLOUR_BY
    chosen : int, optional
        Id of the song that is marked.
    found : sequence of int
        Ids of songs with a ring: neighbours, or what a search found.
    path : sequence of int
        Ids of songs joined by a line, as a playlist.
    query : float32 ndarray of shape (2,), optional
        Place of a star.
    height : int
        In pixels.
    legend : bool
        Say below the map what the colours mean, where they are few enough.

    Returns
    -------
    plotly Figure; ``customdata`` of each point is its song id
    """
    size = float(np.clip(160 / np.sqrt(max(1, len(snapshot.indexed))), 4, 12))
    traces = (
        _year_trace(snapshot, size) if colour_by == "year" else _category_traces(snapshot, colour_by, size)
    )
    figure = go.Figure(traces)
    figure.update_layout(showlegend=legend and len(traces) <= _MOST_IN_LEGEND)
    rows = [snapshot.row_of[i] for i in path if i in snapshot.row_of]
    if rows:
        places = snapshot.map[rows]
        line = {"color": _INK, "width": 1.5}
        figure.add_scatter(
            x=places[:, 0], y=places[:, 1], mode="lines", line=line, hoverinfo="skip", showlegend=False
        )
    ring = {"symbol": "circle-open", "size": size + 6, "color": _INK, "line": {"width": 1.5}}
    figure.add_traces(_marks(snapshot, list(found) + list(path), "found", **ring))
    if chosen is not None:
        target = {"symbol": "circle-open", "size": size + 12, "color": "#d4002a", "line": {"width": 3}}
        figure.add_traces(_marks(snapshot, [chosen], "chosen", **target))
    if query is not None and np.isfinite(query).all():
        star = {"symbol": "star", "size": 24, "color": "#d4002a", "line": {"width": 1.5, "color": "white"}}
        figure.add_scattergl(
            x=[query[0]], y=[query[1]], mode="markers", marker=star, name="your query",
            hovertemplate="your query<extra></extra>", showlegend=False,
        )  # fmt: skip
    x, y = _ranges(snapshot, query)
    figure.update_layout(
        xaxis={"visible": False, "range": x},
        yaxis={"visible": False, "range": y},
        height=height,
        margin={"l": 0, "r": 0, "t": 0, "b": 0, "autoexpand": True},
        legend={"orientation": "h", "y": -0.02, "yanchor": "top", "itemsizing": "constant"},
        dragmode="pan",
        hovermode="closest",
        uirevision=f"{snapshot.library.folder}:{snapshot.record.id if snapshot.record else ''}",
    )
    return figure
