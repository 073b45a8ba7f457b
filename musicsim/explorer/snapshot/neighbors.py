"""The search index of a library, stored next to the model; a small library does not need an index.

By default, a large library gets a partition; the setting `index_kind` can choose otherwise. The index contains all rows
of the model's file, which only grows: new songs are added, but removed songs stay. The job that places new songs
updates the index. Until the index is built, every search compares all songs.
"""

import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import numpy.typing as npt

from musicsim import search
from musicsim._arrays import BoolArray, Float32Array, Int64Array
from musicsim.errors import ModelError
from musicsim.library.disk.arrays import RowFile

_log = logging.getLogger(__name__)

INDEXED_FROM = 100_000  # minimum number of songs for an index; comparing fewer takes less than 15 ms
CHOSEN_FROM = 1_000  # minimum number of songs for an index that the settings choose explicitly
KINDS = ("partition", "exact")
_FOLDER = "index"
INDEX_FILE = f"{_FOLDER}/index.json"
N_CANDIDATES = 500  # number of candidates that hub reduction re-ranks
_RECALL = 0.95  # recall of all candidates; the recall of the nearest ten is above 99%
_N_QUERIES = 100
_ADDED_ON_READING = 0.02  # largest share of new rows for which the index file is not rewritten
_GROWTH = 1.5  # an index that has grown by this factor is rebuilt
_SEED = 0


def index_kind(n_songs: int, choice: str = "automatic") -> str:
    """Return the kind of index (one of :data:`KINDS`) for a number of songs and the setting `index_kind`."""
    if choice == "automatic":
        return "partition" if n_songs >= INDEXED_FROM else "exact"
    return choice if n_songs >= CHOSEN_FROM else "exact"


def build_partition(X: Float32Array) -> "search.PartitionIndex":
    """Build a partition of rows (n_rows, n_dimensions), with enough probes for the candidates of a search."""
    return _calibrate(search.PartitionIndex(random_state=_SEED).fit(X), X)


def _calibrate(index: "search.PartitionIndex", X: Float32Array) -> "search.PartitionIndex":
    search.calibrate(index, X, N_CANDIDATES, _RECALL, n_queries=_N_QUERIES, random_state=_SEED)
    return index


class Neighbors:
    """Nearest-neighbor search among a library's songs.

    The index contains all rows of a model's file. `file_rows` (n_rows,), ascending, are the rows of the library's
    songs; all others are removed from the index. Pickling sends all vectors, unless `files` contains the arguments of
    :class:`_MappedNeighbors`.
    """

    def __init__(
        self, index: "search.PartitionIndex | search.ExactIndex", file_rows: Int64Array, files: tuple[Any, ...] = ()
    ) -> None:
        self.index, self._n, self._files = index, len(file_rows), files
        self._file_rows: Int64Array | None = None
        if self._n < index.n_samples_:
            self._file_rows = file_rows
            index.remove(np.setdiff1d(np.arange(index.n_samples_), file_rows, assume_unique=True))

    def query(
        self, Q: npt.ArrayLike, k: int = 10, *, allowed: BoolArray | None = None
    ) -> tuple[Float32Array, Int64Array]:
        """Return the distances and rows of the library's nearest songs, like :meth:`ExactIndex.query`."""
        if self._file_rows is None:
            return self.index.query(Q, k, allowed=allowed)
        if allowed is not None:
            mask = np.zeros(self.index.n_samples_, bool)
            mask[self._file_rows] = allowed
            allowed = mask
        distances, rows = self.index.query(Q, k, allowed=allowed)
        return distances, np.searchsorted(self._file_rows, rows)

    def __reduce__(self) -> tuple[Any, ...]:
        file_rows = np.arange(self._n) if self._file_rows is None else self._file_rows
        return (_MappedNeighbors, (file_rows, *self._files)) if self._files else (Neighbors, (self.index, file_rows))


@dataclass(frozen=True)
class _MappedNeighbors:
    """:class:`Neighbors` in a worker process, mapped on first use; raises FileNotFoundError if files are missing."""

    file_rows: Int64Array
    folder: Path  # folder of the index
    vectors: Path
    shape: tuple[int, int]  # shape of the vectors

    @cached_property
    def _mapped(self) -> Neighbors:
        n, width = self.shape
        index = search.PartitionIndex.load(self.folder, RowFile(self.vectors, width).read(n))
        index.n_jobs = 1  # there is one such process per core
        return Neighbors(index, self.file_rows)

    def query(self, Q: npt.ArrayLike, k: int = 10) -> tuple[Float32Array, Int64Array]:
        return self._mapped.query(Q, k)


def load_index(
    folder: Path, vectors: Float32Array, file_rows: Int64Array, rows: Callable[[], Float32Array], kind: str
) -> Neighbors:
    """Load the index next to a model; compare all songs if there is no index or the kind is ``exact``.

    `vectors` (n_file_rows, n_dimensions) are all rows of the model's file. `file_rows` (n_rows,), ascending, are the
    rows of the library's songs; `rows` returns their vectors, float32. Raises ModelError if these are damaged.
    """
    if kind != "exact":
        try:
            filename = vectors.filename if isinstance(vectors, np.memmap) else None
            files = (folder / _FOLDER, Path(filename), vectors.shape) if filename is not None else ()
            return Neighbors(search.PartitionIndex.load(folder / _FOLDER, vectors), file_rows, files)
        except FileNotFoundError:
            _log.info("%s does not have an index yet, so every search compares all songs.", folder)
        except (ValueError, OSError) as error:
            _log.warning("The index in %s cannot be used, so every search compares all songs: %s", folder, error)
    X = rows()
    return Neighbors(build_exact_index(folder, X), np.arange(len(X)))


def build_exact_index(folder: Path, X: Float32Array) -> "search.ExactIndex":
    """Return an index that compares all vectors of the model in a folder; raises ModelError if they are not finite."""
    try:
        return search.ExactIndex().fit(X)
    except ValueError as error:
        raise ModelError(
            f"the vectors in {folder} are damaged: {error} Choose a different model, or run `musicsim doctor`."
        ) from error


def update_index(folder: Path, X: Float32Array, choice: str = "automatic") -> bool:
    """Build the index of a model, or add new rows; return whether it was written.

    X (n_rows, n_dimensions) are all rows of the model's file, and `choice` is the setting `index_kind`. Nothing is
    written while another process writes, or to a read-only folder.
    """
    if index_kind(len(X), choice) == "exact":
        return False
    try:
        with filelock.FileLock(folder / f"{_FOLDER}.lock", timeout=0):
            for leftover in folder.glob(f".{_FOLDER}-*"):  # left by a process that was killed while it wrote
                shutil.rmtree(leftover, ignore_errors=True)
            index = _extend_or_build(folder / _FOLDER, X)
            if index is None:
                return False
            index.save(folder / _FOLDER)
            return True
    except filelock.Timeout:
        return False
    except OSError as error:
        _log.warning("cannot write to %s, so every search compares all songs: %s", folder, error)
        return False


def _extend_or_build(target: Path, X: Float32Array) -> "search.PartitionIndex | None":
    """Return an index of all rows, or None if the index file already contains nearly all of them."""
    try:
        n, n_built = search.PartitionIndex.count_saved_rows(target)
        search.PartitionIndex.load(target, X[:n])  # raises if it was built from different rows or has a different kind
        if len(X) - n <= _ADDED_ON_READING * n:
            return None
        if len(X) <= _GROWTH * n_built:
            return _calibrate(search.PartitionIndex.load(target, X), X)
    except FileNotFoundError:
        shutil.rmtree(target, ignore_errors=True)  # an incomplete index
    except (ValueError, OSError) as error:
        _log.warning("The index in %s is being rebuilt: %s", target, error)
        shutil.rmtree(target, ignore_errors=True)
    return build_partition(X)
