"""Names for the regions of a map after their typical properties: "Jazz, slow, dark"."""

from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim.audio import HEARD
from musicsim.explorer.requests.filters import HEARD_WORDS
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.db.columns import Labels, SongColumns

_TYPICAL = 0.6  # standard deviations of all songs by which the mean of a region must differ
_MAX_WORDS = 2
# a genre names a region if more than this share of the region's songs with a genre have it
_MAIN_SHARE = 0.5
_MAIN_LEAD = 1.5  # and this times its share among all songs


@dataclass(frozen=True, slots=True)
class Region:
    """A cluster on the map."""

    cluster: int
    name: str  # "" if nothing is typical
    # the median of its songs, in the map's unit
    x: float
    y: float
    n_songs: int


Levels = list[list[Region]]
"""Regions by zoom: those of the fewest clusters first."""


def regions_of(snapshot: Snapshot) -> Levels:
    """Return the regions of a snapshot's map for every number of clusters; 0.5 s for 1,000,000 songs."""
    sizes = sorted(snapshot.clusters, key=int)
    return [_find_regions(snapshot.clusters[size], snapshot.map, snapshot.columns) for size in sizes]


def _find_regions(clusters: Int64Array, places: Float32Array, columns: SongColumns) -> list[Region]:
    rows = np.flatnonzero((clusters >= 0) & np.isfinite(places).all(axis=1))
    order = rows[np.argsort(clusters[rows], kind="stable")]
    labels, starts = np.unique(clusters[order], return_index=True)
    genres = _main_genres(clusters, columns.genre)
    n_clusters = int(clusters.max(initial=-1)) + 1
    differences = np.column_stack([_differences(clusters, n_clusters, getattr(columns, name)) for name in HEARD])
    regions = []
    for label, songs in zip(labels.tolist(), np.split(order, starts[1:]), strict=False):
        differs = differences[label]
        typical = [i for i in np.argsort(-np.abs(differs), kind="stable") if abs(differs[i]) >= _TYPICAL]
        words = [HEARD_WORDS[HEARD[i]][0 if differs[i] > 0 else 1] for i in typical[:_MAX_WORDS]]
        x, y = np.median(places[songs], axis=0).tolist()
        regions.append(Region(label, ", ".join([*genres.get(label, ()), *words]), x, y, len(songs)))
    return regions


def _differences(clusters: Int64Array, n_clusters: int, values: Float32Array) -> Float64Array:
    """Return by how many standard deviations each cluster's mean differs from the overall mean; 0 if unknown."""
    known = np.isfinite(values) & (clusters >= 0)
    if not known.any():
        return np.zeros(n_clusters)
    labels, values = clusters[known], values[known].astype(np.float64)
    n_songs = np.bincount(labels, minlength=n_clusters)
    means = np.bincount(labels, values, n_clusters) / np.maximum(n_songs, 1)
    # if all songs are alike, the deviation is rounding error
    if values.std() <= 1e-6 * abs(values.mean()):
        return np.zeros(n_clusters)
    return np.where(n_songs > 0, (means - values.mean()) / values.std(), 0.0)


def _main_genres(clusters: Int64Array, genre: Labels) -> dict[int, list[str]]:
    """Return the genre of each cluster whose name comes from a genre."""
    has_genre = np.array([name != "" for name in genre.names] + [False])[genre.codes] & (clusters >= 0)
    if not has_genre.any():
        return {}
    counts = np.zeros((int(clusters.max()) + 1, len(genre.names)), dtype=np.int64)
    np.add.at(counts, (clusters[has_genre], genre.codes[has_genre]), 1)
    overall = counts.sum(axis=0) / counts.sum()
    main = counts.argmax(axis=1)
    share = counts.max(axis=1) / np.maximum(counts.sum(axis=1), 1)
    is_main = (share > _MAIN_SHARE) & (share >= np.minimum(_MAIN_LEAD * overall[main], 0.9))
    return {cluster: [genre.names[main[cluster]]] for cluster in np.flatnonzero(is_main).tolist()}
