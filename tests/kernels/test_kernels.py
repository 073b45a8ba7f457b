"""Tests of kernels between songs against their definitions, scikit-learn and scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics.pairwise import cosine_similarity

from musicsim.kernels import (
    chi2_rbf_kernel,
    gmm_kernel,
    harmony_kernel,
    harmony_map,
    human_tag_vectors,
    inverse_document_frequency,
    plays_cosine_kernel,
    ppk_kernel,
    ppk_map,
    ppk_similarity,
    rhythm_kernel,
    rhythm_map,
    tfidf_cosine_kernel,
    tfidf_map,
)
from musicsim.kernels.histograms import KEYLESS_HARMONY_SIZE
from musicsim.mixtures import SongMixtures

# rows of 1 to 12 entries, some of them zero, but not all
masses = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 6), st.integers(1, 12)), elements=st.floats(0.0, 1.0, allow_subnormal=False)
).map(lambda a: a + np.eye(*a.shape) + (np.arange(a.shape[1]) == 0))


def histograms(rng, n, k, dtype=np.float32):
    return rng.dirichlet(np.full(k, 0.3), size=n).astype(dtype)


@given(masses)
def test_map_returns_square_roots_of_histogram(mass):
    h = mass / mass.sum(axis=1, keepdims=True)
    mapped = ppk_map(h)
    assert mapped.dtype == np.float32
    # float32: half a unit in the last place of each entry
    np.testing.assert_allclose(np.linalg.norm(mapped.astype(np.float64), axis=1), 1.0, atol=2e-7)
    np.testing.assert_allclose(mapped.astype(np.float64) ** 2, h, rtol=2e-7, atol=1e-30)


def test_kernel_matches_sum_of_square_roots():
    rng = np.random.default_rng(0)
    A, B = histograms(rng, 7, 20, np.float64), histograms(rng, 5, 20, np.float64)
    expected = [[sum((a * b) ** 0.5 for a, b in zip(p, q, strict=True)) for q in B] for p in A]
    np.testing.assert_allclose(ppk_kernel(A, B), expected, rtol=1e-12)


def test_self_kernel_is_symmetric_with_unit_diagonal():
    A = histograms(np.random.default_rng(1), 30, 64)
    kernel = ppk_kernel(A)
    np.testing.assert_array_equal(kernel, kernel.T)
    np.testing.assert_allclose(np.diag(kernel), 1.0, atol=1e-6)  # float32 histograms
    assert kernel.max() <= 1.0
    assert np.linalg.eigvalsh(kernel).min() > -1e-10


def test_similarity_is_kernel_at_distance():
    distances = [0.0, 0.5, 1.0, np.sqrt(2.0), 2.0]
    np.testing.assert_allclose(ppk_similarity(distances), [1.0, 0.875, 0.5, 0.0, 0.0], atol=1e-12)


def test_kernel_is_product_of_maps():
    A, B = (histograms(np.random.default_rng(seed), 9, 50) for seed in (2, 3))
    # 50 products of float32 entries, each rounded to 6e-8
    np.testing.assert_allclose(ppk_map(A) @ ppk_map(B).T, ppk_kernel(A, B), atol=1e-6)


def test_disjoint_songs_have_kernel_zero():
    np.testing.assert_array_equal(ppk_kernel([[1.0, 0.0], [0.0, 1.0]]), np.eye(2))


def test_no_songs_give_no_rows():
    assert ppk_map(np.empty((0, 8))).shape == (0, 8)


def test_input_is_unchanged():
    h = histograms(np.random.default_rng(4), 3, 10)
    before = h.copy()
    ppk_map(h)
    np.testing.assert_array_equal(h, before)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[0.5, 0.6]], "row 0 sums to 1.1"),
        ([[0.5, 0.5], [0.0, 0.0]], "row 1 sums to 0"),
        ([[1.5, -0.5]], "smallest entry is -0.5"),
        ([[np.nan, 1.0]], "row 0 sums to nan"),
        ([0.5, 0.5], r"has shape \(2,\)"),
    ],
    ids=["sum", "empty song", "negative", "nan", "one dimension"],
)
def test_rejects_invalid_histograms(bad, message):
    with pytest.raises(ValueError, match=message):
        ppk_map(bad)
    with pytest.raises(ValueError, match="B.*" + message):
        ppk_kernel([[0.5, 0.5]], bad)


def test_rejects_histograms_of_different_codebooks():
    with pytest.raises(ValueError, match="A has 2 codewords, but B has 3"):
        ppk_kernel([[0.5, 0.5]], [[0.5, 0.25, 0.25]])


def sparse_counts(rng, shape, density=0.3):
    return sparse.random_array(shape, density=density, rng=rng, format="csr") * 5.0


def test_idf_is_log_of_inverse_song_share():
    h = np.array([[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.2, 0.0, 0.8, 0.0]])
    expected = [0.0, np.log(3.0), np.log(3.0), 0.0]
    np.testing.assert_allclose(inverse_document_frequency(h), expected, rtol=1e-15)
    np.testing.assert_allclose(inverse_document_frequency(sparse.coo_matrix(h)), expected, rtol=1e-15)


def test_idf_matches_scikit_learn(rng):
    counts = (rng.random((30, 20)) < 0.3) * rng.random((30, 20))
    counts[0] = 1.0  # every codeword occurs, because scikit-learn would divide by zero otherwise
    judge = TfidfTransformer(smooth_idf=False).fit(counts)
    np.testing.assert_allclose(inverse_document_frequency(counts), judge.idf_ - 1.0, rtol=1e-12)


def test_tfidf_cosine_matches_loop():
    rng = np.random.default_rng(5)
    A, B, reference = (histograms(rng, n, 8, np.float64) * (rng.random((n, 8)) < 0.6) for n in (6, 4, 9))
    A[2] = 0.0
    idf = inverse_document_frequency(reference)
    expected = np.zeros((6, 4))
    for i, a in enumerate(A * idf):
        for j, b in enumerate(B * idf):
            if a.any() and b.any():
                expected[i, j] = a @ b / np.sqrt((a @ a) * (b @ b))
    np.testing.assert_allclose(tfidf_cosine_kernel(A, B, reference=reference), expected, rtol=1e-12)
    np.testing.assert_array_equal(tfidf_cosine_kernel(A, B, reference=reference)[2], 0.0)
    mapped = tfidf_map(A, idf) @ tfidf_map(B, idf).T
    assert mapped.dtype == np.float32
    np.testing.assert_allclose(mapped, expected, atol=1e-6)  # float32


def test_sparse_and_dense_tfidf_agree(rng):
    A, B = sparse_counts(rng, (12, 30)), sparse_counts(rng, (7, 30))
    dense = tfidf_cosine_kernel(A.toarray(), B.toarray())
    np.testing.assert_allclose(tfidf_cosine_kernel(A, B), dense, rtol=1e-12)
    np.testing.assert_allclose(tfidf_cosine_kernel(A, B.toarray()), dense, rtol=1e-12)
    mapped = tfidf_map(A, inverse_document_frequency(A))
    assert sparse.issparse(mapped)
    np.testing.assert_allclose(mapped.toarray(), tfidf_map(A.toarray(), inverse_document_frequency(A)), atol=1e-7)


def test_duplicate_sparse_entries_are_summed():
    parts = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    kernel = tfidf_cosine_kernel(parts, reference=[[1.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(kernel, np.eye(2), rtol=1e-12)
    assert parts.nnz == 3


def test_chi_squared_kernel_matches_definition():
    rng = np.random.default_rng(6)
    A, B = histograms(rng, 5, 9, np.float64), histograms(rng, 4, 9, np.float64)
    A[:, 3] = B[:, 3] = 0.0  # 0 / 0 counts as zero
    expected = np.empty((5, 4))
    for i, a in enumerate(A):
        for j, b in enumerate(B):
            both = a + b > 0.0
            expected[i, j] = np.exp(-3.0 * np.sum((a - b)[both] ** 2 / (a + b)[both]))
    np.testing.assert_allclose(chi2_rbf_kernel(A, B, sigma=3.0), expected, rtol=1e-12)
    np.testing.assert_array_equal(np.diag(chi2_rbf_kernel(A)), 1.0)
    np.testing.assert_allclose(chi2_rbf_kernel(A, A), chi2_rbf_kernel(A, sigma=256), rtol=1e-12)


def test_plays_cosine_matches_scikit_learn(rng):
    plays, other = sparse_counts(rng, (50, 12), 0.1), sparse_counts(rng, (50, 5), 0.1)
    plays = sparse.csc_array(plays.toarray() * (np.arange(12) != 4))  # nobody played item 4
    expected = cosine_similarity(plays.toarray().T, other.toarray().T)
    np.testing.assert_allclose(plays_cosine_kernel(plays, other), expected, rtol=1e-12, atol=1e-15)
    own = plays_cosine_kernel(plays)
    np.testing.assert_array_equal(own[4], 0.0)
    np.testing.assert_allclose(np.delete(np.diag(own), 4), 1.0, rtol=1e-12)
    assert own.max() <= 1.0


def mixtures(rng, n, c=3, d=4):
    return SongMixtures(
        rng.dirichlet(np.full(c, 2.0), n) + 1e-3, rng.normal(size=(n, c, d)), rng.gamma(2.0, 0.5, (n, c, d)) + 0.1
    )


def test_expected_likelihood_matches_scipy(rng):
    A, B = mixtures(rng, 4), mixtures(rng, 3, c=2)

    def overlap(P, i, Q, j):
        total = 0.0
        for w, m, v in zip(P.weights[i], P.means[i], P.variances[i], strict=True):
            for w_, m_, v_ in zip(Q.weights[j], Q.means[j], Q.variances[j], strict=True):
                density = multivariate_normal(m_.astype(float), np.diag(v.astype(float) + v_))
                total += float(w) * float(w_) * density.pdf(m.astype(float))
        return total

    expected = [
        [overlap(A, i, B, j) / np.sqrt(overlap(A, i, A, i) * overlap(B, j, B, j)) for j in range(3)] for i in range(4)
    ]
    np.testing.assert_allclose(gmm_kernel(A, B), expected, rtol=1e-9)


def test_expected_likelihood_is_positive_semidefinite(rng):
    A = mixtures(rng, 25)
    kernel = gmm_kernel(A)
    np.testing.assert_allclose(kernel, kernel.T, rtol=1e-12)
    np.testing.assert_allclose(np.diag(kernel), 1.0, rtol=1e-12)
    assert np.linalg.eigvalsh(kernel).min() > -1e-10


def test_distant_mixtures_have_kernel_zero():
    A = SongMixtures(np.ones((2, 1)), np.array([[[0.0] * 39], [[1e4] * 39]]), np.full((2, 1, 39), 1e-6))
    np.testing.assert_array_equal(gmm_kernel(A), np.eye(2))


def test_exponent_half_gives_bhattacharyya_coefficient(rng):
    A, B = mixtures(rng, 3, c=1, d=2), mixtures(rng, 2, c=1, d=2)

    def coefficient(P, i, Q, j):
        m, v, m_, v_ = (x.astype(float) for x in (P.means[i, 0], P.variances[i, 0], Q.means[j, 0], Q.variances[j, 0]))
        between = np.prod(np.sqrt(2 * np.sqrt(v * v_) / (v + v_)))
        return between * np.exp(-0.25 * np.sum((m - m_) ** 2 / (v + v_)))

    expected = [[coefficient(A, i, B, j) for j in range(2)] for i in range(3)]
    # over seeds, the deviation is at most .0013
    np.testing.assert_allclose(gmm_kernel(A, B, exponent=0.5, n_samples=40_000), expected, atol=0.007)


@pytest.mark.long
def test_exponent_half_of_mixtures_matches_quadrature(rng):
    A = mixtures(rng, 3, c=3, d=1)
    grid = np.linspace(-20, 20, 40_001)
    density = [
        sum(
            float(w) * np.exp(-((grid - m) ** 2) / (2 * v)) / np.sqrt(2 * np.pi * v)
            for w, m, v in zip(A.weights[i], A.means[i, :, 0], A.variances[i, :, 0], strict=True)
        )
        for i in range(3)
    ]
    roots = np.sqrt(np.array(density, dtype=float))
    expected = roots @ roots.T * (grid[1] - grid[0])
    kernel = gmm_kernel(A, exponent=0.5, n_samples=40_000)
    np.testing.assert_allclose(kernel, expected / np.sqrt(np.outer(*2 * [np.diag(expected)])), atol=0.01)
    np.testing.assert_allclose(np.diag(kernel), 1.0, rtol=1e-12)
    assert np.linalg.eigvalsh(kernel).min() > -1e-12
    np.testing.assert_array_equal(kernel, gmm_kernel(A, exponent=0.5, n_samples=40_000))


def test_human_tag_similarity_is_set_cosine():
    vectors = human_tag_vectors([["rock", "loud", "loud", "unknown"], [], {"loud"}], ["loud", "calm", "rock"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(
        vectors @ vectors.T, [[1.0, 0.0, 0.5**0.5], [0.0, 0.0, 0.0], [0.5**0.5, 0.0, 1.0]], atol=1e-6
    )
    assert human_tag_vectors([], ["a"]).shape == (0, 1)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: inverse_document_frequency(np.empty((0, 3))), "at least one song"),
        (lambda: inverse_document_frequency([[1.0, -0.1]]), "not negative"),
        (lambda: tfidf_map([[1.0, np.nan]], [1.0, 1.0]), "finite"),
        (lambda: tfidf_map([[1.0, 0.0]], [1.0]), "2 codewords, but the reference has 1"),
        (lambda: tfidf_cosine_kernel([[1.0, 0.0]], [[1.0]]), "B has 1 codewords"),
        (lambda: chi2_rbf_kernel([[1.0]], sigma=0.0), "sigma=0.0"),
        (lambda: tfidf_map([[1.0, 2.0]], [1.0, np.nan]), "idf: entries must be finite"),
        (lambda: tfidf_map([[1.0, 2.0]], [1.0, -1.0]), "idf: entries must be finite and not negative"),
        (lambda: chi2_rbf_kernel([[1.0]], [[0.5, 0.5]]), "A has 1 codewords, but B has 2"),
        (lambda: chi2_rbf_kernel([[-1.0]]), "A: entries must be finite and not negative"),
        (lambda: plays_cosine_kernel(sparse.eye_array(3), sparse.eye_array(4)), "3 users, but `other` has 4"),
        (lambda: human_tag_vectors([], ["a", "a"]), "twice"),
    ],
)
def test_rejects_invalid_kernel_input(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_rejects_mixtures_of_other_features(rng):
    with pytest.raises(ValueError, match="A has 4 features, but B has 5"):
        gmm_kernel(mixtures(rng, 1), mixtures(rng, 1, d=5))
    with pytest.raises(ValueError, match="exponent=2 must be 1 or"):
        gmm_kernel(mixtures(rng, 1), exponent=2)


# --- harmony and rhythm -----------------------------------------------------------------------


def two_histograms(rng, n, first, second):
    return np.hstack([histograms(rng, n, first), histograms(rng, n, second)])


def transposed(harmony, steps):
    """Transpose every class, and both classes of every pair, up by this many semitones."""
    classes = np.roll(harmony[:, :12], steps, axis=1)
    pairs = np.roll(harmony[:, 12:].reshape(-1, 12, 12), (steps, steps), axis=(1, 2))
    return np.hstack([classes, pairs.reshape(-1, 144)])


def test_harmony_and_rhythm_average_two_kernels(rng):
    A, B = two_histograms(rng, 6, 12, 144), two_histograms(rng, 4, 12, 144)
    expected = (ppk_kernel(A[:, :12], B[:, :12]) + ppk_kernel(A[:, 12:], B[:, 12:])) / 2
    # maps are float32
    np.testing.assert_allclose(harmony_kernel(A, B), expected, atol=1e-6)
    A, B = two_histograms(rng, 6, 48, 192), two_histograms(rng, 4, 48, 192)
    expected = (ppk_kernel(A[:, :48], B[:, :48]) + ppk_kernel(A[:, 48:], B[:, 48:])) / 2
    np.testing.assert_allclose(rhythm_kernel(A, B), expected, atol=1e-6)


@pytest.mark.parametrize("steps", range(12))
def test_key_invariant_harmony_ignores_transposition(rng, steps):
    A = two_histograms(rng, 5, 12, 144)
    moved = transposed(A, steps)
    np.testing.assert_allclose(harmony_map(moved, key_invariant=True), harmony_map(A, key_invariant=True), atol=1e-6)
    assert harmony_map(A, key_invariant=True).shape == (5, KEYLESS_HARMONY_SIZE)
    np.testing.assert_allclose(np.diag(harmony_kernel(A, moved, key_invariant=True)), 1.0, atol=1e-6)
    assert (np.diag(harmony_kernel(A, moved)) < 0.99).all() == (steps > 0)


def test_key_invariant_harmony_is_at_least_best_key(rng):
    A, B = two_histograms(rng, 8, 12, 144), two_histograms(rng, 7, 12, 144)
    best = np.max([harmony_kernel(A, transposed(B, steps)) for steps in range(12)], axis=0)
    assert (harmony_kernel(A, B, key_invariant=True) >= best - 1e-6).all()


@pytest.mark.parametrize(
    "kernel", [harmony_kernel, lambda *of: harmony_kernel(*of, key_invariant=True)], ids=["as it is", "in any key"]
)
def test_harmony_kernels_are_positive_semidefinite(rng, kernel):
    A = two_histograms(rng, 30, 12, 144)
    K = kernel(A)
    np.testing.assert_allclose(K, kernel(A, A), atol=1e-12)  # BLAS sums symmetric products in another order
    np.testing.assert_allclose(np.diag(K), 1.0, atol=1e-6)
    assert K.min() >= 0.0
    assert np.linalg.eigvalsh((K + K.T) / 2).min() > -1e-6  # float32 maps


def test_harmony_and_rhythm_maps_have_unit_rows(rng):
    for mapped in (
        harmony_map(two_histograms(rng, 5, 12, 144)),
        harmony_map(two_histograms(rng, 5, 12, 144), key_invariant=True),
        rhythm_map(two_histograms(rng, 5, 48, 192)),
    ):
        assert mapped.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(mapped, axis=1), 1.0, atol=1e-6)


def test_rejects_rows_without_harmony_or_rhythm():
    with pytest.raises(ValueError, match=r"harmony has shape \(2, 240\); it must be \(n_songs, 156\)"):
        harmony_map(np.ones((2, 240)))
    with pytest.raises(ValueError, match="rhythm: row 0 sums to 48"):
        rhythm_map(np.ones((1, 240)))


def test_chi_squared_accepts_memory_map_and_empty_input(rng, tmp_path):
    A = rng.random((5, 4))
    np.save(tmp_path / "a.npy", A)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    np.testing.assert_array_equal(chi2_rbf_kernel(mapped, mapped[:2]), chi2_rbf_kernel(A, A[:2]))
    assert chi2_rbf_kernel(np.empty((0, 4)), A).shape == (0, 5)
    assert chi2_rbf_kernel(A, np.empty((0, 4))).shape == (5, 0)
    assert chi2_rbf_kernel(np.empty((0, 4))).shape == (0, 0)


def test_sparse_and_dense_histograms_have_the_same_kernel(rng):
    histograms = sparse_counts(rng, (12, 20)).toarray() + np.eye(12, 20)
    histograms /= histograms.sum(axis=1, keepdims=True)
    rows = sparse.csr_array(histograms)
    np.testing.assert_allclose(ppk_kernel(rows, rows[:3]), ppk_kernel(histograms, histograms[:3]), rtol=1e-12)
    assert sparse.issparse(ppk_map(rows))
    np.testing.assert_allclose(ppk_map(rows).toarray(), ppk_map(histograms), rtol=1e-6)
    with pytest.raises(ValueError, match="row 0 sums to"):
        ppk_map(2 * rows)
    with pytest.raises(TypeError, match="A is sparse"):
        chi2_rbf_kernel(rows)
