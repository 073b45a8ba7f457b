"""Counts of songs, dense or sparse: checked, and brought to length 1."""

from typing import Any

import numpy as np
from scipy import sparse


def term_counts(rows: Any, name: str) -> Any:
    """Float64 rows that are finite and not negative; CSR where they were sparse."""
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


def unit_rows(rows: Any) -> Any:
    """Rows divided by their length; zero rows stay zero. Sparse rows stay sparse."""
    if sparse.issparse(rows):
        rows = sparse.csr_array(rows)
        lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        return sparse.diags_array(1.0 / np.where(lengths > 0.0, lengths, 1.0)) @ rows
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0.0, lengths, 1.0)
