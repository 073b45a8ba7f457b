"""The map as a plotly figure: songs as points, the chosen song, its neighbours and a query marked.

Of a large library the figure holds a sample of the songs before an image of how dense they lie
(:mod:`musicsim.explorer.snapshot.map_view`); what is marked is always there.
"""

import base64
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from musicsim.explorer.snapshot.map_view import OncePer, Shown, Window, map_view
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.db.columns import HEARD, Labels
from musicsim.ui.base.text import in_chart

__all__ = [
    "COLOUR_BY",
    "MAX_MARKED",
    "UNKNOWN_COLOUR",
    "colours_of",
    "label_colours",
    "map_figure",
    "map_name",
]

COLOUR_BY = ("genre", "artist", "folder", "year", "cluster", "key", "mode", *HEARD)
UNKNOWN_COLOUR = "#b9b4a8"
_TITLES = {
    "year": "year", "tempo": "beats/min", "loudness": "LUFS", "brightness": "Hz", "energy": "dB/s"
}  # fmt: skip
_COLOURED = (2, 98)  # percentiles: a few odd songs do not take the colours of all others
MAX_MARKED = 2_000
"""Songs that get a ring: more of them are one black spot."""
# Okabe and Ito's colours first: told apart by every kind of colour vision; then Paul Tol's muted ones.
_PALETTE = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9",
    "#882255", "#999933", "#332288", "#44aa99", "#aa4499", "#117733",
)  # fmt: skip
# Beyond twelve, colours come again with another shape.
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x")
_STYLES = [(colour, symbol) for symbol in _SYMBOLS for colour in _PALETTE]
_MAX_IN_LEGEND = 24
_INK = "#1f2a2e"
_RED = "#d4002a"
_SHADE = (
    0x4D,
    0x6E,
    0x78,
)  # of the density: the ink with some of the accent, so that no genre has its colour
_DARKEST = 0.42  # opacity where most songs are
_MAX_LINE = 80  # letters of a title or a label
_ROOM = 0.06  # of the map's width, between its edge and the query

Trace = dict[str, Any]


def colours_of(labels: Sequence[str | None]) -> dict[str, tuple[str, str]]:
    """Colour and shape of each label, the most frequent first; the same on every page of a library."""
    return _styles_of(Counter(label for label in labels if label is not None).items())


def _styles_of(counts: Iterable[tuple[str, int]]) -> dict[str, tuple[str, str]]:
    ordered = sorted(counts, key=lambda entry: (-entry[1], entry[0]))
    return {label: style for (label, _), style in zip(ordered, _STYLES, strict=False)}


@dataclass(frozen=True, slots=True)
class _Colouring:
    """The category of every song: its place in `names`, with the colour and shape of each.

    Attributes
    ----------
    place : uint8 ndarray of shape (n_songs,)
    names : list of str
        Labels with a colour of their own, the most frequent first, then "others" and "unknown".
    styles : list of (colour, shape)
    counts : int64 ndarray of shape (len(names),)
        Songs of each.
    """

    place: npt.NDArray[np.uint8]
    names: list[str]
    styles: list[tuple[str, str]]
    counts: npt.NDArray[np.int64]


def _colouring(labels: Labels) -> _Colouring:
    is_known = np.array([name != "" for name in labels.names] + [False])[labels.codes]  # code -1: the last
    counts = np.bincount(labels.codes[is_known], minlength=len(labels.names))
    most = np.sort(counts)[::-1][: len(_STYLES)]
    frequent = np.flatnonzero((counts > 0) & (counts >= (most[-1] if len(most) else 0)))
    styles = _styles_of((labels.names[code], int(counts[code])) for code in frequent)
    names, looks = list(styles), list(styles.values())
    others, unknown = len(names), len(names) + 1
    of_code = np.full(len(labels.names) + 1, others, dtype=np.uint8)
    place_of = {name: place for place, name in enumerate(names)}
    for code in frequent.tolist():
        of_code[code] = place_of.get(labels.names[code], others)
    grey = (UNKNOWN_COLOUR, "circle")
    place = np.where(is_known, of_code[labels.codes], unknown).astype(np.uint8)
    names += ["others", "unknown"]
    return _Colouring(place, names, [*looks, grey, grey], np.bincount(place, minlength=len(names)))


def _short_folders(labels: Labels) -> Labels:
    """Folders by their last part only; those that have it in common are one."""
    places: dict[str, int] = {}
    short = [name.rstrip("/").rsplit("/", 1)[-1] or name for name in labels.names]
    codes = np.array([places.setdefault(name, len(places)) for name in short] + [-1], dtype=np.int32)
    return Labels(codes[labels.codes], list(places))


def _cluster_labels(clusters: npt.NDArray[np.int64]) -> Labels:
    codes = clusters.astype(np.int32)
    return Labels(codes, [f"cluster {label}" for label in range(int(codes.max(initial=-1)) + 1)])


def _colouring_by_folder(labels: Labels) -> _Colouring:
    return _colouring(_short_folders(labels))


def _colouring_by_cluster(clusters: npt.NDArray[np.int64]) -> _Colouring:
    return _colouring(_cluster_labels(clusters))


_by_label: OncePer[Labels, _Colouring] = OncePer(_colouring)
_by_folder: OncePer[Labels, _Colouring] = OncePer(_colouring_by_folder)
_by_cluster: OncePer[npt.NDArray[np.int64], _Colouring] = OncePer(_colouring_by_cluster)


def _colours(snapshot: Snapshot, by: str) -> _Colouring:
    if by == "cluster":
        smallest = min(snapshot.clusters, key=int, default=None)
        none = np.full(snapshot.n_indexed, -1, dtype=np.int64)
        return _by_cluster(none if smallest is None else snapshot.clusters[smallest])
    labels: Labels = getattr(snapshot.columns, by)
    return (_by_folder if by == "folder" else _by_label)(labels)


def label_colours(labels: Labels) -> dict[str, tuple[str, str]]:
    """As :func:`colours_of`, of a column of songs; labels that all the others share a colour with are left out."""
    colouring = _by_label(labels)
    return dict(zip(colouring.names[:-2], colouring.styles, strict=False))


def _packed(values: npt.NDArray[Any]) -> dict[str, str]:
    """An array as plotly takes it: base64 of its bytes, a third of what its figures in letters are."""
    kinds = {"f": "f4", "i": "i4", "u": "u1"}
    kind = kinds[values.dtype.kind]
    return {"dtype": kind, "bdata": base64.b64encode(values.astype(f"<{kind}").tobytes()).decode()}


def _texts(rows: npt.NDArray[np.int64], snapshot: Snapshot) -> npt.NDArray[np.object_]:
    names = snapshot.names_at(rows)
    texts = [f"<b>{in_chart(title, _MAX_LINE)}</b><br>{in_chart(by, _MAX_LINE)}" for title, by in names]
    return np.array(texts, dtype=object)


# 50 ms for a sample, which stays the same while its window does
_hover: OncePer[npt.NDArray[np.int64], npt.NDArray[np.object_]] = OncePer(_texts, most=8)


@dataclass(frozen=True, slots=True)
class _Points:
    """Songs that are drawn: their rows, and the texts that stand beside the pointer."""

    snapshot: Snapshot
    rows: npt.NDArray[np.int64]
    hover: npt.NDArray[np.object_]

    @classmethod
    def of(cls, snapshot: Snapshot, rows: npt.NDArray[np.int64]) -> "_Points":
        return cls(snapshot, rows, _hover(rows, snapshot))

    def trace(self, which: npt.NDArray[Any] | slice = slice(None), **options: Any) -> Trace:
        """Those of a mask or of some indices as one trace."""
        rows = self.rows[which]
        places = self.snapshot.map[rows]
        return {
            "type": "scattergl",
            "x": _packed(places[:, 0]),
            "y": _packed(places[:, 1]),
            "mode": "markers",
            "customdata": _packed(self.snapshot.row_ids[rows]),
            "hovertext": self.hover[which].tolist(),
            "hovertemplate": "%{hovertext}<extra></extra>",
            **options,
        }


def _look(size: float, is_sampled: bool, **options: Any) -> dict[str, Any]:
    """The points of a category; those of a sample leave the density to be seen between and through them."""
    if is_sampled:
        return {"size": size, "opacity": 0.8, "line": {"width": 0}, **options}
    return {"size": size, "line": {"width": 0.5, "color": "white"}, **options}


def _category_traces(points: _Points, by: str, size: float, is_sampled: bool) -> list[Trace]:
    colouring = _colours(points.snapshot, by)
    place = colouring.place[points.rows]
    there = np.flatnonzero(colouring.counts)
    # a category without a point in view keeps its entry: the legend's height, and with it the map's, stays
    is_kept = is_sampled and len(there) <= _MAX_IN_LEGEND
    traces = []
    for k in there.tolist():
        of_it = np.flatnonzero(place == k)
        name, (colour, symbol) = in_chart(colouring.names[k], _MAX_LINE), colouring.styles[k]
        marker = _look(size, is_sampled, color=colour, symbol=symbol)
        about = {"name": name, "uid": f"{by}-{k}", "marker": marker}
        if len(of_it):
            traces.append(points.trace(of_it, **about))
        elif is_kept:
            traces.append({"type": "scattergl", "x": [None], "y": [None], "mode": "markers", **about})
    return traces


def _number_traces(points: _Points, by: str, size: float, is_sampled: bool) -> list[Trace]:
    of_all = getattr(points.snapshot.columns, by)
    is_known = of_all > 0 if by == "year" else np.isfinite(of_all)
    known = is_known[points.rows]
    traces = []
    if not known.all():
        marker = _look(size, is_sampled, color=UNKNOWN_COLOUR)
        traces.append(points.trace(~known, name="unknown", uid=f"{by}-0", marker=marker))
    if is_known.any():
        bar = {"title": {"text": _TITLES[by]}, "thickness": 10, "tickformat": "d"}
        low, high = np.percentile(of_all[is_known], [0, 100] if by == "year" else _COLOURED)
        marker = _look(
            size, is_sampled, color=_packed(of_all[points.rows[known]]), colorscale="Viridis", cmin=float(low),
            cmax=float(high), colorbar=bar,
        )  # fmt: skip
        traces.append(points.trace(known, name=by, uid=f"{by}-1", showlegend=False, marker=marker))
    return traces


def _placed(snapshot: Snapshot, ids: Sequence[int]) -> npt.NDArray[np.int64]:
    """Rows of songs that have a place on the map."""
    rows = snapshot.rows_of(ids)
    rows = rows[rows >= 0]
    return rows[np.isfinite(snapshot.map[rows]).all(axis=1)]


def _marks(snapshot: Snapshot, ids: Sequence[int], name: str, **marker: Any) -> list[Trace]:
    points = _Points.of(snapshot, _placed(snapshot, ids))
    return [points.trace(name=name, uid=name, showlegend=False, marker=marker)] if len(points.rows) else []


def _ranges(snapshot: Snapshot, query: npt.NDArray[np.float32] | None) -> list[list[float]]:
    """Limits of both axes, wide enough for the query."""
    home = map_view(snapshot.map).home
    limits = [[home.left, home.right], [home.bottom, home.top]]
    for limit, place in zip(limits, () if query is None else query.tolist(), strict=False):
        room = _ROOM * (limit[1] - limit[0])
        if np.isfinite(place):
            limit[:] = [min(limit[0], place - room), max(limit[1], place + room)]
    return limits


def _png(levels: npt.NDArray[np.uint8]) -> str:
    """The density as the address of a picture: one colour, the more opaque the more songs.

    A palette of levels in PNG (RFC 2083): 30 to 60 kB.
    """
    height, width = levels.shape
    levels = levels // 4  # 64 steps: the eye sees no more, and the file is a third smaller
    opacity = np.round(np.linspace(0.0, 255 * _DARKEST, 64)).astype(np.uint8)
    lines = np.pad(levels, ((0, 0), (1, 0)))  # in front of each line: not filtered

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"PLTE", bytes(_SHADE) * 64)
    data += chunk(b"tRNS", opacity.tobytes()) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 6))
    return "data:image/png;base64," + base64.b64encode(data + chunk(b"IEND", b"")).decode()


_picture: OncePer[npt.NDArray[np.uint8], str] = OncePer(_png)


def _behind(shown: Shown) -> list[dict[str, Any]]:
    """The density as plotly takes it; none where every song is a point."""
    if shown.density is None:
        return []
    where = shown.behind
    return [
        {
            "source": _picture(shown.density), "xref": "x", "yref": "y", "x": where.left, "y": where.top,
            "sizex": where.right - where.left, "sizey": where.top - where.bottom, "sizing": "stretch",
            "layer": "below",
        }
    ]  # fmt: skip


def map_name(snapshot: Snapshot) -> str:
    """What tells the map of one model of one library from the others."""
    return f"{snapshot.library.folder}:{snapshot.record.id if snapshot.record else ''}"


def map_spec(
    snapshot: Snapshot,
    colour_by: str = "genre",
    *,
    chosen: int | None = None,
    found: Sequence[int] = (),
    path: Sequence[int] = (),
    query: npt.NDArray[np.float32] | None = None,
    window: Window | None = None,
    height: int = 600,
    legend: bool = True,
) -> dict[str, Any]:
    """The map of a library as plotly's JSON: made of texts, numbers, lists and dicts.

    Parameters
    ----------
    colour_by : one of COLOUR_BY
    chosen : int, optional
        Id of the song that is marked.
    found : sequence of int
        Ids of songs with a ring: neighbours, or what a search found; the first :data:`MAX_MARKED` of them.
    path : sequence of int
        Ids of songs joined by a line, as a playlist.
    query : float32 ndarray of shape (2,), optional
        Place of a star.
    window : Window, optional
        The part that is looked at: of a large library the points are a sample of the songs there.
    height : int
        In pixels.
    legend : bool
        Say below the map what the colours mean, where they are few enough.

    Returns
    -------
    dict with "data" and "layout"; ``customdata`` of each point is its song id
    """
    view = map_view(snapshot.map)
    shown = view.shown(window)
    smallest = 3.5 if view.is_sampled else 4
    size = float(np.clip(160 / np.sqrt(max(1, len(shown.rows))), smallest, 12))
    points = _Points.of(snapshot, shown.rows)
    traces = (
        _number_traces(points, colour_by, size, view.is_sampled)
        if colour_by in _TITLES
        else _category_traces(points, colour_by, size, view.is_sampled)
    )
    showlegend = legend and len(traces) <= _MAX_IN_LEGEND
    ring = {"symbol": "circle-open", "color": _INK, "line": {"width": 1.5}, "size": size + 6}
    target = {"symbol": "circle-open", "color": _RED, "line": {"width": 3}, "size": size + 12}
    traces += _path(snapshot, path)
    traces += _marks(snapshot, [*found[:MAX_MARKED], *path], "found", **ring)
    traces += _marks(snapshot, [] if chosen is None else [chosen], "chosen", **target)
    traces += _star(query)
    x, y = _ranges(snapshot, query)
    layout = {
        "showlegend": showlegend,
        "images": _behind(shown),
        "xaxis": {"visible": False, "range": x},
        "yaxis": {"visible": False, "range": y},
        "height": height,
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0, "autoexpand": True},
        "legend": {"orientation": "h", "y": -0.02, "yanchor": "top", "itemsizing": "constant"},
        "dragmode": "pan",
        "hovermode": "closest",
        "uirevision": map_name(snapshot),
    }
    return {"data": traces, "layout": layout}


def _path(snapshot: Snapshot, ids: Sequence[int]) -> list[Trace]:
    places = snapshot.map[_placed(snapshot, ids)]
    if not len(places):
        return []
    line = {"color": _INK, "width": 1.5}
    x, y = _packed(places[:, 0]), _packed(places[:, 1])
    return [
        {"type": "scatter", "x": x, "y": y, "mode": "lines", "line": line, "hoverinfo": "skip", "showlegend": False}
    ]  # fmt: skip


def _star(query: npt.NDArray[np.float32] | None) -> list[Trace]:
    if query is None or not np.isfinite(query).all():
        return []
    marker = {"symbol": "star", "size": 24, "color": _RED, "line": {"width": 1.5, "color": "white"}}
    return [
        {
            "type": "scattergl", "x": [float(query[0])], "y": [float(query[1])], "mode": "markers", "marker": marker,
            "name": "your query", "uid": "query", "hovertemplate": "your query<extra></extra>", "showlegend": False,
        }
    ]  # fmt: skip


def map_figure(snapshot: Snapshot, colour_by: str = "genre", **options: Any) -> go.Figure:
    """The map of a library as plotly's figure, for Streamlit's own chart; as :func:`map_spec`."""
    return go.Figure(map_spec(snapshot, colour_by, **options))
