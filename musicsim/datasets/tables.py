"""Load data sets for classification as arrays."""

import numpy as np

from musicsim.datasets import scikit_learn
from musicsim.datasets.files import fetched_folder, open_text
from musicsim.datasets.registry import get_dataset
from musicsim.datasets.scikit_learn import Rows
from musicsim.errors import DataSetAbsentError

__all__ = ["load"]

_CLASS_COLUMN = {"balance": 0, "ionosphere": -1}


def load(name: str) -> Rows:
    """Load rows and classes of a data set that is on this machine. Nothing is fetched.

    Parameters
    ----------
    name : {"balance", "covtype", "ionosphere", "isolet", "mnist", "rcv1", "wdbc", "wine"}

    Returns
    -------
    X : ndarray of shape (n_rows, d), float64
        Sparse for RCV1.
    y : ndarray of shape (n_rows,), int64
        Classes 0, 1, ... in alphabetical order; numbers keep their values for MNIST, Covertype and IsoLet. For RCV1, a
        sparse matrix of shape (n_rows, n_topics).

    Raises
    ------
    DataSetAbsentError
        If the data set is not on this machine. The message says how to get it.
    ValueError
        If the data set is not a table with classes.

    Examples
    --------
    >>> import musicsim as ms
    >>> X, y = ms.datasets.load("wine")
    >>> X.shape
    (178, 13)
    """
    data_set = get_dataset(name)
    if not data_set.fetcher:
        raise ValueError(f"{name} is not a table with classes: use ms.datasets.find({name!r}) to get its files.")
    if name in _CLASS_COLUMN:
        try:
            return _read_csv(name)
        except DataSetAbsentError:
            pass  # OpenML's copy may be there
    folder = fetched_folder(data_set)
    if folder is None:
        raise DataSetAbsentError(f"{data_set.title} is absent. {data_set.how_to_get}")
    X, y = scikit_learn.load(data_set, folder)
    if name == "rcv1":
        return X, y
    if name in ("mnist", "covtype", "isolet"):
        return np.asarray(X, np.float64), y.astype(np.int64)
    return np.asarray(X, np.float64), np.unique(y, return_inverse=True)[1].astype(np.int64)


def _read_csv(name: str) -> Rows:
    """Read UCI's own file."""
    column, data_set = _CLASS_COLUMN[name], get_dataset(name)
    with open_text(name, data_set.files[0].path) as file:
        lines = file.read().split()
    table = np.array([line.split(",") for line in lines])
    y = np.unique(table[:, column], return_inverse=True)[1]
    return np.delete(table, column, axis=1).astype(np.float64), y.astype(np.int64)
