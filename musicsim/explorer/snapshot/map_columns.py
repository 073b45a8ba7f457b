"""Colors of the songs on a map, and names of its regions.

The library's settings store the color of each label, so that a change to a few songs does not recolor the map.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from heapq import nsmallest
from typing import NamedTuple

import numpy as np

from musicsim._arrays import Float32Array, Float64Array, Int64Array, Uint8Array
from musicsim.audio import DESCRIPTORS
from musicsim.errors import StorageError
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.sound_colors import SOUNDS, sound_codes
from musicsim.explorer.snapshot.sound_words import compare
from musicsim.library import Labels, Library, SongColumns
from musicsim.public import is_public, refuse_visitors

COLOR_BY = ("genre", "artist", "folder", "tag", "year", "cluster", "sound", "key", "mode", *DESCRIPTORS)
UNKNOWN_COLOR = "#b9b4a8"
_UNKNOWN = ("unknown", UNKNOWN_COLOR)
_OTHERS = ("others", "#8f897c")
# Okabe and Ito's colors, which people with any kind of color vision can tell apart; then Paul Tol's muted colors.
_FULL = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9",
    "#882255", "#999933", "#332288", "#44aa99", "#aa4499", "#117733",
)  # fmt: skip
# The color map "plasma" without its palest end. No step is gray, because gray means unknown.
_SCALE = ("#0d0887", "#46039f", "#7201a8", "#9c179e", "#bd3786", "#d8576b", "#ed7953", "#fb9f3a")
_N_STEPS = 64
_ONE_COLOR = 0.8  # if more than this share of the songs has one label, colors by label are not informative
_PERCENTILES = (2, 98)  # both ends of a color scale, so that a few outliers do not use up the colors
_TYPICAL = 0.6  # minimum difference between a region's mean and the overall mean, in standard deviations
_MAX_WORDS = 2  # in a region's name, except for one more word if two regions would have the same name
_MIN_NAMED = 5  # minimum number of songs in a region that gets a name
_NAMED_AFTER = ("genre", "tag", "folder", "artist")  # labels that a region may be named after
_MAX_TAGGED = 100_000  # in larger libraries, regions are not named after tags, because reading all tags takes seconds
_MAIN_SHARE = 0.5  # a region is named after a label if more than this share of its songs have it
_MAIN_LEAD = 1.5  # the share must also be at least this many times the label's share among all songs, or nearer to 1


@dataclass(frozen=True, slots=True)
class Region:
    """A cluster on the map."""

    cluster: int
    name: str  # empty if the region has no typical property, or is small
    x: float  # median place of its songs, in the map's unit
    y: float
    n_songs: int


def regions_of(snapshot: Snapshot) -> list[list[Region]]:
    """Return the map's regions at each zoom level, largest regions first; about 3 s for 1,000,000 songs."""
    sizes = sorted(snapshot.clusters, key=int)
    allowed = [by for by in _NAMED_AFTER if by in colors_allowed()]
    if snapshot.n_indexed > _MAX_TAGGED or not snapshot.library.listening.tag_counts():
        allowed.remove("tag")
    labels = [color_labels(snapshot, by) for by in allowed]
    return [_find_regions(snapshot.clusters[size], snapshot.map, snapshot.columns, labels) for size in sizes]


def _find_regions(
    clusters: Int64Array, places: Float32Array, columns: SongColumns, named_after: Sequence[Labels]
) -> list[Region]:
    rows = np.flatnonzero((clusters >= 0) & np.isfinite(places).all(axis=1))
    order = rows[np.argsort(clusters[rows], kind="stable")]
    labels, starts = np.unique(clusters[order], return_index=True)
    mains = _main_labels(clusters, named_after)
    n_clusters = int(clusters.max(initial=-1)) + 1
    known = [_compare_means(clusters, n_clusters, getattr(columns, name)) for name in DESCRIPTORS]
    means, differences = (np.column_stack(part) for part in zip(*known, strict=True))
    groups = dict(zip(labels.tolist(), np.split(order, starts[1:]), strict=False))

    def call(label: int, n_words: int) -> str:
        if len(groups[label]) < _MIN_NAMED:
            return ""
        main = [mains[label].name] if label in mains else []
        return ", ".join([*main, *_typical_words(means[label], differences[label], n_words)])

    names = {label: call(label, _MAX_WORDS) for label in groups}
    used = Counter(names.values())
    names = {label: call(label, _MAX_WORDS + 1) if used[name] > 1 else name for label, name in names.items()}
    regions = []
    for label, songs in groups.items():
        # A region can have several groups of songs; its name is placed on the group with the label in the name.
        main = mains.get(label)
        named = songs if main is None else songs[main.labels.codes[songs] == main.code]
        x, y = np.median(places[named], axis=0).tolist()
        regions.append(Region(label, names[label], x, y, len(songs)))
    return regions


def _typical_words(means: Float64Array, differences: Float64Array, n_words: int) -> list[str]:
    """Return words for a region's largest differences, in the order of DESCRIPTORS, without contradictions."""
    names = [*DESCRIPTORS]
    are_pace = [descriptor.is_pace for descriptor in DESCRIPTORS.values()]
    chosen: list[int] = []
    pace = 0.0
    for i in np.argsort(-np.abs(differences), kind="stable").tolist():
        is_contrary = are_pace[i] and differences[i] * pace < 0
        if abs(differences[i]) >= _TYPICAL and len(chosen) < n_words and not is_contrary:
            chosen.append(i)
            pace += differences[i] if are_pace[i] else 0.0
    return [compare(names[i], float(means[i]), float(differences[i])) for i in sorted(chosen)]


def _compare_means(clusters: Int64Array, n_clusters: int, values: Float32Array) -> tuple[Float64Array, Float64Array]:
    """Return each cluster's mean, and its difference from the overall mean in standard deviations; 0 if unknown."""
    known = np.isfinite(values) & (clusters >= 0)
    if not known.any():
        return np.zeros(n_clusters), np.zeros(n_clusters)
    labels, values = clusters[known], values[known].astype(np.float64)
    n_songs = np.bincount(labels, minlength=n_clusters)
    means = np.bincount(labels, values, n_clusters) / np.maximum(n_songs, 1)
    # if all songs are alike, the standard deviation is only rounding error
    if values.std() <= 1e-6 * abs(values.mean()):
        return means, np.zeros(n_clusters)
    return means, np.where(n_songs > 0, (means - values.mean()) / values.std(), 0.0)


class _Main(NamedTuple):
    """A label that sets a cluster apart; `score` is its share times the logarithm of its lead, as in tf-idf."""

    score: float
    name: str
    labels: Labels
    code: int


def _main_labels(clusters: Int64Array, named_after: Sequence[Labels]) -> dict[int, _Main]:
    """Map each cluster that a label sets apart to the label with the highest score."""
    mains: dict[int, _Main] = {}
    n_songs = np.bincount(clusters[clusters >= 0])
    for labels in named_after:
        is_named = np.array([*(name != "" for name in labels.names), False])[labels.codes] & (clusters >= 0)
        # one number per pair of a cluster and a label, because numpy counts rows of two numbers 25 times as slowly
        numbers, counts = np.unique(clusters[is_named] * len(labels.names) + labels.codes[is_named], return_counts=True)
        cluster, code = np.divmod(numbers, max(1, len(labels.names)))
        overall = (np.bincount(code, counts, len(labels.names)) / max(1, int(n_songs.sum())))[code]
        share = counts / n_songs[cluster]
        is_main = (share > _MAIN_SHARE) & ((share / overall >= _MAIN_LEAD) | (share > (1 + overall) / 2))
        for i in np.flatnonzero(is_main).tolist():
            found = _Main(share[i] * math.log(share[i] / overall[i]), labels.names[code[i]], labels, int(code[i]))
            mains[int(cluster[i])] = max(mains.get(int(cluster[i]), found), found, key=lambda main: main.score)
    return mains


def _rgb(color: str) -> Float64Array:
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)], dtype=np.float64)


def _hex(rgb: Float64Array) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in rgb.tolist())


PALETTE = (*_FULL, *(_hex(0.55 * _rgb(color) + 0.45 * 255.0) for color in _FULL))
"""Colors of labels; the second half consists of tints of the first half."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The meaning of a code: a label, or a step of a scale (with an empty name)."""

    name: str
    color: str
    n_songs: int
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class Scale:
    """A range of numbers, their unit, and words for both ends; numbers outside it have the color of the nearer end."""

    low: float
    high: float
    unit: str
    low_word: str  # such as "calm"; empty if there is no word
    high_word: str


@dataclass(frozen=True, slots=True)
class Coloring:
    """A code for every row of a snapshot."""

    codes: Uint8Array  # (n_indexed,): indices in `entries`
    # Labels sorted by number of songs, then "others"; or kinds of sounds; or steps of `scale`. "unknown" is last.
    entries: list[Entry]
    scale: Scale | None = None  # None for labels


def coloring(snapshot: Snapshot, by: str) -> Coloring:
    """Color all rows by one of :data:`COLOR_BY`."""
    if by not in colors_allowed():
        refuse_visitors()
    if by == "year" or by in DESCRIPTORS:
        return _color_by_number(getattr(snapshot.columns, by).astype(np.float64), by)
    if by == "cluster":
        return _color_by_cluster(snapshot)
    if by == "sound":
        codes = sound_codes(snapshot.columns.brightness, snapshot.columns.energy)
        looks = [*((sound.name, sound.shade.hex()) for sound in SOUNDS), _UNKNOWN]
        return _count(np.where(codes < 0, len(SOUNDS), codes).astype(np.uint8), looks)
    labels = color_labels(snapshot, by)
    return _color_by_label(labels, _assign_slots(snapshot.library, by, labels))


def label_colors(snapshot: Snapshot, by: str) -> dict[str, str]:
    """Return the color of each label that has a color of its own."""
    slots = _assign_slots(snapshot.library, by, color_labels(snapshot, by))
    return {name: PALETTE[slot] for name, slot in slots.items()}


def colors_allowed() -> tuple[str, ...]:
    """Return the possible meanings of colors; visitors may not see names of folders."""
    return tuple(by for by in COLOR_BY if by != "folder" or not is_public())


def colors_offered(snapshot: Snapshot) -> list[str]:
    """Return the meanings of colors that apply to at least one song; the first one is the default.

    The default is the first of genre, folder, sound, energy and tempo that colors most songs, without one dominant
    color. The sound comes before numbers, because covers drawn from sound have the same colors.
    """
    sizes = {by: _color_sizes(snapshot, by) for by in colors_allowed()}
    offered = [by for by, n_songs in sizes.items() if n_songs.any()]
    most = {by for by in offered if sizes[by].sum() > snapshot.n_indexed / 2}
    most -= {
        by for by in most & {"genre", "folder", "sound"} if sizes[by].max(initial=0) > _ONE_COLOR * snapshot.n_indexed
    }
    best = next((by for by in ("genre", "folder", "sound", "energy", "tempo") if by in most), "genre")
    return [best, *(by for by in offered if by != best)]


def _color_sizes(snapshot: Snapshot, by: str) -> Int64Array:
    """Return the number of songs in each color, largest first; for a column of numbers, the number of known values."""
    if by == "tag":
        return np.array([*snapshot.library.listening.tag_counts().values()], dtype=np.int64)
    if by == "cluster":
        return np.array([len(labels) for labels in snapshot.clusters.values()], dtype=np.int64)
    if by == "sound":
        codes = sound_codes(snapshot.columns.brightness, snapshot.columns.energy)
        return np.sort(np.bincount(codes[codes >= 0], minlength=len(SOUNDS)))[::-1]
    column = getattr(snapshot.columns, by)
    if isinstance(column, Labels):
        named = np.array([name != "" for name in column.names], dtype=bool)
        return np.sort(column.sizes()[named])[::-1][: len(PALETTE)]
    return np.array([np.count_nonzero(column > 0 if by == "year" else np.isfinite(column))])


def color_labels(snapshot: Snapshot, by: str) -> Labels:
    """Return each row's label, such as its genre; folders have names for people."""
    if by == "tag":  # each song has the color of its heaviest tag
        places: dict[str, int] = {}
        tag_of = {i: places.setdefault(tags[0][0], len(places)) for i, tags in snapshot.tags_of().items()}
        codes = [tag_of.get(i, -1) for i in snapshot.row_ids.tolist()]
        return Labels(np.array(codes, dtype=np.int32), list(places))
    if by == "folder":
        return _name_folders(snapshot)
    labels: Labels = getattr(snapshot.columns, by)
    return labels


def _name_folders(snapshot: Snapshot) -> Labels:
    codes: dict[str, int] = {}
    places = [codes.setdefault(name, len(codes)) for name in snapshot.folder_names]
    return Labels(np.array([*places, -1], dtype=np.int32)[snapshot.columns.folder.codes], list(codes))


def _assign_slots(library: Library, by: str, labels: Labels) -> dict[str, int]:
    """Return and save palette indices of frequent labels; a label keeps its index until it becomes rare."""
    n_songs = labels.counts()
    n_songs.pop("", None)
    frequent = nsmallest(2 * len(PALETTE), n_songs, key=lambda name: (-n_songs[name], name))
    known = library.colors(by)
    slots = _next_slots(known, frequent)
    if slots != known:
        with suppress(StorageError):  # a read-only library cannot save the colors
            slots = library.update_colors(by, lambda known: _next_slots(known, frequent))
    return {name: slot for name, slot in slots.items() if name in frequent}


def _next_slots(known: Mapping[str, int], frequent: Sequence[str]) -> dict[str, int]:
    """Return the palette indices of frequent labels, and of rare ones that had one that is still free."""
    saved = {name: slot for name, slot in known.items() if slot < len(PALETTE)}
    slots = {name: slot for name, slot in saved.items() if name in frequent}
    # colors of rare labels are assigned last, because these labels may become frequent again
    free = set(range(len(PALETTE))) - set(slots.values())
    ordered = sorted(free, key=lambda slot: (slot in saved.values(), slot))
    slots |= dict(zip([name for name in frequent if name not in slots], ordered, strict=False))
    return {name: slot for name, slot in saved.items() if slot not in slots.values()} | slots


def _color_by_label(labels: Labels, slots: dict[str, int]) -> Coloring:
    n_songs = labels.counts()
    own = sorted(slots, key=lambda name: (-n_songs[name], name))
    code_of = {name: code for code, name in enumerate(own)}
    others, unknown = len(own), len(own) + 1
    codes = [unknown if name == "" else code_of.get(name, others) for name in labels.names]
    return _count(
        np.array([*codes, unknown], dtype=np.uint8)[labels.codes],  # code -1 selects the last entry
        [*((name, PALETTE[slots[name]]) for name in own), _OTHERS, _UNKNOWN],
    )


def _color_by_cluster(snapshot: Snapshot) -> Coloring:
    """Color all rows by the coarsest clusters, and name the colors after the regions."""
    coarsest = min(snapshot.clusters, key=int, default=None)
    if coarsest is None:
        return _count(np.zeros(snapshot.n_indexed, dtype=np.uint8), [_UNKNOWN])
    labels = snapshot.clusters[coarsest]
    names = {region.cluster: region.name for region in regions_of(snapshot)[0] if region.name}
    looks: dict[str, tuple[str, str]] = {}
    for cluster, name in names.items():
        looks.setdefault(name, (name, PALETTE[cluster % len(PALETTE)]))
    place = {name: code for code, name in enumerate(looks)}
    n_clusters = int(labels.max(initial=-1)) + 1
    codes = [place[names[cluster]] if cluster in names else len(looks) for cluster in range(n_clusters)]
    of_label = np.array([*codes, len(looks) + 1], dtype=np.uint8)  # label -1 selects the last entry
    return _count(of_label[labels], [*looks.values(), _OTHERS, _UNKNOWN])


def _color_by_number(values: Float64Array, by: str) -> Coloring:
    is_known = values > 0 if by == "year" else np.isfinite(values)
    known = values[is_known]
    low, high = np.percentile(known, (0, 100) if by == "year" else _PERCENTILES) if len(known) else (0.0, 1.0)
    codes = np.full(len(values), _N_STEPS, dtype=np.uint8)
    share = (known - low) / max(high - low, np.finfo(float).tiny)
    codes[is_known] = np.clip(share * _N_STEPS, 0, _N_STEPS - 1).astype(np.uint8)
    ends = np.array([_rgb(color) for color in _SCALE])
    at = np.linspace(0, len(ends) - 1, _N_STEPS)
    steps = np.column_stack([np.interp(at, range(len(ends)), part) for part in ends.T])
    (high_word, low_word), unit = (("", ""), "") if by == "year" else (DESCRIPTORS[by].words, DESCRIPTORS[by].unit)
    scale = Scale(float(low), float(high), unit, low_word, high_word)
    return _count(codes, [*(("", _hex(rgb)) for rgb in steps), _UNKNOWN], scale)


def _count(codes: Uint8Array, looks: list[tuple[str, str]], scale: Scale | None = None) -> Coloring:
    """Return a coloring, given codes and the name and color for each code; the last code means unknown."""
    counts = np.bincount(codes, minlength=len(looks)).tolist()
    entries = [
        Entry(name, color, n, is_known=i < len(looks) - 1)
        for i, ((name, color), n) in enumerate(zip(looks, counts, strict=True))
    ]
    return Coloring(codes, entries, scale)
