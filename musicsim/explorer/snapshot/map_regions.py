"""What is typical of the regions of a map, in a few words: "Jazz, slow, dark"."""

from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim.audio import HEARD
from musicsim.explorer.requests.filters import HEARD_WORDS
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.db.columns import Labels, SongColumns

_TYPICAL = 0.6  # standard deviations of all songs by which the mean of a region must differ
_MAX_WORDS = 2
_MAIN_SHARE = 0.5  # of a region's songs that have a genre: one that more have names it
_MAIN_LEAD = 1.5  # times its share among all songs


@dataclass(frozen=True, slots=True)
class Region:
    """A cluster where it lies on the map."""

    cluster: int
    name: str  # what is typical there; "" where nothing is
    # the median of its songs, in the map's unit
    x: float
    y: float
    n_songs: int


Levels = list[list[Region]]
"""Regions by how closely one looks: those of the fewest clusters first."""


def regions_of(snapshot: Snapshot) -> Levels:
    """The regions of a snapshot's map at every number of clusters; 0.5 s for 1 000 000 songs."""
    sizes = sorted(snapshot.clusters, key=int)
    return [_regions(snapshot.clusters[size], snapshot.map, snapshot.columns) for size in sizes]


def _regions(clusters: Int64Array, places: Float32Array, columns: SongColumns) -> list[Region]:
    rows = np.flatnonzero((clusters >= 0) & np.isfinite(places).all(axis=1))
    order = rows[np.argsort(clusters[rows], kind="stable")]
    labels, starts = np.unique(clusters[order], return_index=True)
    words = _typical_words(clusters, columns)
    genres = _main_genres(clusters, columns.genre)
    found = []
    for label, of_it in zip(labels.tolist(), np.split(order, starts[1:]), strict=False):
        x, y = np.median(places[of_it], axis=0).tolist()
        name = ", ".join([*genres.get(label, ()), *words[label]])
        found.append(Region(label, name, x, y, len(of_it)))
    return found


def _typical_words(clusters: Int64Array, columns: SongColumns) -> list[list[str]]:
    """For each cluster what its songs have more or less of than all songs, at most two words."""
    n_clusters = int(clusters.max(initial=-1)) + 1
    differs = np.column_stack([_differs(clusters, n_clusters, getattr(columns, name)) for name in HEARD])
    told = []
    for of_one in differs:
        order = [i for i in np.argsort(-np.abs(of_one), kind="stable") if abs(of_one[i]) >= _TYPICAL]
        told.append([HEARD_WORDS[HEARD[i]][0 if of_one[i] > 0 else 1] for i in order[:_MAX_WORDS]])
    return told


def _differs(clusters: Int64Array, n_clusters: int, values: Float32Array) -> Float64Array:
    """By how many standard deviations the mean of each cluster differs from that of all; 0 where it is unknown."""
    known = np.isfinite(values) & (clusters >= 0)
    if not known.any():
        return np.zeros(n_clusters)
    here, of_all = clusters[known], values[known].astype(np.float64)
    n_songs = np.bincount(here, minlength=n_clusters)
    means = np.bincount(here, of_all, n_clusters) / np.maximum(n_songs, 1)
    deviation = of_all.std()
    # where all songs are alike, what is left is rounding
    if deviation <= 1e-6 * abs(of_all.mean()):
        return np.zeros(n_clusters)
    return np.where(n_songs > 0, (means - of_all.mean()) / deviation, 0.0)


def _main_genres(clusters: Int64Array, genre: Labels) -> dict[int, list[str]]:
    """The genre that names a cluster, of those that one names."""
    is_named = np.array([name != "" for name in genre.names] + [False])[genre.codes] & (clusters >= 0)
    if not is_named.any():
        return {}
    counts = np.zeros((int(clusters.max()) + 1, len(genre.names)), dtype=np.int64)
    np.add.at(counts, (clusters[is_named], genre.codes[is_named]), 1)
    of_all = counts.sum(axis=0) / counts.sum()
    most = counts.argmax(axis=1)
    share = counts.max(axis=1) / np.maximum(counts.sum(axis=1), 1)
    names = (share > _MAIN_SHARE) & (share >= np.minimum(_MAIN_LEAD * of_all[most], 0.9))
    return {cluster: [genre.names[most[cluster]]] for cluster in np.flatnonzero(names).tolist()}
