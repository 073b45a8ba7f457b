"""Songs to query an index with, and assertions for the results of any index."""

import numpy as np
from hypothesis import strategies as st

# (1 + 2 * spill) ** depth copies: more spill, larger leaves
shapes = st.fixed_dictionaries(
    {
        "n": st.integers(0, 300),
        "d": st.integers(1, 8),
        "n_values": st.sampled_from([1, 2, 3, 50]),
        "seed": st.integers(0, 2**31),
    }
)


def rows_of(n, d, n_values, seed):
    """Return whole numbers, so distances are exact and many are equal."""
    return np.random.default_rng(seed).integers(0, n_values, (n, d)).astype(np.float32)


def songs(n, d=6, seed=0):
    """Return square roots of histograms: rows of length 1."""
    return np.sqrt(np.random.default_rng(seed).dirichlet(np.ones(d), n)).astype(np.float32)


def assert_answers(X, Q, answers, k, shown=None):
    """Assert that results are complete, unique, allowed, nearest first, and at their exact distances."""
    distances, ids = answers
    shown = np.ones(len(X), bool) if shown is None else shown
    assert distances.shape == ids.shape == (len(Q), min(k, int(shown.sum())))
    assert (distances.dtype, ids.dtype) == (np.float32, np.int64)
    for q, row, found in zip(Q, distances, ids, strict=True):
        assert len(set(found.tolist())) == len(found)
        assert shown[found].all()
        assert (np.diff(row) >= 0).all()
        # a float32 square root of a float32 sum of d squares
        np.testing.assert_allclose(row, np.linalg.norm(X[found].astype(np.float64) - q, axis=1), rtol=2e-6)


def along_axes(index, rows):
    """Return the coordinates of rows along the main axes of an index."""
    return (rows - index.center_) @ index.axes_


def assert_each_finds_itself(index, X, ids=None):
    """Assert that each row finds itself, by its id, at distance 0; without ids, that all rows find an equal one."""
    distances, found = index.query(X, 1)
    np.testing.assert_array_equal(distances, 0.0)
    if ids is None:
        assert len(X) == index.n_samples_
        np.testing.assert_array_equal(X[found.ravel()], X)
    else:
        np.testing.assert_array_equal(found.ravel(), ids)
