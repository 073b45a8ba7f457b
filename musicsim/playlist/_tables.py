"""Tables of counts as they are given: checked, and as what the libraries below take."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse


def counted(table: Any, dtype: npt.DTypeLike, argument: str, meaning: str) -> sparse.csr_matrix:
    """A table of counts without stored zeros, in CSR; raises ValueError where an entry is no count.

    A matrix, not an array: implicit, and scikit-learn before 1.6, do not take sparse arrays everywhere.
    """
    matrix = sparse.csr_matrix(table, dtype=dtype)
    if not np.all(np.isfinite(matrix.data)) or np.any(matrix.data < 0):
        raise ValueError(f"{argument} must be finite and non-negative: {meaning}")
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix
