"""Tests that sparse rows give the codes of dense rows, in little memory."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from musicsim._sparse_rows import center_rows
from musicsim.hashing import RandomProjectionHash, RankHash, SpectralHash, hamming_distances
from musicsim.hashing import base as module

N_WIDE, D_WIDE = 2_000, 40_000


def small_rows(rng, n=60, d=20):
    """Large integers, whose sums are exact, with a column of negative numbers and one without zeros."""
    X = rng.integers(1, 1 << 20, size=(n, d)) * (rng.random((n, d)) < 0.3).astype(float)
    X[:, 0], X[:, 1] = -X[:, 0], 1e6 + X[:, 1]
    return X


HASHES = [
    RandomProjectionHash(70, random_state=0),
    SpectralHash(16),
    *(RankHash(16, n_hidden=n, ranknet_steps=20, lambdarank_steps=5, random_state=0) for n in (0, 5)),
]


@pytest.mark.parametrize("hashing", HASHES, ids=["random", "spectral", "rank", "hidden"])
@pytest.mark.parametrize("as_sparse", [sparse.csr_array, sparse.csc_matrix])
def test_codes_of_sparse_rows_are_those_of_dense_rows(rng, hashing, as_sparse):
    X, y = small_rows(rng), np.arange(60) % 3
    dense = hashing.fit(X, y).transform(X)
    np.testing.assert_array_equal(hashing.transform(as_sparse(X)), dense)  # exact sums, in any order
    refitted = hashing.fit(as_sparse(X), y).transform(X)
    # the axes of sparse rows are rounded differently, which may change a sum that is almost 0
    n_different = sum(hamming_distances(a[None], b[None])[0, 0] for a, b in zip(dense, refitted, strict=True))
    assert n_different <= (0 if isinstance(hashing, RandomProjectionHash) else 0.01 * 60 * hashing.n_bits)


def test_axes_by_lanczos_are_those_of_the_covariance(rng, monkeypatch):
    X = rng.normal(size=(50, 12)) * np.arange(1, 13)
    truth = module.principal_axes(center_rows(X), 6)
    for limit in (1_000, 1):
        monkeypatch.setattr(module, "_MAX_GRAM", limit)
        found = module.principal_axes(center_rows(sparse.csr_array(X)), 6)
        for part, true_part in zip(found, truth, strict=True):
            np.testing.assert_allclose(part, true_part, rtol=1e-8, atol=1e-8)


def test_entries_that_occur_twice_are_summed(rng):
    X = small_rows(rng)
    hashing = RandomProjectionHash(64, random_state=0).fit(X)
    rows, columns = np.nonzero(X)
    halves = sparse.csr_array(
        (np.tile(X[rows, columns] / 2, 2), (np.tile(rows, 2), np.tile(columns, 2))), shape=X.shape
    )
    np.testing.assert_array_equal(hashing.transform(halves), hashing.transform(X))


@pytest.mark.long
@pytest.mark.parametrize(
    "hashing",
    [RandomProjectionHash(64), SpectralHash(64), RankHash(64, n_components=32, ranknet_steps=5, lambdarank_steps=2)],
    ids=["random", "spectral", "rank"],
)
def test_wide_sparse_rows_are_never_dense(rng, hashing):
    X = sparse.random_array((N_WIDE, D_WIDE), density=0.001, rng=rng, format="csr")
    tracemalloc.start()
    codes = hashing.fit(X, np.arange(N_WIDE) % 5).transform(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert codes.shape == (N_WIDE, 1)
    assert peak < 8 * N_WIDE * D_WIDE / 3
