"""Check rows of songs (histograms, and dense or sparse counts), scale them to unit length, and compute cosines."""

from typing import Any

import numpy as np

from musicsim._arrays import Float64Array
from musicsim._checks import check_dense

# The sum of a histogram can differ from 1 by this much, because of rounding or because few digits were stored.
_SUM_TOLERANCE = 1e-3


def root(histograms: Any, name: str) -> Any:
    """Check histograms, and return their element-wise square roots: float32 for float32 input, otherwise float64.

    Sparse histograms give a float64 CSR array.
    """
    if hasattr(histograms, "tocsr"):
        return _sparse_root(histograms, name)
    check_dense(name, histograms)
    array = np.asarray(histograms)
    if array.dtype != np.float32:
        array = array.astype(np.float64)
    if array.ndim != 2:
        raise ValueError(f"{name} has shape {array.shape}; it must be (n_songs, n_codewords).")
    sums = _check_sums(array.sum(axis=1, dtype=np.float64), name)
    if array.size and array.min() < 0.0:
        raise ValueError(f"{name}: the smallest entry is {array.min():.6g}; entries must not be negative.")
    root = array / sums[:, np.newaxis].astype(array.dtype)
    return np.sqrt(root, out=root)


def _check_sums(sums: Float64Array, name: str) -> Float64Array:
    off = np.flatnonzero(~(np.abs(sums - 1.0) <= _SUM_TOLERANCE))
    if len(off):
        raise ValueError(f"{name}: row {off[0]} sums to {sums[off[0]]:.6g}; it must sum to 1.")
    return sums


def _sparse_root(histograms: Any, name: str) -> Any:
    counts = term_counts(histograms, name)
    sums = _check_sums(np.asarray(counts.sum(axis=1)).ravel(), name)
    return (counts / sums[:, np.newaxis]).tocsr().sqrt()


def cosines(left: Any, right: Any) -> Float64Array:
    """Return the inner products of nonnegative unit rows as a dense array, clipped to 1."""
    product = left @ right.T
    kernel = product.toarray() if hasattr(product, "toarray") else np.asarray(product)
    return np.minimum(kernel, 1.0, out=kernel)


def check_same_width(left: Float64Array, right: Float64Array) -> None:
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"A has {left.shape[1]} codewords, but B has {right.shape[1]}: use the same codebook for both."
        )


def term_counts(rows: Any, name: str) -> Any:
    """Check that rows are finite and not negative, and return them in float64, as a CSR array if they are sparse."""
    from scipy import sparse  # this import takes 0.1 s

    if sparse.issparse(rows):
        counts = sparse.csr_array(rows, dtype=np.float64)
        if not counts.has_canonical_format:
            counts = counts.copy()  # the caller may own the arrays
            counts.sum_duplicates()
        entries = counts.data
    else:
        counts = entries = np.asarray(rows, dtype=np.float64)
    if counts.ndim != 2:
        raise ValueError(f"{name} has shape {counts.shape}; it must be (n_songs, n_codewords).")
    if entries.size and not (np.isfinite(entries).all() and entries.min() >= 0.0):
        raise ValueError(f"{name}: entries must be finite and not negative.")
    return counts


def unit_rows(rows: Any) -> Any:
    """Return rows divided by their lengths; zero rows stay zero, and sparse rows stay sparse."""
    from scipy import sparse

    if sparse.issparse(rows):
        rows = sparse.csr_array(rows)
        lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        return sparse.diags_array(1.0 / np.where(lengths > 0.0, lengths, 1.0)) @ rows
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0.0, lengths, 1.0)
