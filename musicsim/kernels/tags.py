"""Kernels of tags, words and plays: TF-IDF cosines, chi-squared, binary tags, and cosines between items' listeners."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from musicsim._arrays import Float32Array, Float64Array
from musicsim._checks import check_dense
from musicsim.kernels._rows import check_same_width, cosines, term_counts, unit_rows


def inverse_document_frequency(histograms: Any) -> Float64Array:
    """Return the rarity of each codeword (or word) among songs (equation 5.12 of the thesis, with its footnote 8).

    The result (n_codewords,) is log(n_songs / number of songs with the codeword). It is 0 for unused codewords, and for
    codewords in every song. Histograms (n_songs, n_codewords) may be sparse, and must not be negative.

    Examples
    --------
    >>> from musicsim.kernels import inverse_document_frequency
    >>> inverse_document_frequency([[2, 0, 1], [1, 0, 0], [5, 3, 0]]).round(2)  # the first word is in every song
    array([0. , 1.1, 1.1])
    """
    counts = term_counts(histograms, "histograms")
    n_songs = counts.shape[0]
    if n_songs == 0:
        raise ValueError("histograms is empty: at least one song is needed.")
    holders = np.asarray((counts > 0).sum(axis=0), dtype=np.float64).ravel()
    return np.log(n_songs / np.where(holders > 0, holders, n_songs))


def tfidf_map(histograms: Any, idf: npt.ArrayLike) -> Any:
    """Weight codewords by their rarity (equation 5.11), and scale songs to length 1 (the norms of equation 5.13).

    `idf` is the :func:`inverse_document_frequency` of the training songs. The result is float32 and has the shape of
    `histograms`; it is a CSR array if they are sparse. Inner products of its rows are cosines. Rows with only
    zero weights stay 0; all others have length 1. Histograms must not be negative.

    Examples
    --------
    >>> from musicsim.kernels import inverse_document_frequency, tfidf_map
    >>> counts = [[2, 0, 1], [1, 3, 0], [5, 3, 0]]
    >>> songs = tfidf_map(counts, inverse_document_frequency(counts))
    >>> (songs @ songs.T).round(2)  # the last two share a rare word
    array([[1., 0., 0.],
           [0., 1., 1.],
           [0., 1., 1.]], dtype=float32)
    """
    return _weigh(histograms, idf, "histograms").astype(np.float32)


def tfidf_cosine_kernel(A: Any, B: Any = None, *, reference: Any = None) -> Float64Array:
    """Return the cosines between songs after weighting codewords by their rarity (equations 5.11 to 5.13).

    Parameters
    ----------
    A : array or SciPy sparse matrix of shape (n, n_codewords), not negative
    B : array or SciPy sparse matrix of shape (m, n_codewords); A when None
    reference : array or SciPy sparse matrix, optional
        Songs from which the rarity is computed, usually the training songs; A when None.

    Returns
    -------
    ndarray of shape (n, m), float64, from 0 to 1; 0 if all codewords of one of the songs have weight 0

    Examples
    --------
    >>> from musicsim.kernels import tfidf_cosine_kernel
    >>> train = [[2, 0, 1, 1], [1, 3, 0, 1], [5, 3, 0, 0]]
    >>> tfidf_cosine_kernel([[0, 1, 0, 0]], train, reference=train).round(2)  # a new song and three others
    array([[0.  , 0.95, 1.  ]])
    """
    idf = inverse_document_frequency(A if reference is None else reference)
    left = _weigh(A, idf, "A")
    return cosines(left, left if B is None else _weigh(B, idf, "B"))


def chi2_rbf_kernel(A: npt.ArrayLike, B: npt.ArrayLike | None = None, sigma: float = 256.0) -> Float64Array:
    """Return the radial basis function of the chi-squared distance: exp(-sigma sum_t (a_t - b_t)^2 / (a_t + b_t)).

    Parameters
    ----------
    A : array-like of shape (n, n_tags), not negative; histograms or tag multinomials
    B : array-like of shape (m, n_tags); A when None
    sigma : float > 0; 256 suits multinomials that are close to each other, such as those of automatic tags

    Returns
    -------
    ndarray of shape (n, m), float64, from 0 to 1

    Notes
    -----
    Thesis 2.5.2 (kernel of auto-tags). The distance has no factor 1/2, and 0/0 is treated as 0, as in scikit-learn's
    ``chi2_kernel``, which computes it.

    Examples
    --------
    >>> from musicsim.kernels import chi2_rbf_kernel
    >>> tags = [[0.5, 0.5, 0.0], [0.48, 0.5, 0.02], [0.3, 0.3, 0.4]]  # probabilities of three tags
    >>> chi2_rbf_kernel(tags, sigma=10.0).round(2)
    array([[1.  , 0.82, 0.01],
           [0.82, 1.  , 0.01],
           [0.01, 0.01, 1.  ]])
    """
    from sklearn.metrics.pairwise import chi2_kernel

    if not sigma > 0.0:
        raise ValueError(f"sigma={sigma} must be above 0.")
    check_dense("A", A)
    check_dense("B", B)
    left = term_counts(np.asarray(A), "A")
    right = left if B is None else term_counts(np.asarray(B), "B")
    check_same_width(left, right)
    if not len(left) or not len(right):
        return np.empty((len(left), len(right)))
    # scikit-learn does not accept read-only arrays, such as memory maps
    return chi2_kernel(*(np.require(rows, requirements="W") for rows in (left, right)), gamma=sigma)


def human_tag_vectors(tag_lists: Iterable[Iterable[str]], vocabulary: Sequence[str]) -> Float32Array:
    """Return songs as binary vectors over people's tags, scaled to length 1 ("human tags" in section 5.4.3).

    The result is float32 (n_songs, n_tags), with rows of length 1. A song without a tag in the vocabulary is a row of
    zeros. Repeated tags count once. The tags in the vocabulary must be distinct.

    Examples
    --------
    >>> from musicsim.kernels import human_tag_vectors
    >>> songs = human_tag_vectors([["calm", "piano"], ["calm"], ["loud"]], vocabulary=["calm", "loud", "piano"])
    >>> (songs @ songs.T).round(2)
    array([[1.  , 0.71, 0.  ],
           [0.71, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]], dtype=float32)
    """
    if not all(isinstance(tag, str) for tag in vocabulary):
        raise TypeError("vocabulary must contain the tags, which are strings.")
    column = {tag: t for t, tag in enumerate(vocabulary)}
    if len(column) < len(vocabulary):
        raise ValueError("vocabulary contains a tag twice; each tag needs one column.")
    known = []
    for song, tags in enumerate(tag_lists):
        if isinstance(tags, str) or not isinstance(tags, Iterable):
            raise TypeError(f"the tags of song {song} are {tags!r}: pass a list of tags for each song.")
        known.append(sorted({column[tag] for tag in map(str, tags) if tag in column}))
    vectors = np.zeros((len(known), len(column)), dtype=np.float32)
    for row, columns in zip(vectors, known, strict=True):
        row[columns] = 1.0 / np.sqrt(max(len(columns), 1))
    return vectors


def plays_cosine_kernel(plays: Any, other: Any = None) -> Float64Array:
    """Return the cosines between items, each represented by the plays of its listeners (thesis 2.5.2).

    Parameters
    ----------
    plays : array or SciPy sparse matrix of shape (n_users, n_items), not negative
        If it is binary, the cosine counts shared listeners, as in the thesis.
    other : array or SciPy sparse matrix of shape (n_users, m_items); `plays` when None

    Returns
    -------
    ndarray of shape (n_items, m_items), float64, from 0 to 1; 0 for an item without listeners

    Examples
    --------
    >>> from musicsim.kernels import plays_cosine_kernel
    >>> plays = [[1, 1, 0], [1, 1, 0], [0, 1, 1]]  # three listeners, three songs
    >>> plays_cosine_kernel(plays).round(2)  # two people play both of the first two songs
    array([[1.  , 0.82, 0.  ],
           [0.82, 1.  , 0.58],
           [0.  , 0.58, 1.  ]])
    """
    left = unit_rows(term_counts(sparse.csr_array(plays).T.tocsr(), "plays"))
    if other is None:
        return cosines(left, left)
    right = unit_rows(term_counts(sparse.csr_array(other).T.tocsr(), "other"))
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"plays has {left.shape[1]} users, but `other` has {right.shape[1]}; both must have the same users."
        )
    return cosines(left, right)


def _weigh(rows: Any, idf: npt.ArrayLike, name: str) -> Any:
    counts, weights = term_counts(rows, name), np.asarray(idf, dtype=np.float64)
    if weights.shape != (counts.shape[1],):
        raise ValueError(
            f"{name} has {counts.shape[1]} codewords, but the reference has {weights.size}: use the same codebook."
        )
    if not (np.isfinite(weights).all() and (weights >= 0.0).all()):
        raise ValueError("idf: entries must be finite and not negative.")
    return unit_rows(counts * weights[np.newaxis, :])
