"""Data sets that scikit-learn brings or fetches, in a folder of musicsim."""

import gzip
import hashlib
import logging
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim.datasets.records import DataSet

__all__ = ["Rows", "bundled_file", "fetch", "hash_fetched", "hash_rows", "is_fetched", "load"]

_LOG = logging.getLogger(__name__)

Rows = tuple[Any, npt.NDArray]
"""Rows (n, d), dense or sparse, and classes (n,), as strings, integers, or a sparse indicator."""

_BUNDLED = {"wine": "wine_data.csv", "wdbc": "breast_cancer.csv"}
_CHECKED = {"covtype": "_covtype", "rcv1": "_rcv1"}
"""Modules of scikit-learn that name the archives and their SHA-256; the fetcher checks them."""


def bundled_file(data_set: DataSet) -> Path:
    """Return the file in scikit-learn's package."""
    import sklearn.datasets

    return Path(sklearn.datasets.__file__).parent / "data" / _BUNDLED[data_set.name]


def fetch(data_set: DataSet, folder: Path) -> None:
    """Download a data set into `folder`, unless it is there."""
    _fetch(data_set, folder, download=True)


def load(data_set: DataSet, folder: Path) -> Rows:
    """Return the rows and classes of a data set that is on this machine."""
    if data_set.fetcher == "bundled":
        return _load_bundled(data_set)
    X, y = _fetch(data_set, folder, download=False)
    checked = slice(-data_set.n_checked, None)  # -0 is all
    if data_set.content_sha256 and hash_rows(X[checked], y[checked]) != data_set.content_sha256:
        _LOG.warning(
            "%s: the rows are not those of the kept results, or in another order; results will differ a little.",
            data_set.title,
        )
    return X, y


def is_fetched(data_set: DataSet, folder: Path) -> bool:
    """Return whether the fetcher has stored the data set in `folder`."""
    if data_set.fetcher == "bundled":
        return True
    if data_set.fetcher == "openml":
        return bool(_openml_files(folder))
    return any(folder.rglob("samples*"))


def hash_fetched(data_set: DataSet, folder: Path) -> dict[str, str]:
    """Return the SHA-256 of the files of a data set that was fetched into `folder`.

    OpenML's are hashed as served. For the others, these are the hashes that scikit-learn's fetcher checks, because it
    stores only the arrays.
    """
    if data_set.fetcher == "openml":
        hashes = {}
        for path in _openml_files(folder):
            with gzip.open(path, "rb") as stream:
                hashes[path.relative_to(folder / "openml").as_posix().removesuffix(".gz")] = hashlib.sha256(
                    stream.read()
                ).hexdigest()
        return hashes
    return {archive.filename: archive.checksum for archive in _archives(data_set)}


def hash_rows(X: npt.NDArray, y: npt.NDArray) -> str:
    """Return a SHA-256 of rows and classes that does not depend on the last digits of the rows."""
    numbers = np.unique(y, return_inverse=True)[1].astype("<i8")
    return hashlib.sha256(
        np.round(np.asarray(X, np.float64) * 1e4).astype("<i8").tobytes() + numbers.tobytes()
    ).hexdigest()


def _archives(data_set: DataSet) -> list[Any]:
    from importlib import import_module

    module = import_module(f"sklearn.datasets.{_CHECKED[data_set.fetcher]}")
    return [module.ARCHIVE] if data_set.fetcher == "covtype" else [*module.XY_METADATA, *module.TOPICS_METADATA_ALL]


def _openml_files(folder: Path) -> list[Path]:
    """Return the data files in scikit-learn's cache of OpenML's answers; descriptions are left out."""
    return sorted(path for path in (folder / "openml").rglob("*.gz") if "api" not in path.parts)


def _load_bundled(data_set: DataSet) -> Rows:
    from sklearn.datasets import load_breast_cancer, load_wine

    if data_set.name == "wine":
        held = load_wine()
        return held.data, held.target
    held = load_breast_cancer()
    return held.data, held.target_names[held.target]


def _fetch(data_set: DataSet, folder: Path, *, download: bool) -> Rows:
    from sklearn import datasets

    if data_set.fetcher == "openml":
        held = datasets.fetch_openml(data_id=data_set.openml_id, data_home=folder, as_frame=False)
    elif data_set.fetcher == "covtype":
        held = datasets.fetch_covtype(data_home=folder, download_if_missing=download)
    else:
        held = datasets.fetch_rcv1(data_home=folder, download_if_missing=download)
    return held.data, held.target
