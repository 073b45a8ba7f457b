"""Which index answers for a library: every song is compared in a small one, a large one has an index beside its model.

The setting `index_kind` chooses the index. By default that is a partition, or, where one would take more memory than
the library's settings allow, bit codes that leave the vectors on the disk. The index is made of the rows of the model's
file, which only grows: songs that are forgotten leave it as it is, new ones are added to it. It is brought up to the
library by the job that places new songs; until there is one, every song is compared.
"""

import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock
import numpy as np
import numpy.typing as npt

from musicsim import search
from musicsim._arrays import BoolArray, Float32Array, Int64Array
from musicsim.errors import ModelError
from musicsim.library.disk.arrays import RowFile

if TYPE_CHECKING:
    FileIndex = search.PartitionIndex | search.SpillForest | search.SpillTree | search.CompactIndex

_log = logging.getLogger(__name__)

INDEXED_FROM = 100_000
"""Songs from which a library gets an index: comparing with all of fewer takes less than 15 ms."""

CHOSEN_FROM = 1_000
"""Songs from which a library gets the kind of index that its settings choose."""

# Classes of the kinds that are kept in files, by name: importing the one of codes takes a second.
_CLASSES = {"partition": "PartitionIndex", "forest": "SpillForest", "tree": "SpillTree", "codes": "CompactIndex"}
KINDS = (*_CLASSES, "exact")
TITLES = {
    "automatic": "Automatic",
    "partition": "Partition",
    "forest": "Spill forest",
    "tree": "Spill tree",
    "codes": "Bit codes",
    "exact": "Exact",
}
"""Names of the values of the setting `index_kind`."""

_PARTITION_BYTES = 1.3
"""What a partition takes for each number of a vector: 0.13 GB for a million songs of 100 dimensions."""

_FOLDER = "index"
INDEX_FILE = f"{_FOLDER}/index.json"

N_CANDIDATES = 500
"""Candidates that hub reduction reorders."""

# Share of the candidates that is found; of the nearest ten more than 99 %.
_RECALL = 0.95
_N_QUERIES = 100
# Rows that may be missing in the file and are added whenever it is read, as a share of all.
_ADDED_ON_READING = 0.02
# A partition whose cells have grown so much is built again.
_GROWTH = 1.5
_SEED = 0
# Of the spill tree: overlap of the sides, and rows of a leaf, as a number and as a share of all.
_SPILL, _LEAF_SIZE, _LEAF_SHARE = 0.2, 512, 1 / 32


def index_kind(shape: tuple[int, ...], choice: str = "automatic", memory_mb: float = np.inf) -> str:
    """Kind of index, one of :data:`KINDS`, for vectors of a shape and a value of the setting `index_kind`."""
    n_songs, n_dimensions = shape
    if choice != "automatic":
        return choice if n_songs >= CHOSEN_FROM else "exact"
    if n_songs < INDEXED_FROM:
        return "exact"
    return "partition" if _PARTITION_BYTES * n_songs * n_dimensions <= 1e6 * memory_mb else "codes"


def build_index(kind: str, X: Float32Array) -> "FileIndex | search.ExactIndex":
    """Build an index of a kind over rows (n_rows, n_dimensions), with enough probes for the candidates of a search."""
    if kind == "exact":
        return search.ExactIndex().fit(X)
    index: Any
    if kind == "tree":
        index = search.SpillTree(spill=_SPILL, leaf_size=max(_LEAF_SIZE, int(_LEAF_SHARE * len(X))), random_state=_SEED)
    else:
        index = getattr(search, _CLASSES[kind])(random_state=_SEED)
    _calibrate(kind, index.fit(X), X)
    return index


def _calibrate(kind: str, index: Any, X: Float32Array) -> None:
    """Set the number of probes, if indexes of the kind have one."""
    if kind in ("partition", "forest"):
        search.calibrate(index, X, N_CANDIDATES, _RECALL, n_queries=_N_QUERIES, random_state=_SEED)


class Neighbours:
    """The nearest rows of a library's songs.

    The index has the rows of a model's file; `file_rows` (n_rows,), ascending, are those that are songs here, and the
    others are removed from it. To another process all vectors are sent, or, where the index is in files (`kept`), where
    these are.
    """

    def __init__(
        self, index: "FileIndex | search.ExactIndex", file_rows: Int64Array, kept: "_Files | None" = None
    ) -> None:
        self._index, self._n, self._kept = index, len(file_rows), kept
        self._file_rows: Int64Array | None = None
        if self._n < index.n_samples_:
            self._file_rows = file_rows
            is_here = np.zeros(index.n_samples_, bool)
            is_here[file_rows] = True
            index.remove(np.flatnonzero(~is_here))

    def query(
        self, Q: npt.ArrayLike, k: int = 10, *, allowed: BoolArray | None = None
    ) -> tuple[Float32Array, Int64Array]:
        """Distances and rows, as :meth:`ExactIndex.query` gives them, of the library's rows."""
        if self._file_rows is None:
            return self._index.query(Q, k, allowed=allowed)
        if allowed is not None:
            mask = np.zeros(self._index.n_samples_, bool)
            mask[self._file_rows] = allowed
            allowed = mask
        distances, found = self._index.query(Q, k, allowed=allowed)
        return distances, np.searchsorted(self._file_rows, found)

    def __reduce__(self) -> tuple[Any, ...]:
        file_rows = np.arange(self._n) if self._file_rows is None else self._file_rows
        if self._kept is None:
            return Neighbours, (self._index, file_rows)
        return _MappedNeighbours, (self._kept, file_rows)


@dataclass(frozen=True, slots=True)
class _Files:
    """An index in files: its folder, and the file of the vectors with so many rows and columns."""

    folder: Path
    vectors: Path
    shape: tuple[int, int]


class _MappedNeighbours:
    """What becomes of :class:`Neighbours` in another process: maps the files when it is first asked.

    A process that does not see them raises FileNotFoundError then.
    """

    def __init__(self, files: _Files, file_rows: Int64Array) -> None:
        self._files, self._file_rows = files, file_rows

    @cached_property
    def _mapped(self) -> Neighbours:
        n, width = self._files.shape
        index = _loaded(self._files.folder, RowFile(self._files.vectors, width).read(n))
        index.n_jobs = 1  # there is such a process for each core
        return Neighbours(index, self._file_rows)

    def query(self, Q: npt.ArrayLike, k: int = 10) -> tuple[Float32Array, Int64Array]:
        """As :meth:`Neighbours.query`."""
        return self._mapped.query(Q, k)


def load_index(
    folder: Path, vectors: Float32Array, file_rows: Int64Array, rows: Callable[[], Float32Array], kind: str
) -> Neighbours:
    """Load the index beside a model, or compare with all songs where there is none, or the kind is ``exact``.

    `vectors` (n_file_rows, n_dimensions) are all rows of the model's file, `file_rows` (n_rows,), ascending, those
    that are songs here; `rows` gives their vectors, float32, where all are compared.

    Raises ModelError if these hold what is no vector.
    """
    if kind != "exact":
        try:
            kept = _kept(folder / _FOLDER, vectors)
            return Neighbours(_loaded(folder / _FOLDER, vectors), file_rows, kept)
        except FileNotFoundError:
            _log.info("%s has no index yet: every song is compared.", folder)
        except (ValueError, OSError) as error:
            _log.warning("The index in %s is not used, every song is compared: %s", folder, error)
    X = rows()
    return Neighbours(compared(folder, X), np.arange(len(X)))


def _kept(folder: Path, vectors: Float32Array) -> _Files | None:
    """The files of an index; None of vectors that are in memory only."""
    name = vectors.filename if isinstance(vectors, np.memmap) else None
    return None if name is None else _Files(folder, Path(name), vectors.shape)


def compared(folder: Path, X: Float32Array) -> "search.ExactIndex":
    """What compares with all vectors (n_rows, n_dimensions) of the model in a folder.

    Raises ModelError if they hold what is no vector, as after damage to the disk.
    """
    try:
        return search.ExactIndex().fit(X)
    except ValueError as error:
        raise ModelError(
            f"the vectors in {folder} are damaged: {error} Choose another model, or run `musicsim doctor`."
        ) from error


def _loaded(folder: Path, X: Float32Array) -> "FileIndex":
    """The index of a folder, of whichever kind."""
    name = search.kind_of_index(folder)
    if name not in _CLASSES.values():
        raise ValueError(f"{folder} holds a {name}, which is not an index of a library.")
    index: FileIndex = getattr(search, name).load(folder, X)
    return index


def update_index(folder: Path, X: Float32Array, memory_mb: float = np.inf, choice: str = "automatic") -> bool:
    """Build the index of a model, or add the rows that are new.

    X (n_rows, n_dimensions) are all rows of its file; `memory_mb` and `choice` are the settings, see
    :func:`index_kind`.

    Returns whether there was anything to do; also False while another process is at it, or where the folder cannot be
    written to.
    """
    kind = index_kind(X.shape, choice, memory_mb)
    if kind == "exact":
        return False
    try:
        with filelock.FileLock(folder / f"{_FOLDER}.lock", timeout=0):
            for left in folder.glob(f".{_FOLDER}-*"):  # of a process that was ended while it wrote
                shutil.rmtree(left, ignore_errors=True)
            index = _brought_up(folder / _FOLDER, X, kind)
            if index is None:
                return False
            index.save(folder / _FOLDER)
            return True
    except filelock.Timeout:
        return False
    except OSError as error:
        _log.warning("%s cannot be written to, every song is compared: %s", folder, error)
        return False


def _brought_up(target: Path, X: Float32Array, kind: str) -> Any:
    """The index of all rows; None where the file has nearly all of them."""
    index_class = getattr(search, _CLASSES[kind])
    try:
        n, n_built = index_class.saved_rows(target)
        index_class.load(target, X[:n])  # refuses what was made of other rows, or is of another kind
        if len(X) - n <= _ADDED_ON_READING * n:
            return None
        if len(X) <= _GROWTH * n_built:
            index = index_class.load(target, X)
            _calibrate(kind, index, X)
            return index
    except FileNotFoundError:
        shutil.rmtree(target, ignore_errors=True)  # what is left of one that lost its description
    except (ValueError, OSError) as error:
        _log.warning("The index in %s is rebuilt: %s", target, error)
        shutil.rmtree(target, ignore_errors=True)
    return build_index(kind, X)
