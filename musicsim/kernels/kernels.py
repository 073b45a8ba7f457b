"""Similarity of songs, n songs by m songs: from histograms, tags, plays and mixtures.

Conventions. Kernels take rows that are songs (plays: columns that are items), return (n, m) float64,
since solvers take them, and compare A with itself when B is left out; they need 8 n m bytes (80 GB for
100 000 songs by themselves; use the map and a search index there). Maps are float32, as features are
stored. Histograms are rows that are not negative and sum to 1. All kernels lie in 0..1, are positive
semidefinite, and are 1 between a song and itself (cosines: unless its row is zero).
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Float64Array, FloatingArray

__all__ = [
    "chi2_rbf_kernel",
    "gmm_kernel",
    "harmony_kernel",
    "harmony_map",
    "human_tag_vectors",
    "inverse_document_frequency",
    "plays_cosine_kernel",
    "ppk_kernel",
    "ppk_map",
    "ppk_similarity",
    "rhythm_kernel",
    "rhythm_map",
    "tfidf_cosine_kernel",
    "tfidf_map",
]


_SUM_TOLERANCE = 1e-3
"""What float32 histograms, summed or stored with a few digits, may be away from 1."""


def ppk_map(histograms: npt.ArrayLike) -> Float32Array:
    """Map histograms to the unit sphere, where the inner product is the probability product kernel.

    Parameters
    ----------
    histograms : array of shape (n_songs, n_codewords), not negative, rows sum to 1 within 0.001

    Returns
    -------
    ndarray of shape (n_songs, n_codewords), float32, rows of length 1

    Raises
    ------
    ValueError
        If an entry is negative or not finite, or a row does not sum to 1.

    Notes
    -----
    Element-wise square root, equation 5.7 of the thesis. What a row lacks of the sum 1 is divided
    out, so that the length is 1 to float32.

    Examples
    --------
    >>> ppk_map([[0.25, 0.75, 0.0]]).round(3)
    array([[0.5  , 0.866, 0.   ]], dtype=float32)
    """
    return _root(histograms, "histograms").astype(np.float32, copy=False)


def ppk_kernel(A: npt.ArrayLike, B: npt.ArrayLike | None = None) -> Float64Array:
    """Return the probability product kernel, the sum over codewords of sqrt(a b), of songs A with B.

    Parameters
    ----------
    A : array of shape (n, n_codewords), histograms
    B : array of shape (m, n_codewords), histograms; A when None

    Returns
    -------
    ndarray of shape (n, m), float64, in 0..1; 1 where two histograms are the same

    Raises
    ------
    ValueError
        If rows are not histograms, or A and B have different numbers of codewords.
    """
    left = _root(A, "A").astype(np.float64)
    right = left if B is None else _root(B, "B").astype(np.float64)
    _check_same_width(left, right)
    return _cosines(left, right)


def _root(histograms: npt.ArrayLike, name: str) -> FloatingArray:
    """Check histograms and return their element-wise square root, in their own precision."""
    array = np.asarray(histograms)
    if array.dtype != np.float32:
        array = array.astype(np.float64)
    if array.ndim != 2:
        raise ValueError(f"{name}: shape {array.shape} should be (n_songs, n_codewords).")
    sums = array.sum(axis=1, dtype=np.float64)
    off = np.flatnonzero(~(np.abs(sums - 1.0) <= _SUM_TOLERANCE))
    if len(off):
        raise ValueError(f"{name}: row {off[0]} sums to {sums[off[0]]:.6g}; a histogram sums to 1.")
    if array.size and array.min() < 0.0:
        raise ValueError(f"{name}: smallest entry {array.min():.6g}; a histogram is not negative.")
    root = array / sums[:, np.newaxis].astype(array.dtype)
    return np.sqrt(root, out=root)


def ppk_similarity(distances: npt.ArrayLike) -> Float64Array:
    """The kernel between songs from Euclidean distances between their maps: 1 - d^2 / 2, never below 0.

    Parameters
    ----------
    distances : array of any shape, >= 0
        Of :func:`ppk_map`, or of what PCA leaves of it.

    Returns
    -------
    ndarray of the same shape, float64, in [0, 1]
    """
    return np.clip(1.0 - np.square(distances, dtype=np.float64) / 2.0, 0.0, 1.0)


def harmony_map(harmony: npt.ArrayLike, *, key_invariant: bool = False) -> Float32Array:
    """Map harmony to the unit sphere, where the inner product is :func:`harmony_kernel`.

    Parameters
    ----------
    harmony : array of shape (n_songs, 156)
        Of :func:`musicsim.audio.harmony`: two histograms, of 12 pitch classes and of 12 x 12 pairs of them.
    key_invariant : bool
        Whether songs in different keys count as the same.

    Returns
    -------
    ndarray of shape (n_songs, 156), or (n_songs, 91) if invariant, float32, rows of length 1

    Raises
    ------
    ValueError
        If rows have another width, or are not histograms.

    Notes
    -----
    Both histograms are mapped by :func:`ppk_map` and count half. Another key rotates the 12 classes, and the
    pairs along their diagonals. The largest kernel over the 12 rotations is not positive semi-definite, and
    turning each song to its own key makes songs jump whose key is in doubt; hence the magnitudes of
    the discrete Fourier transform along the rotation, which no rotation changes. Their product is the
    largest kernel over rotations or somewhat above.
    """
    classes, pairs = _two_roots(harmony, 12, 144, "harmony")
    if key_invariant:
        # the weights by which the inner product of spectra is that of what they are taken of
        weights = np.sqrt(np.array([1, 2, 2, 2, 2, 2, 1]) / 12.0)
        first, interval = np.ogrid[:12, :12]
        along = pairs.reshape(-1, 12, 12)[:, first, (first + interval) % 12]
        classes = np.abs(np.fft.rfft(classes, axis=1)) * weights
        pairs = (np.abs(np.fft.rfft(along, axis=1)) * weights[:, np.newaxis]).reshape(-1, 84)
    return np.concatenate([classes, pairs], axis=1).astype(np.float32)


def harmony_kernel(
    A: npt.ArrayLike, B: npt.ArrayLike | None = None, *, key_invariant: bool = False
) -> Float64Array:
    """Mean of the probability product kernels of pitch classes and of what follows what.

    Parameters
    ----------
    A : array of shape (n, 156)
        Of :func:`musicsim.audio.harmony`.
    B : array of shape (m, 156); A when None
    key_invariant : bool
        See :func:`harmony_map`.

    Returns
    -------
    ndarray of shape (n, m), float64, in 0..1; 1 where harmony is the same, with `key_invariant` in any key

    Raises
    ------
    ValueError
        If rows have another width, or are not histograms.
    """
    left = harmony_map(A, key_invariant=key_invariant).astype(np.float64)
    right = left if B is None else harmony_map(B, key_invariant=key_invariant).astype(np.float64)
    return _cosines(left, right)


def rhythm_map(rhythm: npt.ArrayLike) -> Float32Array:
    """Map rhythm to the unit sphere, where the inner product is :func:`rhythm_kernel`.

    Parameters
    ----------
    rhythm : array of shape (n_songs, 240)
        Of :func:`musicsim.audio.rhythm`: two histograms, of 48 tempos and of the pulses of 4 groups of bands.

    Returns
    -------
    ndarray of shape (n_songs, 240), float32, rows of length 1

    Raises
    ------
    ValueError
        If rows have another width, or are not histograms.

    Notes
    -----
    Both histograms are mapped by :func:`ppk_map` and count half.
    """
    return np.concatenate(_two_roots(rhythm, 48, 192, "rhythm"), axis=1).astype(np.float32)


def rhythm_kernel(A: npt.ArrayLike, B: npt.ArrayLike | None = None) -> Float64Array:
    """Mean of the probability product kernels of tempos and of pulses.

    Parameters
    ----------
    A : array of shape (n, 240)
        Of :func:`musicsim.audio.rhythm`.
    B : array of shape (m, 240); A when None

    Returns
    -------
    ndarray of shape (n, m), float64, in 0..1; 1 where rhythm is the same

    Raises
    ------
    ValueError
        If rows have another width, or are not histograms.
    """
    left = rhythm_map(A).astype(np.float64)
    return _cosines(left, left if B is None else rhythm_map(B).astype(np.float64))


def _two_roots(rows: npt.ArrayLike, first: int, second: int, name: str) -> tuple[Float64Array, Float64Array]:
    """Roots of two histograms that stand one after the other in a row, each of length sqrt(1/2)."""
    array = np.asarray(rows, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != first + second:
        raise ValueError(f"{name}: shape {array.shape} should be (n_songs, {first + second}).")
    parts = array[:, :first], array[:, first:]
    left, right = (np.asarray(_root(part, name) * np.sqrt(0.5), dtype=np.float64) for part in parts)
    return left, right


def inverse_document_frequency(histograms: Any) -> Float64Array:
    """How rare each codeword (or word) is among songs.

    Parameters
    ----------
    histograms : array or scipy sparse matrix of shape (n_songs, n_codewords), not negative

    Returns
    -------
    ndarray of shape (n_codewords,), float64
        log(n_songs / songs that hold the codeword): 0 for a codeword in every song, and in none.

    Raises
    ------
    ValueError
        If there is no song, or an entry is negative or not finite.

    Notes
    -----
    Equation 5.12 of the thesis, with its footnote 8.
    """
    counts = _term_counts(histograms, "histograms")
    n_songs = counts.shape[0]
    if n_songs == 0:
        raise ValueError("histograms hold no song; the frequency of codewords needs at least one.")
    holders = np.asarray((counts > 0).sum(axis=0), dtype=np.float64).ravel()
    return np.log(n_songs / np.where(holders > 0, holders, n_songs))


def tfidf_map(histograms: Any, idf: npt.ArrayLike) -> Any:
    """Weigh codewords by their rarity and bring songs to length 1: inner products are then cosines.

    Parameters
    ----------
    histograms : array or scipy sparse matrix of shape (n_songs, n_codewords), not negative
    idf : array of shape (n_codewords,)
        Of :func:`inverse_document_frequency`, from the songs of training.

    Returns
    -------
    ndarray of shape (n_songs, n_codewords), float32, or a CSR array where `histograms` are sparse
        Rows of length 1; a zero row where nothing is left of a song.

    Raises
    ------
    ValueError
        If `idf` has another length than the rows, or an entry is negative or not finite.

    Notes
    -----
    Equation 5.11, then the norms of equation 5.13.
    """
    return _weighed(histograms, idf, "histograms").astype(np.float32)


def tfidf_cosine_kernel(A: Any, B: Any = None, *, reference: Any = None) -> Float64Array:
    """Cosine between songs after weighing codewords by their rarity.

    Parameters
    ----------
    A : array or scipy sparse matrix of shape (n, n_codewords), not negative
    B : the same of shape (m, n_codewords); A when None
    reference : the same, optional
        Songs whose codewords are counted, those of training; A when None.

    Returns
    -------
    ndarray of shape (n, m), float64, in 0..1
        0 wherever one of the songs holds nothing but codewords of weight 0.

    Raises
    ------
    ValueError
        If numbers of codewords differ, or an entry is negative or not finite.

    Notes
    -----
    Equations 5.11 to 5.13 of the thesis. Sparse input stays sparse until the result.
    """
    idf = inverse_document_frequency(A if reference is None else reference)
    left = _weighed(A, idf, "A")
    return _cosines(left, left if B is None else _weighed(B, idf, "B"))


def chi2_rbf_kernel(A: npt.ArrayLike, B: npt.ArrayLike | None = None, sigma: float = 256.0) -> Float64Array:
    """Radial basis function of the chi-squared distance: exp(-sigma sum_t (a_t - b_t)^2 / (a_t + b_t)).

    Parameters
    ----------
    A : array of shape (n, n_tags), not negative: histograms or tag multinomials
    B : array of shape (m, n_tags); A when None
    sigma : float > 0
        256 is for multinomials that are close to each other, as automatic tags are.

    Returns
    -------
    ndarray of shape (n, m), float64, in 0..1

    Raises
    ------
    ValueError
        If an entry is negative or not finite, numbers of columns differ, or `sigma` is not above 0.

    Notes
    -----
    Thesis 2.5.2 (kernel of auto-tags); no factor 1/2 in the distance, and 0/0 counts 0, as in
    scikit-learn's ``chi2_kernel``, which does the work.
    """
    from sklearn.metrics.pairwise import chi2_kernel

    if not sigma > 0.0:
        raise ValueError(f"sigma={sigma} should be above 0.")
    left = _term_counts(np.asarray(A), "A")
    right = left if B is None else _term_counts(np.asarray(B), "B")
    _check_same_width(left, right)
    if not len(left) or not len(right):
        return np.empty((len(left), len(right)))
    # scikit-learn takes no array that is read-only, such as a memory map
    return chi2_kernel(*(np.require(rows, requirements="W") for rows in (left, right)), gamma=sigma)


def plays_cosine_kernel(plays: Any, other: Any = None) -> Float64Array:
    """Cosine between the listeners of items.

    Parameters
    ----------
    plays : scipy sparse matrix (or array) of shape (n_users, n_items), not negative
        Made binary beforehand, the cosine counts shared listeners, as in the thesis.
    other : the same of shape (n_users, m_items); `plays` when None

    Returns
    -------
    ndarray of shape (n_items, m_items), float64, in 0..1; 0 for an item that nobody heard

    Raises
    ------
    ValueError
        If the numbers of users differ, or an entry is negative or not finite.

    Notes
    -----
    Thesis 2.5.2 (collaborative filter). Products are sparse; only the result is dense.
    """
    from scipy import sparse

    left = _unit_rows(_term_counts(sparse.csr_array(plays).T.tocsr(), "plays"))
    if other is None:
        return _cosines(left, left)
    right = _unit_rows(_term_counts(sparse.csr_array(other).T.tocsr(), "other"))
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"plays have {left.shape[1]} users and other {right.shape[1]}; they should be the same."
        )
    return _cosines(left, right)


class Mixtures(Protocol):
    """Stacked diagonal mixtures, as :class:`musicsim.mixtures.SongMixtures` holds them."""

    @property
    def weights(self) -> FloatingArray: ...
    @property
    def means(self) -> FloatingArray: ...
    @property
    def variances(self) -> FloatingArray: ...


def gmm_kernel(A: Mixtures, B: Mixtures | None = None) -> Float64Array:
    """Expected-likelihood kernel between Gaussian mixtures, normalised to 1 between equal songs.

    Parameters
    ----------
    A : mixtures of n songs with diagonal covariances
    B : mixtures of m songs over the same features; A when None

    Returns
    -------
    ndarray of shape (n, m), float64, in 0..1

    Raises
    ------
    ValueError
        If A and B have different numbers of features.

    Notes
    -----
    Probability product kernel with exponent 1 (Jebara et al. 2004): the integral of p q is the sum over
    pairs of components of w w' N(m; m', v + v'), in closed form; divided by the square roots of the
    integrals of p^2 and q^2. The thesis (2.5.2) uses exponent 1/2, which has no closed form for mixtures.
    In 39 dimensions songs are nearly disjoint, and the kernel is close to the identity. Time: 64 pairs
    of components a pair of songs of 8; memory: the result and float64 copies of the mixtures.
    """
    from musicsim.mixtures._kernels import expected_log_likelihoods

    left = _mixture_parts(A)
    right = left if B is None else _mixture_parts(B)
    if left[1].shape[2] != right[1].shape[2]:
        raise ValueError(
            f"A has {left[1].shape[2]} features and B {right[1].shape[2]}; both need the same frames."
        )
    overlap = expected_log_likelihoods(*left, *right)
    own_left = _self_overlap(left)
    own_right = own_left if B is None else _self_overlap(right)
    overlap -= 0.5 * own_left[:, None]
    overlap -= 0.5 * own_right[None, :]
    np.exp(overlap, out=overlap)
    return np.minimum(overlap, 1.0, out=overlap)


def human_tag_vectors(tag_lists: Iterable[Iterable[str]], vocabulary: Sequence[str]) -> Float32Array:
    """Songs as binary vectors over tags that people gave, scaled to length 1: products are cosines.

    Parameters
    ----------
    tag_lists : one collection of tags a song; a tag named twice counts once
    vocabulary : sequence of distinct str

    Returns
    -------
    ndarray of shape (n_songs, n_tags), float32
        Rows of length 1; a zero row for a song without a tag of the vocabulary.

    Raises
    ------
    ValueError
        If the vocabulary names a tag twice.

    Notes
    -----
    Thesis 5.4.3, "Human tags". 4 n_songs n_tags bytes.
    """
    column = {tag: t for t, tag in enumerate(vocabulary)}
    if len(column) < len(vocabulary):
        raise ValueError("vocabulary names a tag twice; each tag needs one column.")
    known = [sorted({column[tag] for tag in tags if tag in column}) for tags in tag_lists]
    vectors = np.zeros((len(known), len(column)), dtype=np.float32)
    for row, columns in zip(vectors, known, strict=True):
        row[columns] = 1.0 / np.sqrt(max(len(columns), 1))
    return vectors


def _term_counts(rows: Any, name: str) -> Any:
    """Float64 rows that are finite and not negative; CSR where they were sparse."""
    from scipy import sparse

    if sparse.issparse(rows):
        counts = sparse.csr_array(rows, dtype=np.float64)
        if not counts.has_canonical_format:
            counts = counts.copy()  # the arrays may be the caller's
            counts.sum_duplicates()
        entries = counts.data
    else:
        counts = entries = np.asarray(rows, dtype=np.float64)
    if counts.ndim != 2:
        raise ValueError(f"{name}: shape {counts.shape} should be (n_songs, n_codewords).")
    if entries.size and not (np.isfinite(entries).all() and entries.min() >= 0.0):
        raise ValueError(f"{name}: entries should be finite and not negative.")
    return counts


def _weighed(rows: Any, idf: npt.ArrayLike, name: str) -> Any:
    counts, weights = _term_counts(rows, name), np.asarray(idf, dtype=np.float64)
    if weights.shape != (counts.shape[1],):
        raise ValueError(
            f"{name} has {counts.shape[1]} codewords and the reference {weights.size}; "
            f"both need the same codebook."
        )
    if not (np.isfinite(weights).all() and (weights >= 0.0).all()):
        raise ValueError("idf: entries should be finite and not negative.")
    return _unit_rows(counts * weights[np.newaxis, :])


def _unit_rows(rows: Any) -> Any:
    """Rows divided by their length; zero rows stay zero. Sparse rows stay sparse."""
    from scipy import sparse

    if sparse.issparse(rows):
        rows = sparse.csr_array(rows)
        lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        return sparse.diags_array(1.0 / np.where(lengths > 0.0, lengths, 1.0)) @ rows
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0.0, lengths, 1.0)


def _cosines(left: Any, right: Any) -> Float64Array:
    """Products of unit rows that are not negative, dense; rounding may not lift them above 1."""
    from scipy import sparse

    product = left @ right.T
    kernel = product.toarray() if sparse.issparse(product) else np.asarray(product)
    return np.minimum(kernel, 1.0, out=kernel)


def _check_same_width(left: Float64Array, right: Float64Array) -> None:
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"A has {left.shape[1]} codewords and B {right.shape[1]}; both need the same codebook."
        )


def _mixture_parts(mixtures: Mixtures) -> tuple[Float64Array, Float64Array, Float64Array]:
    weights, means, variances = (
        np.ascontiguousarray(part, dtype=np.float64)
        for part in (mixtures.weights, mixtures.means, mixtures.variances)
    )
    return np.log(weights), means, variances


def _self_overlap(parts: tuple[Float64Array, Float64Array, Float64Array]) -> Float64Array:
    """Log of the integral of p^2, one a song."""
    from musicsim.mixtures._kernels import expected_log_likelihoods

    n_songs = len(parts[0])
    own = np.empty(n_songs)
    for i in range(n_songs):
        song = tuple(part[i : i + 1] for part in parts)
        own[i] = expected_log_likelihoods(*song, *song)[0, 0]
    return own
