"""Tests of 8-bit codes: round trips, and integer arithmetic in comparisons with a block of codes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsim.search import cell_kernels, code_kernels
from musicsim.search.code_kernels import BLOCK, GROUP, code_size

WIDTHS = st.integers(1, 19)  # whole groups and others
SEEDS = st.integers(0, 2**32 - 1)


def drawn(n, d, seed, step):
    """Return rows with coordinates beyond the range of codes, and the codes of all rows."""
    rng = np.random.default_rng(seed)
    rows = (step * rng.uniform(-140, 140, (n, d))).astype(np.float32)
    n_slots = -(-n // BLOCK) * BLOCK
    items = np.full(n_slots, -1, np.int32)
    items[:n] = np.arange(n)
    return rows, code_kernels.encode(rows, items, np.float32(step))


def whole(rows, step):
    return np.clip(np.rint(rows / np.float32(step)), -127, 127).astype(np.int64)


@settings(max_examples=50)
@given(n=st.integers(1, 100), d=WIDTHS, seed=SEEDS, step=st.sampled_from([1e-6, 0.25, 1e6]))
def test_codes_say_rows_in_whole_steps(n, d, seed, step):
    rows, codes = drawn(n, d, seed, step)
    read = np.empty((n, d), np.float32)
    code_kernels.decode(codes, 0, np.float32(step), read)
    np.testing.assert_array_equal(read, whole(rows, step).astype(np.float32) * np.float32(step))
    assert len(codes) == -(-n // BLOCK) * BLOCK * code_size(d)


@settings(max_examples=50)
@given(
    n=st.integers(1, 100),
    d=WIDTHS,
    seed=SEEDS,
    far=st.sampled_from([0.5, 1.0, 3.0, 1e6]),
    step=st.sampled_from([1e-6, 1.0]),
)
def test_keys_are_squared_distances_less_the_query_s_own(n, d, seed, far, step):
    rows, codes = drawn(n, d, seed, step)
    query = (step * far * np.random.default_rng(seed + 1).uniform(-127, 127, d)).astype(np.float32)
    code = np.empty(code_size(d) - GROUP, np.int8)
    unit = code_kernels.round_query(query, np.float32(step), code)
    # the code of the query is in units of as many steps, which is 1 if it is within the range of codes
    np.testing.assert_allclose(code[:d] * np.float64(unit), query / step, atol=unit * (0.5 + 1e-4))
    assert unit == pytest.approx(max(1.0, np.abs(query / step).max() / 127), rel=1e-5)
    numbers, q = whole(rows, step), code[:d].astype(np.int64)
    expected = (numbers**2).sum(axis=1) - 2.0 * np.float64(unit) * (numbers @ q)
    limit = np.float32(np.median(expected))
    for first in range(0, n, BLOCK):
        keys = np.empty(BLOCK, np.float32)
        bits = int(code_kernels.find_below(codes, first, n - first, code, unit, limit, keys))
        here = expected[first : first + BLOCK]
        # float32 rounds the square, the product and their difference
        np.testing.assert_allclose(
            keys[: len(here)], here, rtol=1e-6, atol=1e-6 * np.abs(here).max() + 1e-6 * 127**2 * d
        )
        assert bits == sum(1 << i for i, key in enumerate(keys[: len(here)]) if key < limit)


def test_copied_codes_are_the_same():
    rows, codes = drawn(70, 6, 0, 1.0)
    code_kernels.copy_code(codes, 3, 65, code_size(6))
    read = np.empty((70, 6), np.float32)
    code_kernels.decode(codes, 0, np.float32(1), read)
    expected = whole(rows, 1.0)
    expected[65] = expected[3]
    np.testing.assert_array_equal(read, expected)
    squares = codes.view(np.int32).reshape(-1, 3, BLOCK)[:, -1].ravel()[:70]
    np.testing.assert_array_equal(squares, (expected**2).sum(axis=1))


@settings(max_examples=300)
@given(
    keys=st.lists(st.integers(-5, 5), min_size=1, max_size=80), wanted=st.tuples(st.integers(1, 90), st.integers(0, 40))
)
def test_least_pairs_come_first(keys, wanted):
    fewest, more = wanted
    parted, numbers = np.array(keys, np.float32), np.arange(len(keys), dtype=np.int32)
    n = cell_kernels.move_least_first(parted, numbers, len(keys), fewest, fewest + more)
    assert min(fewest, len(keys)) <= n <= fewest + more
    np.testing.assert_array_equal(np.sort(numbers), np.arange(len(keys)))
    np.testing.assert_array_equal(parted, np.array(keys, np.float32)[numbers])
    assert parted[:n].max() <= parted[n:].min(initial=np.inf)
