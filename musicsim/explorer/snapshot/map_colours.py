"""What the colours of a map mean: a code for every song, and what each code stands for.

Labels keep the colour they were once given, in the library's settings: a song more or less repaints nothing.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import PurePath

import numpy as np

from musicsim._arrays import Float64Array, Uint8Array
from musicsim.audio import HEARD
from musicsim.errors import StorageError
from musicsim.explorer.snapshot.map_regions import regions_of
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library
from musicsim.library.db.columns import Labels
from musicsim.public import is_public, refuse_visitors

_UNITS = {"year": "", "tempo": "beats/min", "loudness": "LUFS", "brightness": "Hz", "energy": "dB/s"}
COLOUR_BY = ("genre", "artist", "folder", "tag", "year", "cluster", "key", "mode", *HEARD)
UNKNOWN_COLOUR = "#b9b4a8"
_OTHERS_COLOUR = "#8f897c"
# Okabe and Ito's colours first: told apart by every kind of colour vision; then Paul Tol's muted ones.
_FULL = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9",
    "#882255", "#999933", "#332288", "#44aa99", "#aa4499", "#117733",
)  # fmt: skip
# Plasma without its palest end: no step of it is grey, so nothing known looks like what is unknown.
_SCALE = ("#0d0887", "#46039f", "#7201a8", "#9c179e", "#bd3786", "#d8576b", "#ed7953", "#fb9f3a")
_N_STEPS = 64
_COLOURED = (2, 98)  # percentiles: a few odd songs do not take the colours of all others


def _rgb(colour: str) -> Float64Array:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], dtype=np.float64)


def _hex(rgb: Float64Array) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in rgb.tolist())


PALETTE = (*_FULL, *(_hex(0.55 * _rgb(colour) + 0.45 * 255.0) for colour in _FULL))
"""Colours of labels; the second half are tints of the first."""


def _steps() -> list[str]:
    ends = np.array([_rgb(colour) for colour in _SCALE])
    at = np.linspace(0, len(ends) - 1, _N_STEPS)
    return [_hex(rgb) for rgb in np.column_stack([np.interp(at, range(len(ends)), part) for part in ends.T])]


@dataclass(frozen=True, slots=True)
class Entry:
    """What a code stands for: a label, or a step of a scale (without a name)."""

    name: str
    colour: str
    n_songs: int
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class Scale:
    """The ends of the numbers that colours stand for; what lies outside has the colour of the end."""

    low: float
    high: float
    unit: str


@dataclass(frozen=True, slots=True)
class Colouring:
    """A code for every row of a snapshot."""

    codes: Uint8Array  # (n_indexed,): places in `entries`
    # Labels from frequent to rare, then the others; of numbers the steps of `scale`. Last the unknown.
    entries: list[Entry]
    scale: Scale | None = None  # None of labels


def colouring(snapshot: Snapshot, by: str) -> Colouring:
    """Colours of all rows by one of :data:`COLOUR_BY`."""
    if by not in colours_offered():
        refuse_visitors()
    if by in _UNITS:
        return _by_number(getattr(snapshot.columns, by).astype(np.float64), by)
    if by == "cluster":
        return _by_cluster(snapshot)
    labels = _labels(snapshot, by)
    return _by_label(labels, _kept_slots(snapshot.library, by, labels))


def label_colours(snapshot: Snapshot, by: str) -> dict[str, str]:
    """The colour of each label that has one of its own."""
    slots = _kept_slots(snapshot.library, by, _labels(snapshot, by))
    return {name: PALETTE[slot] for name, slot in slots.items()}


def colours_offered() -> tuple[str, ...]:
    """What the colours of a map may mean; visitors are not told names of folders."""
    return tuple(by for by in COLOUR_BY if by != "folder" or not is_public())


def _labels(snapshot: Snapshot, by: str) -> Labels:
    if by == "tag":
        return _main_tags(snapshot)
    labels: Labels = getattr(snapshot.columns, by)
    return Labels(labels.codes, _folder_names(labels.names)) if by == "folder" else labels


def _main_tags(snapshot: Snapshot) -> Labels:
    """The heaviest tag of each song."""
    places: dict[str, int] = {}
    of_song = {i: places.setdefault(tags[0][0], len(places)) for i, tags in snapshot.tags_of().items()}
    codes = [of_song.get(i, -1) for i in snapshot.row_ids.tolist()]
    return Labels(np.array(codes, dtype=np.int32), list(places))


def _folder_names(names: Sequence[str]) -> list[str]:
    """The last part of each path, with as many of its parents as tell it from all others."""
    parts = [PurePath(name).parts for name in names]
    n_parts = [1] * len(names)
    while True:
        short = ["/".join(of[-n:]) or name for of, n, name in zip(parts, n_parts, names, strict=True)]
        count = dict(zip(*np.unique(short, return_counts=True), strict=True)) if short else {}
        longer = [i for i, name in enumerate(short) if count[name] > 1 and n_parts[i] < len(parts[i])]
        if not longer:
            return short
        for i in longer:
            n_parts[i] += 1


# --- labels ---------------------------------------------------------------------------------------


def _kept_slots(library: Library, by: str, labels: Labels) -> dict[str, int]:
    """Places in the palette of labels that songs have: those given before, then the most frequent others.

    A label that many others have overtaken gives its place back.
    """
    n_songs = labels.counts()
    n_songs.pop("", None)
    given = {name: slot for name, slot in library.colours(by).items() if slot < len(PALETTE)}
    frequent = nsmallest(2 * len(PALETTE), n_songs, key=lambda name: (-n_songs[name], name))
    slots = {name: slot for name, slot in given.items() if name in frequent}
    taken = set(slots.values())
    # a colour that no label ever had comes before one whose songs have gone, which may come back
    free = sorted(set(range(len(PALETTE))) - taken, key=lambda slot: (slot in given.values(), slot))
    slots |= dict(zip([name for name in frequent if name not in slots], free, strict=False))
    kept = {name: slot for name, slot in given.items() if slot not in slots.values()} | slots
    if kept != library.colours(by):
        with suppress(StorageError):  # a library that cannot be written to keeps none
            library.keep_colours(by, kept)
    return slots


def _by_label(labels: Labels, slots: dict[str, int]) -> Colouring:
    n_songs = labels.counts()
    own = sorted(slots, key=lambda name: (-n_songs[name], name))
    code_of = {name: code for code, name in enumerate(own)}
    others, unknown = len(own), len(own) + 1
    codes = [unknown if name == "" else code_of.get(name, others) for name in labels.names]
    return _counted(
        np.array([*codes, unknown], dtype=np.uint8)[labels.codes],  # code -1: the last
        [(name, PALETTE[slots[name]]) for name in own] + [("others", _OTHERS_COLOUR), ("unknown", UNKNOWN_COLOUR)],
    )


def _by_cluster(snapshot: Snapshot) -> Colouring:
    """The fewest clusters there are, named by what is typical of them."""
    smallest = min(snapshot.clusters, key=int, default=None)
    if smallest is None:
        return _counted(np.zeros(snapshot.n_indexed, dtype=np.uint8), [("unknown", UNKNOWN_COLOUR)])
    labels = snapshot.clusters[smallest]
    names = {region.cluster: region.name for region in regions_of(snapshot)[0]}
    n_clusters = int(labels.max(initial=-1)) + 1
    said: dict[str, int] = {}
    looks = []
    for cluster in range(n_clusters):
        name = names.get(cluster) or "no common trait"
        said[name] = said.get(name, 0) + 1
        shown = f"{name} ({said[name]})" if said[name] > 1 else name
        looks.append((shown, PALETTE[cluster % len(PALETTE)]))
    codes = np.where(labels < 0, n_clusters, labels).astype(np.uint8)
    return _counted(codes, [*looks, ("unknown", UNKNOWN_COLOUR)])


def _counted(codes: Uint8Array, looks: list[tuple[str, str]]) -> Colouring:
    counts = np.bincount(codes, minlength=len(looks)).tolist()
    entries = [
        Entry(name, colour, n, is_known=i < len(looks) - 1)
        for i, ((name, colour), n) in enumerate(zip(looks, counts, strict=True))
    ]
    return Colouring(codes, entries)


# --- numbers --------------------------------------------------------------------------------------


def _by_number(values: Float64Array, by: str) -> Colouring:
    is_known = values > 0 if by == "year" else np.isfinite(values)
    known = values[is_known]
    low, high = np.percentile(known, (0, 100) if by == "year" else _COLOURED) if len(known) else (0.0, 1.0)
    codes = np.full(len(values), _N_STEPS, dtype=np.uint8)
    share = (known - low) / max(high - low, np.finfo(float).tiny)
    codes[is_known] = np.clip(share * _N_STEPS, 0, _N_STEPS - 1).astype(np.uint8)
    counted = _counted(codes, [*(("", colour) for colour in _steps()), ("unknown", UNKNOWN_COLOUR)])
    return Colouring(codes, counted.entries, Scale(float(low), float(high), _UNITS[by]))
