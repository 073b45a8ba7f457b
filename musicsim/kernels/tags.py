"""Kernels of tags, words and plays: TF-IDF cosines, chi-squared, binary tags, and cosines between listeners."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from musicsim._arrays import Float32Array, Float64Array
from musicsim.kernels._rows import check_same_width, cosines, term_counts, unit_rows


def inverse_document_frequency(histograms: Any) -> Float64Array:
    """Return the rarity of each codeword (or word) among songs: float64 (n_codewords,).

    log(n_songs / songs with the codeword), 0 for codewords in every song and for unused ones: equation 5.12 of the
    thesis, with its footnote 8. `histograms`, an array or a scipy sparse matrix, are (n_songs, n_codewords). Raises
    ValueError without songs, or if an entry is negative or not finite.
    """
    counts = term_counts(histograms, "histograms")
    n_songs = counts.shape[0]
    if n_songs == 0:
        raise ValueError("histograms are empty; the frequency of codewords needs at least one song.")
    holders = np.asarray((counts > 0).sum(axis=0), dtype=np.float64).ravel()
    return np.log(n_songs / np.where(holders > 0, holders, n_songs))


def tfidf_map(histograms: Any, idf: npt.ArrayLike) -> Any:
    """Weight codewords by their rarity, and scale songs to length 1, so that inner products are cosines.

    Equation 5.11, then the norms of equation 5.13. `histograms`, an array or a scipy sparse matrix, are (n_songs,
    n_codewords). `idf`, (n_codewords,), is the :func:`inverse_document_frequency` of the training songs. The result is
    float32 of the same shape, CSR if the histograms are sparse; a row is zero if all its weights are 0. Raises
    ValueError if `idf` has another length than the rows, or an entry is negative or not finite.
    """
    return _weigh(histograms, idf, "histograms").astype(np.float32)


def tfidf_cosine_kernel(A: Any, B: Any = None, *, reference: Any = None) -> Float64Array:
    """Return cosines between songs after weighting codewords by their rarity: float64 (n, m), in 0..1.

    Equations 5.11 to 5.13 of the thesis. `A`, an array or a scipy sparse matrix, is (n, n_codewords); `B` is (m,
    n_codewords), or A when None. The rarity is that in `reference`, usually the training songs, or A when None. The
    cosine is 0 if all codewords of one of the songs have weight 0. Sparse input stays sparse until the result. Raises
    ValueError if numbers of codewords differ, or an entry is negative or not finite.
    """
    idf = inverse_document_frequency(A if reference is None else reference)
    left = _weigh(A, idf, "A")
    return cosines(left, left if B is None else _weigh(B, idf, "B"))


def chi2_rbf_kernel(A: npt.ArrayLike, B: npt.ArrayLike | None = None, sigma: float = 256.0) -> Float64Array:
    """Return the radial basis function of the chi-squared distance: exp(-sigma sum_t (a_t - b_t)^2 / (a_t + b_t)).

    Thesis 2.5.2 (kernel of auto-tags). `A` is (n, n_tags), histograms or tag multinomials; `B` is (m, n_tags), or A
    when None; the result is float64 (n, m), in 0..1. The default `sigma` suits multinomials that are close to each
    other, such as automatic tags. The distance does not have a factor 1/2, and 0/0 counts as 0, as in scikit-learn's
    ``chi2_kernel``, which computes it. Raises ValueError if an entry is negative or not finite, numbers of columns
    differ, or `sigma` is not above 0.
    """
    from sklearn.metrics.pairwise import chi2_kernel

    if not sigma > 0.0:
        raise ValueError(f"sigma={sigma} should be above 0.")
    left = term_counts(np.asarray(A), "A")
    right = left if B is None else term_counts(np.asarray(B), "B")
    check_same_width(left, right)
    if not len(left) or not len(right):
        return np.empty((len(left), len(right)))
    # scikit-learn does not accept read-only arrays, such as memory maps
    return chi2_kernel(*(np.require(rows, requirements="W") for rows in (left, right)), gamma=sigma)


def human_tag_vectors(tag_lists: Iterable[Iterable[str]], vocabulary: Sequence[str]) -> Float32Array:
    """Return songs as binary vectors over tags by people, scaled to length 1, so that products are cosines.

    Thesis 5.4.3, "Human tags". There is one collection of tags per song, and one column per tag of `vocabulary`:
    float32 (n_songs, n_tags). A song without a tag of the vocabulary has a zero row. Raises ValueError if the
    vocabulary contains a tag twice.
    """
    column = {tag: t for t, tag in enumerate(vocabulary)}
    if len(column) < len(vocabulary):
        raise ValueError("vocabulary contains a tag twice; each tag needs one column.")
    known = [sorted({column[tag] for tag in tags if tag in column}) for tags in tag_lists]
    vectors = np.zeros((len(known), len(column)), dtype=np.float32)
    for row, columns in zip(vectors, known, strict=True):
        row[columns] = 1.0 / np.sqrt(max(len(columns), 1))
    return vectors


def plays_cosine_kernel(plays: Any, other: Any = None) -> Float64Array:
    """Return cosines between the listeners of items: float64 (n_items, m_items); 0 for an item without listeners.

    Thesis 2.5.2 (collaborative filter). `plays`, an array or a scipy sparse matrix, is (n_users, n_items); if it is
    binary, the cosine counts shared listeners, as in the thesis. `other` is (n_users, m_items), or `plays` when None.
    Products are sparse; only the result is dense. Raises ValueError if the numbers of users differ, or an entry is
    negative or not finite.
    """
    left = unit_rows(term_counts(sparse.csr_array(plays).T.tocsr(), "plays"))
    if other is None:
        return cosines(left, left)
    right = unit_rows(term_counts(sparse.csr_array(other).T.tocsr(), "other"))
    if left.shape[1] != right.shape[1]:
        raise ValueError(f"plays have {left.shape[1]} users and other {right.shape[1]}; they should be the same.")
    return cosines(left, right)


def _weigh(rows: Any, idf: npt.ArrayLike, name: str) -> Any:
    counts, weights = term_counts(rows, name), np.asarray(idf, dtype=np.float64)
    if weights.shape != (counts.shape[1],):
        raise ValueError(
            f"{name} has {counts.shape[1]} codewords and the reference {weights.size}; both need the same codebook."
        )
    if not (np.isfinite(weights).all() and (weights >= 0.0).all()):
        raise ValueError("idf: entries should be finite and not negative.")
    return unit_rows(counts * weights[np.newaxis, :])
