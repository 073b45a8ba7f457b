"""The map: songs that sound alike stand together (openTSNE of the song vectors).

Of a large collection some songs are laid out, and the others stand beside those that are nearest to them.
"""

from typing import Any

import numpy as np

from musicsim import search
from musicsim._arrays import Float32Array, Float64Array, FloatingArray, Int64Array

MAX_LAID_OUT = 20_000
"""Songs that t-SNE lays out, a minute and a half of one core; more are placed beside these."""

_PERPLEXITY = 30.0
# t-SNE needs about three neighbours a unit of perplexity; below this the two main axes say as much. Songs
# that are all alike give a map without extent, on which openTSNE ends the whole process: they do not count.
_MIN_SONGS_FOR_TSNE = 12
_SEED = 0
# Nearest songs between which a song stands.
_BESIDE = 5
# More songs than these are placed through a forest, whose building they pay for.
_MANY = 20_000


def _perplexity(n_songs: int) -> float:
    return max(2.0, min(_PERPLEXITY, (n_songs - 1) / 3))


def fit_map(X: Float32Array, random_state: int = _SEED, *, start: Float32Array | None = None) -> Float32Array:
    """Place songs on a plane.

    Parameters
    ----------
    X : ndarray of shape (n_songs, n_features)
    start : ndarray of shape (n_songs, 2), optional
        Another map of the same songs: the new one grows out of it and is turned so that songs move as little
        as they need to. One without width says nothing and is left out.

    Returns
    -------
    float32 ndarray of shape (n_songs, 2), no unit
        The two main axes below 12 songs, t-SNE from there on (15 s of one core for 5 000 songs), from
        :data:`MAX_LAID_OUT` songs on of a sample (5 minutes of one core for a million songs).
    """
    n = len(X)
    if n > MAX_LAID_OUT:
        chosen = _sample(n, random_state)
        sample = fit_map(X[chosen], random_state, start=None if start is None else start[chosen])
        places = _beside(X[chosen], sample, X)
        places[chosen] = sample
        return places
    if not _enough_for_tsne(X):
        return _main_axes(X) if start is None else align(_main_axes(X), start)
    from openTSNE import TSNE, initialization

    if start is not None and np.ptp(start[:, 0]) == 0.0:  # openTSNE would divide by it
        start = None
    embedding = TSNE(
        perplexity=_perplexity(n),
        initialization="pca" if start is None else initialization.rescale(start.astype(np.float64)),
        negative_gradient_method="fft" if n > 1000 else "bh",
        random_state=random_state,
        n_jobs=1,
    ).fit(_two_columns(X))
    places = np.asarray(embedding, dtype=np.float32)
    return places if start is None else align(places, start)


def align(places: FloatingArray, start: FloatingArray) -> Float32Array:
    """Turn, mirror and move a map so that its songs stand as near as can be to where they stood on another one.

    Both are (n_songs, 2). Orthogonal Procrustes analysis: the rotation or reflection of least squared distance;
    distances within `places` stay as they are.
    """
    from scipy.linalg import orthogonal_procrustes

    A, B = np.asarray(places, dtype=np.float64), np.asarray(start, dtype=np.float64)
    centred = A - A.mean(axis=0)
    R, _ = orthogonal_procrustes(centred, B - B.mean(axis=0))
    return (centred @ R + B.mean(axis=0)).astype(np.float32)


def _sample(n: int, random_state: int) -> Int64Array:
    return np.sort(np.random.default_rng(random_state).choice(n, MAX_LAID_OUT, replace=False))


def _beside(X: FloatingArray, places: FloatingArray, X_new: FloatingArray) -> Float32Array:
    """Places of songs between their nearest ones, by closeness; float32 (n_new, 2)."""

    is_worth_it = len(X_new) > _MANY
    index = (search.SpillForest(n_probes=32, random_state=_SEED) if is_worth_it else search.ExactIndex()).fit(X)
    result = np.empty((len(X_new), 2), np.float32)
    for start in range(0, len(X_new), _MANY):
        distances, near = index.query(X_new[start : start + _MANY], _BESIDE)
        weights = 1.0 / (distances.astype(np.float64) ** 2 + 1e-9)
        weights /= weights.sum(axis=1, keepdims=True)
        result[start : start + _MANY] = np.einsum("ij,ijk->ik", weights, places[near])
    return result


def _two_columns(X: FloatingArray) -> Float64Array:
    """At least: openTSNE starts from two main axes, and where vectors have one column it finds one."""
    return np.pad(np.asarray(X, dtype=np.float64), ((0, 0), (0, max(0, 2 - X.shape[1]))))


def _enough_for_tsne(X: FloatingArray) -> bool:
    # a few of the first songs are different ones nearly always, and to sort all of a large map takes seconds
    return any(len(np.unique(some, axis=0)) >= _MIN_SONGS_FOR_TSNE for some in (X[: 2 * _MIN_SONGS_FOR_TSNE], X))


def _main_axes(X: Float32Array) -> Float32Array:
    centred = X.astype(np.float64) - X.mean(axis=0) if len(X) else np.zeros((0, 1))
    places = np.zeros((len(X), 2))
    if len(X) > 1:
        U, S, _ = np.linalg.svd(centred, full_matrices=False)
        kept = min(2, len(S))
        places[:, :kept] = U[:, :kept] * S[:kept]
    return places.astype(np.float32)


class _ToNewSongs:
    """Affinities of new songs to those on a map, X (n_songs, n_features), as openTSNE asks for them.

    Its own are of all songs to each other, too, which nobody asks for where a map stays as it is: to find their
    neighbours takes 40 s for 20,000 songs. Neighbours here are exact; openTSNE takes a forest's from 1,000 songs on.
    """

    def __init__(self, X: Float64Array) -> None:
        from scipy import sparse
        from sklearn.neighbors import NearestNeighbors

        # none among songs of the map: openTSNE asks for the shape
        self.P = sparse.csr_matrix((len(X), len(X)))
        self._nearest = NearestNeighbors(n_jobs=1).fit(X)

    def to_new(self, data: Float64Array, perplexity: float, return_distances: bool = False) -> Any:
        """Affinities (n_new, n_songs) of songs (n_new, n_features), and the rows and distances of their neighbours."""
        from openTSNE.affinity import joint_probabilities_nn

        n_songs = self.P.shape[0]
        distances, neighbours = self._nearest.kneighbors(data, min(n_songs, int(3 * perplexity)))
        P = joint_probabilities_nn(
            neighbours, distances, [perplexity], symmetrize=False, normalization="point-wise",
            n_reference_samples=n_songs, n_jobs=1,
        )  # fmt: skip
        return (P, neighbours, distances) if return_distances else P


class MapPlacer:
    """Finds the place of new songs on an existing map, which stays as it is.

    Songs X (n_songs, n_features) whose `places` (n_songs, 2) are nan are left out; of more than :data:`MAX_LAID_OUT`
    a sample counts.
    """

    def __init__(self, X: Float32Array, places: Float32Array) -> None:
        known = np.flatnonzero(np.isfinite(places).all(axis=1))
        is_large = len(known) > MAX_LAID_OUT
        if is_large:
            known = known[_sample(len(known), _SEED)]
        self._X = X[known]
        self._places = np.asarray(places[known], dtype=np.float64)
        self._embedding = self._restore() if not is_large and _enough_for_tsne(self._X) else None

    def _restore(self):  # openTSNE is untyped
        from openTSNE import TSNEEmbedding

        affinities = _ToNewSongs(np.asarray(self._X, dtype=np.float64))
        return TSNEEmbedding(self._places, affinities, negative_gradient_method="fft", n_jobs=1, random_state=_SEED)

    def place(self, X: Float32Array) -> Float32Array:
        """Places of new songs, float32 (n_new, 2): t-SNE's, or between the nearest of a large or a tiny map."""
        if not len(self._X) or not len(X):
            return np.zeros((len(X), 2), dtype=np.float32)
        if self._embedding is None:
            return _beside(self._X, self._places, X)
        new = np.asarray(X, dtype=np.float64)
        placed = np.asarray(self._embedding.transform(new, perplexity=min(5.0, (len(self._X) - 1) / 3)))
        # openTSNE works on a map moved to its centre, ours stays where it is
        moved = np.asarray(self._embedding).mean(axis=0) - self._places.mean(axis=0)
        return (placed - moved).astype(np.float32)
