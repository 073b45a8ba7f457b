"""The map: similar songs are close (t-SNE of the song vectors).

In a large library, a sample of songs is laid out; others are placed next to their nearest songs in the sample. openTSNE
does not provide wheels for ARM Linux. If it is not installed, scikit-learn's t-SNE lays out the map, and new songs are
placed next to their nearest songs.
"""

import os
import threading
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from musicsim import search
from musicsim._arrays import Float32Array, Float64Array, FloatingArray, Int64Array
from musicsim.explorer.snapshot.map_view import place_vector
from musicsim.explorer.snapshot.snapshot import Snapshot

MAX_LAID_OUT = 20_000  # maximum number of songs for t-SNE, which then takes 90 s on one core

_PERPLEXITY = 30.0
# t-SNE needs about three neighbors per unit of perplexity; for fewer songs, the two main axes are just as good. Only
# distinct songs count, because openTSNE crashes the whole process if all songs are at the same place.
_MIN_SONGS_FOR_TSNE = 12
_SEED = 0
_N_NEAREST = 5  # number of songs that determine the place of a new song
BATCH = 20_000  # songs per block; with more songs than this, building an index pays off


def has_open_tsne() -> bool:
    """Return whether openTSNE is installed and ``MUSICSIM_MAP`` is not ``scikit-learn``."""
    return os.environ.get("MUSICSIM_MAP") != "scikit-learn" and find_spec("openTSNE") is not None


def _perplexity(n_songs: int) -> float:
    return max(2.0, min(_PERPLEXITY, (n_songs - 1) / 3))


def fit_map(X: Float32Array, random_state: int = _SEED, *, start: Float32Array | None = None) -> Float32Array:
    """Place songs X (n_songs, n_features) on a plane, float32 (n_songs, 2).

    `start` (n_songs, 2) is an earlier map of the same songs. The new map starts from it and is rotated so that songs
    move little. A start whose songs all have the same x is ignored. Fewer than 12 songs are placed along their two main
    axes. Otherwise, t-SNE places them (15 s on one core for 5,000 songs). For more than :data:`MAX_LAID_OUT` songs,
    t-SNE places a sample (5 minutes for a million songs).
    """
    n = len(X)
    if n > MAX_LAID_OUT:
        sample = _sample(n, random_state)
        sample_places = fit_map(X[sample], random_state, start=None if start is None else start[sample])
        places = _place_between(X[sample], sample_places, X)
        places[sample] = sample_places
        return places
    if not _is_enough_for_tsne(X):
        return _main_axes(X) if start is None else align(_main_axes(X), start)
    if start is not None and np.ptp(start[:, 0]) == 0.0:  # t-SNE would divide by this width of 0
        start = None
    # t-SNE starts from two principal axes
    columns = np.pad(np.asarray(X, dtype=np.float64), ((0, 0), (0, max(0, 2 - X.shape[1]))))
    lay_out = _run_open_tsne if has_open_tsne() else _run_scikit_learn
    places = np.asarray(lay_out(columns, start, random_state), dtype=np.float32)
    return places if start is None else align(places, start)


def _run_open_tsne(X: Float64Array, start: Float32Array | None, random_state: int) -> FloatingArray:
    from openTSNE import TSNE, initialization

    return TSNE(
        perplexity=_perplexity(len(X)),
        initialization="pca" if start is None else initialization.rescale(start.astype(np.float64)),
        negative_gradient_method="fft" if len(X) > 1000 else "bh",
        random_state=random_state,
        n_jobs=1,
    ).fit(X)


def _run_scikit_learn(X: Float64Array, start: Float32Array | None, random_state: int) -> FloatingArray:
    from sklearn.manifold import TSNE

    # scikit-learn scales the main axes to the same deviation
    init = "pca" if start is None else (1e-4 * start / np.std(start[:, 0])).astype(np.float32)
    tsne = TSNE(perplexity=_perplexity(len(X)), init=init, random_state=random_state, n_jobs=1)
    return tsne.fit_transform(X)


def align(places: FloatingArray, start: FloatingArray) -> Float32Array:
    """Rotate, mirror and move a map (n_songs, 2) so that its songs are near their places on an earlier map `start`."""
    from scipy.linalg import orthogonal_procrustes

    A, B = np.asarray(places, dtype=np.float64), np.asarray(start, dtype=np.float64)
    centered = A - A.mean(axis=0)
    R, _ = orthogonal_procrustes(centered, B - B.mean(axis=0))
    return (centered @ R + B.mean(axis=0)).astype(np.float32)


def _sample(n: int, random_state: int) -> Int64Array:
    return np.sort(np.random.default_rng(random_state).choice(n, MAX_LAID_OUT, replace=False))


def _place_between(X: FloatingArray, places: FloatingArray, X_new: FloatingArray) -> Float32Array:
    """Place songs at weighted means of the places of their nearest songs, float32 (n_new, 2)."""
    is_large = len(X_new) > BATCH
    index = (search.PartitionIndex(n_probes=32, random_state=_SEED) if is_large else search.ExactIndex()).fit(X)
    result = np.empty((len(X_new), 2), np.float32)
    for start in range(0, len(X_new), BATCH):
        distances, nearest = index.query(X_new[start : start + BATCH], _N_NEAREST)
        weights = 1.0 / (distances.astype(np.float64) ** 2 + 1e-9)
        weights /= weights.sum(axis=1, keepdims=True)
        result[start : start + BATCH] = np.einsum("ij,ijk->ik", weights, places[nearest])
    return result


def _is_enough_for_tsne(X: FloatingArray) -> bool:
    # try the first songs alone, which nearly always differ: sorting all songs of a large map takes seconds
    parts = (X[: 2 * _MIN_SONGS_FOR_TSNE], X)
    return any(len(np.unique(part, axis=0)) >= _MIN_SONGS_FOR_TSNE for part in parts)


def _main_axes(X: Float32Array) -> Float32Array:
    centered = X.astype(np.float64) - X.mean(axis=0) if len(X) else np.zeros((0, 1))
    places = np.zeros((len(X), 2))
    if len(X) > 1:
        U, S, _ = np.linalg.svd(centered, full_matrices=False)
        n_axes = min(2, len(S))
        places[:, :n_axes] = U[:, :n_axes] * S[:n_axes]
    return places.astype(np.float32)


class _AffinitiesToNewSongs:
    """Affinities of new songs to the songs X (n_songs, n_features) on a map, with the interface of openTSNE.

    openTSNE's own class also computes affinities within the map. They take 40 s for 20,000 songs, and a fixed map does
    not need them. Neighbors are exact here; openTSNE uses a forest for 1,000 songs or more.
    """

    def __init__(self, X: Float64Array) -> None:
        from scipy import sparse
        from sklearn.neighbors import NearestNeighbors

        self.P = sparse.csr_matrix((len(X), len(X)))  # openTSNE reads its shape
        self._nearest = NearestNeighbors(n_jobs=1).fit(X)

    def to_new(self, data: Float64Array, perplexity: float, return_distances: bool = False) -> Any:
        """Return affinities (n_new, n_songs) of songs (n_new, n_features), with rows and distances of neighbors."""
        from openTSNE.affinity import joint_probabilities_nn

        n_songs = self.P.shape[0]
        distances, neighbors = self._nearest.kneighbors(data, min(n_songs, int(3 * perplexity)))
        P = joint_probabilities_nn(
            neighbors, distances, [perplexity], symmetrize=False, normalization="point-wise",
            n_reference_samples=n_songs, n_jobs=1,
        )  # fmt: skip
        return (P, neighbors, distances) if return_distances else P


class MapPlacer:
    """Place new songs on an existing map, which does not change.

    Songs X (n_songs, n_features) whose `places` (n_songs, 2) are nan are ignored. If more than :data:`MAX_LAID_OUT`
    songs are on the map, a sample is used.
    """

    def __init__(self, X: Float32Array, places: Float32Array) -> None:
        known = np.flatnonzero(np.isfinite(places).all(axis=1))
        is_large = len(known) > MAX_LAID_OUT
        if is_large:
            known = known[_sample(len(known), _SEED)]
        self._X = X[known]
        self._places = np.asarray(places[known], dtype=np.float64)
        self._embedding: Any = None  # openTSNE is untyped
        if has_open_tsne() and not is_large and _is_enough_for_tsne(self._X):
            from openTSNE import TSNEEmbedding

            affinities = _AffinitiesToNewSongs(np.asarray(self._X, dtype=np.float64))
            self._embedding = TSNEEmbedding(
                self._places, affinities, negative_gradient_method="fft", n_jobs=1, random_state=_SEED
            )

    def place(self, X: Float32Array) -> Float32Array:
        """Place new songs, float32 (n_new, 2), by t-SNE if possible, otherwise next to their nearest songs."""
        if not len(self._X) or not len(X):
            return np.zeros((len(X), 2), dtype=np.float32)
        if self._embedding is None:
            return _place_between(self._X, self._places, X)
        new = np.asarray(X, dtype=np.float64)
        placed = np.asarray(self._embedding.transform(new, perplexity=min(5.0, (len(self._X) - 1) / 3)))
        # openTSNE centers the map, so move the new songs back
        shift = np.asarray(self._embedding).mean(axis=0) - self._places.mean(axis=0)
        return (placed - shift).astype(np.float32)


_placing = threading.Lock()


def place_on_map(snapshot: Snapshot, vector: Float32Array) -> Float32Array:
    """Return a place (2,) on the snapshot's map for a sound that is not on it; nan if it cannot be placed.

    Sounds are placed one after another, because a first one on a map takes seconds.
    """
    with _placing:
        return place_vector(vector, snapshot.map, snapshot.index, lambda X: _placer(snapshot).place(X))


@lru_cache(maxsize=4)
def _placer(snapshot: Snapshot) -> MapPlacer:
    return MapPlacer(snapshot.X, snapshot.map)
