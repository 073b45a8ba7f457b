"""The probability product kernel against its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from musicsim.kernels import ppk_kernel, ppk_map

# rows of 1 to 12 entries, some of them zero, at least one of them not
masses = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 12)),
    elements=st.floats(0.0, 1.0, allow_subnormal=False),
).map(lambda a: a + np.eye(*a.shape) + (np.arange(a.shape[1]) == 0))


def histograms(rng, n, k, dtype=np.float32):
    return rng.dirichlet(np.full(k, 0.3), size=n).astype(dtype)


@given(masses)
def test_map_gives_unit_rows_whose_squares_are_the_histogram(mass):
    h = mass / mass.sum(axis=1, keepdims=True)
    mapped = ppk_map(h)
    assert mapped.dtype == np.float32
    # float32: half a unit in the last place of each entry
    np.testing.assert_allclose(np.linalg.norm(mapped.astype(np.float64), axis=1), 1.0, atol=2e-7)
    np.testing.assert_allclose(mapped.astype(np.float64) ** 2, h, rtol=2e-7, atol=1e-30)


def test_kernel_equals_the_sum_of_square_roots():
    rng = np.random.default_rng(0)
    A, B = histograms(rng, 7, 20, np.float64), histograms(rng, 5, 20, np.float64)
    expected = [[sum((a * b) ** 0.5 for a, b in zip(p, q, strict=True)) for q in B] for p in A]
    np.testing.assert_allclose(ppk_kernel(A, B), expected, rtol=1e-12)


def test_kernel_of_songs_with_themselves_is_symmetric_positive_and_one_on_the_diagonal():
    A = histograms(np.random.default_rng(1), 30, 64)
    kernel = ppk_kernel(A)
    np.testing.assert_array_equal(kernel, kernel.T)
    np.testing.assert_allclose(np.diag(kernel), 1.0, atol=1e-6)  # float32 histograms
    assert kernel.max() <= 1.0
    assert np.linalg.eigvalsh(kernel).min() > -1e-10


def test_kernel_is_the_product_of_the_maps():
    A, B = (histograms(np.random.default_rng(seed), 9, 50) for seed in (2, 3))
    # 50 products of float32 entries, each rounded to 6e-8
    np.testing.assert_allclose(ppk_map(A) @ ppk_map(B).T, ppk_kernel(A, B), atol=1e-6)


def test_disjoint_songs_have_kernel_zero():
    np.testing.assert_array_equal(ppk_kernel([[1.0, 0.0], [0.0, 1.0]]), np.eye(2))


def test_no_songs_give_no_rows():
    assert ppk_map(np.empty((0, 8))).shape == (0, 8)


def test_the_input_is_left_as_it_was():
    h = histograms(np.random.default_rng(4), 3, 10)
    before = h.copy()
    ppk_map(h)
    np.testing.assert_array_equal(h, before)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[0.5, 0.6]], "row 0 sums to 1.1"),
        ([[0.5, 0.5], [0.0, 0.0]], "row 1 sums to 0"),
        ([[1.5, -0.5]], "smallest entry -0.5"),
        ([[np.nan, 1.0]], "row 0 sums to nan"),
        ([0.5, 0.5], r"shape \(2,\)"),
    ],
    ids=["sum", "empty song", "negative", "nan", "one dimension"],
)
def test_what_is_no_histogram_is_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        ppk_map(bad)
    with pytest.raises(ValueError, match="B: " + message):
        ppk_kernel([[0.5, 0.5]], bad)


def test_histograms_of_different_codebooks_are_refused():
    with pytest.raises(ValueError, match="A has 2 codewords and B 3"):
        ppk_kernel([[0.5, 0.5]], [[0.5, 0.25, 0.25]])
