"""Vectors to search in, and held-out queries of the same kind.

Two mixtures of Gaussians of 100 dimensions, float32. `hard`: 20 dimensions embedded in 100 by one random linear map,
overlapping clusters, noise of deviation 0.1 per coordinate. `separated`: each cluster has a random covariance of full
rank, and the centers are further apart than the songs of a cluster.

The spread of the centers is tuned until other indexes have the same recall as in the trials that set the goals. These
trials had 200,000 rows and 500 queries. The recall wanted, and the recall found with seed 0:

- `hard`, annoy of 20 trees, search_k 2,000 / 10,000 / 40,000: .818 / .979 / .999 wanted, .817 / .980 / .999 found
- `hard`, faiss IVF1024, nprobe 8 / 32 / 128: .678 / .904 / .996 wanted, .692 / .917 / .995 found
- `hard`, HNSW of M 16, ef 100 / 200: .992 / .999 wanted, .994 / 1.000 found
- `separated`, the same annoy, search_k 2,000 / 10,000: .957 / 1.000 wanted, .965 / .997 found
- `separated`, faiss IVF1024, nprobe 8 / 32: .997 / 1.000 wanted, .995 / .999 found

Real vectors come from the optional folder of public data sets. Descriptors are z-scored. Pixels and SIFT are not,
because their columns share a scale.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from musicsim._arrays import Float32Array, Float64Array
from musicsim.datasets import find

__all__ = ["REAL_SETS", "hard", "hold_out", "separated"]

N_DIMENSIONS = 100
_INTRINSIC = 20
_NOISE = 0.1
_HARD_SPREAD = 0.85
_SEPARATED_SPREAD = 1.35
_BLOCK = 65_536


SPOTIFY = (
    "acousticness", "danceability", "duration_ms", "energy", "instrumentalness", "key", "liveness",
    "loudness", "mode", "speechiness", "tempo", "time_signature", "valence",
)  # fmt: skip
"""What the track sounds like; `followers` and `popularity` tell of the artist and are left out."""


def hard(n_rows: int, n_queries: int, *, n_clusters: int = 200, seed: int = 0) -> tuple[Float32Array, Float32Array]:
    """Draw rows and queries from overlapping clusters of intrinsic dimension 20.

    Parameters
    ----------
    n_clusters : int
        Number of clusters. They have unit covariance in the 20 dimensions; the centers are Gaussian with deviation
        0.85.

    Returns
    -------
    X : float32 ndarray of shape (n_rows, 100)
    Q : float32 ndarray of shape (n_queries, 100)
    """
    rng = np.random.default_rng(seed)
    centres = _HARD_SPREAD * rng.standard_normal((n_clusters, _INTRINSIC), dtype=np.float32)
    embedding = rng.standard_normal((_INTRINSIC, N_DIMENSIONS), dtype=np.float32) / np.float32(np.sqrt(_INTRINSIC))
    drawn = np.empty((n_rows + n_queries, N_DIMENSIONS), dtype=np.float32)
    for start in range(0, len(drawn), _BLOCK):
        block = drawn[start : start + _BLOCK]
        within = rng.standard_normal((len(block), _INTRINSIC), dtype=np.float32)
        within += centres[rng.integers(n_clusters, size=len(block))]
        rng.standard_normal(dtype=np.float32, out=block)
        block *= _NOISE
        block += within @ embedding
    return drawn[:n_rows], drawn[n_rows:]


def separated(
    n_rows: int, n_queries: int, *, n_clusters: int = 2_000, seed: int = 0
) -> tuple[Float32Array, Float32Array]:
    """Draw rows and queries from clusters that do not overlap, each with its own random covariance.

    Parameters
    ----------
    n_clusters : int
        Number of clusters. A cluster is a Gaussian vector times a matrix of Gaussian entries of variance 1/100; the
        centers are Gaussian with deviation 1.35.

    Returns
    -------
    X : float32 ndarray of shape (n_rows, 100)
    Q : float32 ndarray of shape (n_queries, 100)
    """
    rng = np.random.default_rng(seed)
    centres = _SEPARATED_SPREAD * rng.standard_normal((n_clusters, N_DIMENSIONS), dtype=np.float32)
    cluster = rng.integers(n_clusters, size=n_rows + n_queries)
    by_cluster = np.argsort(cluster, kind="stable")
    drawn = np.empty((len(cluster), N_DIMENSIONS), dtype=np.float32)
    ends = np.cumsum(np.bincount(cluster, minlength=n_clusters))
    for centre, members in zip(centres, np.split(by_cluster, ends[:-1]), strict=True):
        factor = rng.standard_normal((N_DIMENSIONS, N_DIMENSIONS), dtype=np.float32)
        factor /= np.float32(np.sqrt(N_DIMENSIONS))
        drawn[members] = centre + rng.standard_normal((len(members), N_DIMENSIONS), dtype=np.float32) @ factor
    return drawn[:n_rows], drawn[n_rows:]


def hold_out(X: Float32Array, n_queries: int, seed: int) -> tuple[Float32Array, Float32Array]:
    """Split `n_queries` random rows off X; return the rest and these rows."""
    order = np.random.default_rng(seed).permutation(len(X))
    return X[np.sort(order[n_queries:])], X[order[:n_queries]]


# --- real vectors -----------------------------------------------------------------------------------


def _spotify() -> Float32Array:
    """Return Spotify's audio descriptors of songs, one row per title."""
    parts = [pd.read_csv(find("spotify_msd", f"features_{size}.csv")) for size in ("15k", "5k")]
    table = pd.concat(parts).drop_duplicates(["Artist", "Track"]).dropna(subset=list(SPOTIFY))
    return _z_scored(table[list(SPOTIFY)].to_numpy(np.float64))


def _mnist() -> Float32Array:
    parts = [np.load(find("mnist_20k", f"{name}.npz"))["X"] for name in ("mnist_t10k", "mnist_10k_cazala")]
    return np.concatenate(parts).reshape(-1, 784).astype(np.float32)


def _sift() -> Float32Array:
    return np.load(find("bigann10k", "bigann10k.npz"))["base"].astype(np.float32)


REAL_SETS: dict[str, Callable[[], Float32Array]] = {
    "songs, 13 Spotify descriptors": _spotify,
    "MNIST, 784 pixels": _mnist,
    "SIFT, 128 values": _sift,
}
"""Loaders of public data sets."""


def _z_scored(X: Float64Array) -> Float32Array:
    deviation = X.std(axis=0)
    return ((X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)).astype(np.float32)
