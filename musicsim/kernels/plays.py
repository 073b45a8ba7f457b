"""Kernels of plays: cosines between the listeners of items."""

from typing import Any

from scipy import sparse

from musicsim._arrays import Float64Array
from musicsim.kernels._counts import term_counts, unit_rows
from musicsim.kernels._histograms import cosines


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
    left = unit_rows(term_counts(sparse.csr_array(plays).T.tocsr(), "plays"))
    if other is None:
        return cosines(left, left)
    right = unit_rows(term_counts(sparse.csr_array(other).T.tocsr(), "other"))
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"plays have {left.shape[1]} users and other {right.shape[1]}; they should be the same."
        )
    return cosines(left, right)
