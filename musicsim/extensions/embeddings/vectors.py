"""Vectors of songs: files from other programs, those stored in a library, and those that a network has computed.

A file has one vector per song:

- ``.npz``: an array `vectors` (n, d), and an array `ids`, `paths` or `hashes` (n,) that identifies the songs;
- ``.npy``: a structured array with a field `vector` and a field `id`, `path` or `hash`. A plain array (n, d) has one
  row for each song in the library, in ascending order of song ids;
- ``.parquet``: a column `id`, `path` or `hash`, and either one column of lists of numbers or one column per dimension.

Integers are song ids. Strings are paths, or hashes of a file's bytes. Files are not trusted: nothing is unpickled, and
declared sizes are checked before memory is allocated.
"""

import hashlib
import importlib
import json
import os
import re
import shutil
import time
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from musicsim import _npy, storage
from musicsim._arrays import BoolArray, Float32Array, Int64Array
from musicsim.errors import LibraryError, NotFoundError
from musicsim.library import (
    Library,
    Limits,
    LocalPool,
    OverTimeError,
    PlaceIndex,
    WorkerDied,
    atomic_folder,
    read_header,
    shorten_message,
    shorten_problems,
)

ENDINGS = (".npz", ".npy", ".parquet")
_VECTORS = ("vectors", "vector", "embeddings", "embedding")
_NAMES = ("ids", "id", "song_ids", "song_id", "paths", "path", "files", "file", "hashes", "hash", "content_hash")
MAX_NUMBERS = 2**29  # maximum number of values, 2 GB as float32: a million songs with 512 dimensions
MAX_BYTES = 2**32  # maximum bytes per array: MAX_NUMBERS as float64
_MAX_ROWS = 2**22
_MAX_RATIO = 100  # maximum ratio of memory to file size; numbers compress poorly, decompression bombs very well
_ALWAYS_READ = 2**26  # bytes of memory that any file can use, even a small one
MAX_WIDE = 4_096
_MAX_NAME = 4_096
_TIMES_ITS_SIZE = 4  # memory of a table that is being read, as a multiple of its file size
_LIMITS = Limits(seconds=600, memory_mb=1024)
_BATCH = 4_096  # number of rows that are read from a Parquet file at a time
_MAX_RUNS = 8  # maximum number of column ranges in a message


@dataclass(frozen=True, slots=True)
class EmbeddingFile:
    names: list[int] | list[str] | None  # song ids, hashes or paths; None: all songs in ascending order of id
    vectors: Float32Array  # (n, d), finite and not 0
    problems: tuple[str, ...]  # one sentence for each of the first 20 skipped rows, then one that counts the others
    note: str = ""  # sentence about the columns that were used as names and numbers


def read_embedding(path: Path, limits: Limits = _LIMITS) -> EmbeddingFile:
    """Read a file of vectors; its extension selects the format. Invalid and repeated rows are left out and reported.

    Tables are first read in a process with `limits`, and memory for a multiple of the file's size.
    """
    read = {".npz": _read_npz, ".npy": _read_npy, ".parquet": _read_parquet}.get(path.suffix.lower())
    if read is None:
        raise LibraryError(f"{path.name}: vectors can only be read from {', '.join(ENDINGS)} files.")
    try:
        if read is _read_parquet:
            _check_in_process(path, limits)
        names, vectors, note = read(path)
    except OSError as error:
        raise LibraryError(f"{path.name}: cannot be read ({shorten_message(error.strerror or error)}).") from error
    except (ValueError, TypeError, KeyError, EOFError, MemoryError, RuntimeError) as error:
        # pyarrow's errors are subclasses of these
        raise LibraryError(f"{path.name}: no vectors can be read from this file ({shorten_message(error)}).") from error
    except (zipfile.BadZipFile, zlib.error) as error:
        raise LibraryError(
            f"{path.name}: this is not an .npz file, or it is damaged ({shorten_message(error)})."
        ) from error
    return _check(path.name, names, vectors, note)


_Read = tuple[npt.NDArray[Any] | None, npt.NDArray[Any], str]


def _read_npz(path: Path) -> _Read:
    with zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        chosen = [_choose(members, _NAMES), _choose(members, _VECTORS)]
        for name in chosen:
            if members[name].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"{name} uses a compression method that NumPy does not support")
            with archive.open(members[name]) as stream:
                _check_header(stream, members[name].file_size)
        _check_ratio(sum(members[name].file_size for name in chosen), path)
        arrays = []
        for name in chosen:
            with archive.open(members[name]) as stream:
                arrays.append(np.lib.format.read_array(stream, allow_pickle=False))
    return arrays[0], arrays[1], ""


def _read_npy(path: Path) -> _Read:
    with path.open("rb") as stream:
        _check_header(stream, path.stat().st_size)
    array = np.load(path, allow_pickle=False)
    if array.dtype.names is None:
        return None, array, ""
    return array[_choose(array.dtype.names, _NAMES)], array[_choose(array.dtype.names, _VECTORS)], ""


def _check_header(stream: IO[bytes], n_bytes: int) -> None:
    """Check the declared size of a stored array before memory is allocated for it."""
    header = read_header(stream, n_bytes)
    if header.size > MAX_NUMBERS or n_bytes > MAX_BYTES or (header.shape and header.shape[0] > _MAX_ROWS):
        limits = f"{_MAX_ROWS:,} rows, {MAX_NUMBERS:,} numbers or {MAX_BYTES / 2**30:g} GB"
        raise ValueError(f"an array has more than {limits}")


def _check_ratio(n_bytes: int, path: Path) -> None:
    if n_bytes > max(_ALWAYS_READ, _MAX_RATIO * path.stat().st_size):
        size = f"{n_bytes >> 20:,} MB, more than {_MAX_RATIO} times its size"
        raise ValueError(f"it would unpack to {size}; if it contains vectors, save them as .npy")


def _check_in_process(path: Path, limits: Limits) -> None:
    """Read a table in a worker first; raise ValueError if it crashes pyarrow, or needs too much time or memory."""
    limits = replace(limits, memory_mb=limits.memory_mb + (_TIMES_ITS_SIZE * path.stat().st_size >> 20))
    with closing(LocalPool(1).outcomes(_try_parquet, [path.absolute()], limits=limits)) as items:
        outcome = next(item[1] for item in items if item is not None)
    if isinstance(outcome, WorkerDied):
        raise ValueError("it is damaged and crashes the program that reads it")
    if isinstance(outcome, OverTimeError):
        raise ValueError(f"it took more than {limits.seconds:g} s and was stopped")
    if isinstance(outcome, MemoryError):
        raise ValueError(f"it needs more than {limits.memory_mb:,} MB of memory; increase the setting file_memory_mb")


def _try_parquet(path: Path) -> None:
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # pyarrow's own pool reserves 1 GB, whatever it needs
    _read_parquet(path)


def _read_parquet(path: Path) -> _Read:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
        pa = importlib.import_module("pyarrow")
    except ImportError as error:
        raise ValueError("Parquet files need the package pyarrow: python -m pip install pyarrow") from error
    schema = parquet.read_schema(path)
    kinds = {name: schema.field(name).type for name in schema.names}
    name_column = _choose(kinds, _NAMES)
    lists = [name for name, kind in kinds.items() if pa.types.is_nested(kind)]
    if len(lists) > 1:
        lists = [_choose(lists, _VECTORS)]
    # columns called __index_... are indexes that pandas saved
    columns = lists or [
        n for n, kind in kinds.items() if n != name_column and _is_number(pa, kind) and not n.startswith("__index_")
    ]
    if not columns:
        raise ValueError("it has neither a column of lists nor columns of numbers")
    names, values, masks = [], [], []
    # names stay dictionary-encoded, because a long name may occur a million times
    with parquet.ParquetFile(path, read_dictionary=[name_column]) as file:
        _check_table(file.metadata, path)
        for batch in file.iter_batches(_BATCH, columns=[name_column, *columns]):
            if lists:
                numbers, is_there = _read_lists(batch.column(columns[0]))
            else:
                numbers = np.stack([_to_floats(batch.column(name)) for name in columns], axis=1)
                is_there = np.ones(len(batch), dtype=np.bool_)
            names.append(_read_names(pa, batch.column(name_column)))
            values.append(numbers)
            masks.append(is_there)
    widths = {numbers.shape[1] for numbers in values if len(numbers)}
    if len(widths) != 1:
        raise _length_error(widths)
    n_rows = sum(map(len, masks))
    _check_ratio(4 * n_rows * max(widths), path)  # rows without a vector also use memory
    rows = np.full((n_rows, *widths), np.nan, dtype=np.float32)
    end = 0
    for numbers, is_there in zip(values, masks, strict=True):
        start, end = end, end + len(is_there)
        if len(numbers):
            rows[start:end][is_there] = numbers
    note = "" if lists else f"Song names are in column {name_column}, and vectors in {_format_runs(columns)}."
    return np.concatenate(names), rows, note


def _check_table(metadata: Any, path: Path) -> None:
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    chunks = [chunk for group in groups for chunk in map(group.column, range(group.num_columns))]
    n_values = sum(chunk.num_values for chunk in chunks)
    if sum(group.num_rows for group in groups) > _MAX_ROWS or n_values > MAX_NUMBERS:
        raise ValueError(f"it has more than {_MAX_ROWS:,} rows or {MAX_NUMBERS:,} numbers")
    _check_ratio(max(4 * n_values, sum(chunk.total_uncompressed_size for chunk in chunks)), path)


def _format_runs(columns: Sequence[str]) -> str:
    """Format column names; a run of numbered columns is shortened ("d0 to d99"), so that other columns are visible."""
    runs = [list(names) for _, names in groupby(columns, key=lambda name: re.sub(r"\d+$", "", name))]
    texts = [names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}" for names in runs]
    more = len(texts) - _MAX_RUNS
    return ", ".join(texts[:_MAX_RUNS]) + (f" and {more:,} more" if more > 0 else "")


def _to_floats(column: Any) -> Float32Array:
    with np.errstate(over="ignore"):  # numbers too large for float32 become infinite and are reported later
        return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.float32)


def _read_names(pa: Any, column: Any) -> npt.NDArray[Any]:
    if isinstance(column, pa.DictionaryArray) and not _is_number(pa, column.type.value_type):
        known = np.array([*column.dictionary.to_pylist(), None], dtype=object)
        places = column.indices.cast("int64").fill_null(len(known) - 1)
        return np.asarray(known[places.to_numpy()])
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _read_lists(column: Any) -> tuple[npt.NDArray[Any], BoolArray]:
    compute = importlib.import_module("pyarrow.compute")
    is_there = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    lists = column.drop_null()
    lengths = set(compute.list_value_length(lists).to_pylist())
    if len(lengths) > 1:
        raise _length_error(lengths)
    return _to_floats(lists.flatten()).reshape(len(lists), *lengths or (0,)), is_there


def _length_error(lengths: Iterable[int]) -> ValueError:
    numbers = ", ".join(map(str, sorted(lengths))) or "no"
    return ValueError(f"its vectors have {numbers} dimensions; all vectors must have the same number of dimensions")


def _is_number(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _choose(names: Any, known: Sequence[str]) -> str:
    """Return the first of the `known` names that exists, with its original capitalization."""
    spelling = {str(name).lower(): str(name) for name in names}
    for name in known:
        if name in spelling:
            return spelling[name]
    expected = f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
    raise ValueError(f"it must contain {expected}; it contains {_format_runs(list(spelling)) or 'nothing'}")


def _check(label: str, names: npt.NDArray[Any] | None, vectors: npt.NDArray[Any], note: str) -> EmbeddingFile:
    if vectors.dtype.kind not in "fiu":
        raise LibraryError(f"{label}: the vectors have type {vectors.dtype}; they must be numbers.")
    if vectors.ndim != 2 or not vectors.size or vectors.shape[1] > MAX_WIDE or vectors.size > MAX_NUMBERS:
        expected = f"(songs, dimensions), with at most {MAX_WIDE:,} dimensions and {MAX_NUMBERS:,} numbers in total"
        raise LibraryError(f"{label}: the vectors have shape {vectors.shape}; it must be {expected}.")
    if names is not None and names.shape != vectors.shape[:1]:
        raise LibraryError(f"{label}: there are {len(vectors):,} vectors, but the names have shape {names.shape}.")
    keys = None if names is None else _check_names(label, names)
    with np.errstate(over="ignore"):  # numbers too large for float32 become infinite and are reported below
        rows = np.asarray(vectors, dtype=np.float32)
    invalid = _find_problems(rows, keys)
    problems = shorten_problems([problem for _, problem in sorted(invalid.items())])
    if len(invalid) == len(rows):
        raise LibraryError(f"{label}: none of the {len(rows):,} rows can be used. {problems[0]}")
    if keys is None:
        rows[list(invalid)] = np.nan  # a row's position identifies its song, so no row may be removed
    elif invalid:
        valid = [i for i in range(len(rows)) if i not in invalid]
        chosen: Any = [keys[i] for i in valid]
        return EmbeddingFile(chosen, rows[valid], problems, note)
    return EmbeddingFile(keys, rows, problems, note)


def _find_problems(rows: Float32Array, names: list[int] | list[str] | None) -> dict[int, str]:

    def label(i: int) -> str:
        return f"row {i + 1}" if names is None else f"row {i + 1} ({str(names[i])[-80:]!r})"

    finite = np.asarray(np.isfinite(rows).all(axis=1))
    problems = {i: f"{label(i)} contains only zeros." for i in np.flatnonzero(~rows.any(axis=1)).tolist()}
    problems |= {i: f"{label(i)} contains NaN or infinite values." for i in np.flatnonzero(~finite).tolist()}
    seen: set[int | str] = set()
    keys: Sequence[int | str] = names or ()
    for i, name in enumerate(keys):
        if i in problems:
            continue
        if name in ("", -1):
            problems[i] = f"row {i + 1} has no name."
        elif name in seen:
            problems[i] = f"{label(i)} occurs more than once."
        seen.add(name)
    return problems


def _check_names(label: str, names: npt.NDArray[Any]) -> list[int] | list[str]:
    """Return the names as integers or strings; missing names become -1 or ""."""
    if names.dtype.kind in "iu":
        return [int(name) for name in names.tolist()]
    if names.dtype.kind == "f" and np.isfinite(names).any():  # some ids are missing
        return [int(name) if np.isfinite(name) and name == int(name) else -1 for name in names.tolist()]
    texts = [
        n.decode("utf-8", "surrogateescape") if isinstance(n, bytes) else "" if n is None else n for n in names.tolist()
    ]
    if any(not isinstance(text, str) or len(text) > _MAX_NAME for text in texts):
        raise LibraryError(f"{label}: names must be integers, or strings of at most {_MAX_NAME:,} characters.")
    return texts


UNUSED_S = 24 * 3600.0  # seconds (one day) for which unused vectors are kept, because their model may not exist yet
_SHOWN = 20
_HASH_BYTES = 32


@dataclass(frozen=True, slots=True)
class AboutEmbedding:
    key: str  # hash of the names and vectors
    label: str  # name of the imported file
    n_rows: int
    n_dimensions: int
    problems: tuple[str, ...]  # reasons why rows of the file were left out
    note: str = ""  # sentence about the columns used, or about the model that computed the vectors


@dataclass(frozen=True, slots=True)
class Matched:
    song_ids: Int64Array  # (n,), ascending
    rows: Int64Array  # (n,): row of each song's vector
    n_unmatched: int  # number of rows for songs that are not in the library
    unmatched: tuple[str, ...]  # names in the first 20 unmatched rows
    n_double: int  # number of rows for songs that an earlier row already matches


class EmbeddingStore:
    """The imported vectors in a library's ``embeddings`` folder, which are memory-mapped."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self.folder = library.folder / "embeddings"

    def keep(self, path: Path, label: str = "") -> AboutEmbedding:
        """Import a file of vectors atomically; a plain array needs one row per song."""
        file = read_embedding(path, self._library.file_limits)
        names: Sequence[int | str] | None = file.names
        vectors = file.vectors
        if names is None:
            ids = np.sort(self._library.table().ids)
            if len(ids) != len(vectors):
                raise LibraryError(
                    f"{path.name}: a plain array needs one row for each of the {len(ids):,} songs, but this array has "
                    f"{len(vectors):,} rows. Save the vectors with ids or paths as .npz."
                )
            is_valid = np.isfinite(vectors).all(axis=1)
            names = ids[is_valid].tolist()
            vectors = vectors if is_valid.all() else vectors[is_valid]
        return self.keep_vectors(names, vectors, label or path.name, file.problems, file.note)

    def keep_vectors(
        self, names: Sequence[int | str], vectors: Float32Array, label: str, problems: tuple[str, ...] = (),
        note: str = "",
    ) -> AboutEmbedding:  # fmt: skip
        """Save finite, nonzero vectors (n, d) under unique names. Raises StorageError if the disk is full."""
        names_json = json.dumps(list(names))
        digest = hashlib.blake2b(names_json.encode(), digest_size=16)
        digest.update(np.ascontiguousarray(vectors).data.cast("B"))
        about = AboutEmbedding(digest.hexdigest(), label[:120], len(vectors), vectors.shape[1], problems, note)
        folder = self.folder / about.key
        try:
            if self._is_complete(about.key):
                os.utime(folder)  # protects the folder from the next sweep
                return about
            shutil.rmtree(folder, ignore_errors=True)
            with atomic_folder(folder) as temporary:
                _npy.save_array(temporary / "vectors.npy", vectors)
                (temporary / "names.json").write_text(names_json, encoding="utf-8")
                facts = {"format": 1, "label": about.label, "problems": problems, "note": note}
                (temporary / "about.json").write_text(json.dumps(facts), encoding="utf-8")
        except OSError:
            if not self._is_complete(about.key):  # another process may just have written the same file
                raise
        return about

    def _is_complete(self, key: str) -> bool:
        try:
            return bool(self.describe(key) and self._names(key))
        except LibraryError:
            return False

    def describe(self, key: str) -> AboutEmbedding:
        n_rows, n_dimensions = self.vectors(key).shape
        with self._find(key, "about.json") as path:
            facts = json.loads(path.read_text(encoding="utf-8"))
            problems = tuple(facts["problems"])
            return AboutEmbedding(key, facts["label"], n_rows, n_dimensions, problems, facts.get("note", ""))

    def vectors(self, key: str) -> Float32Array:
        """Return the vectors as a float32 memory map (n_rows, n_dimensions). Raises LibraryError if it is damaged."""
        with self._find(key, "vectors.npy") as path:
            array: Float32Array = np.lib.format.open_memmap(path, mode="r")
            if array.ndim != 2 or array.dtype != np.float32:
                raise ValueError(f"vectors.npy contains {array.dtype} of shape {array.shape}")
            return array

    def _names(self, key: str) -> list[int | str]:
        n_rows = len(self.vectors(key))
        with self._find(key, "names.json") as path:
            names: list[int | str] = json.loads(path.read_text(encoding="utf-8"))
            if len(names) != n_rows:
                raise ValueError(f"{len(names)} names for {n_rows} rows")
            return names

    @contextmanager
    def _find(self, key: str, name: str) -> Iterator[Path]:
        """Yield the path of a file; errors during reading are converted to LibraryError."""
        # the key in an imported model can be any string, such as "../.."
        if not (key.isalnum() and (self.folder / key).is_dir()):
            raise NotFoundError("this model's vectors are not in this library. Import the file with the vectors.")
        try:
            yield self.folder / key / name
        except (OSError, ValueError, TypeError, KeyError, AttributeError, tokenize.TokenError) as error:
            raise LibraryError(f"the model's vectors are damaged ({key}/{name}). Import the file again.") from error

    def match(self, key: str) -> Matched:
        """Match vectors to songs by id, by file hash, or by path (absolute, or relative to a library folder)."""
        names = self._names(key)
        song_ids = self._find_songs(names)
        row_of: dict[int, int] = {}
        for row, song_id in enumerate(song_ids):
            if song_id is not None:
                row_of.setdefault(song_id, row)
        unmatched = [str(name) for name, song_id in zip(names, song_ids, strict=True) if song_id is None]
        ids = np.array(sorted(row_of), dtype=np.int64)
        rows = np.array([row_of[i] for i in ids.tolist()], dtype=np.int64)
        n_double = len(names) - len(unmatched) - len(ids)
        return Matched(ids, rows, len(unmatched), tuple(unmatched[:_SHOWN]), n_double)

    def _find_songs(self, names: Sequence[int | str]) -> list[int | None]:
        files = self._library.files.list_known()
        here = {file.song_id for file in files.values()}
        if not any(isinstance(name, str) for name in names):
            return [int(name) if name in here else None for name in names]
        by_hash = {file.content_hash: file.song_id for file in files.values()}
        places = PlaceIndex((path, file.song_id, not file.is_missing) for path, file in files.items())
        roots = [os.fspath(root) for root in self._library.files.roots()]

        def find(name: str) -> int | None:
            paths = (name, *(os.path.join(root, name) for root in roots))
            song_ids = (song_id for path in paths if (song_id := places.find_whole(path)) is not None)
            return by_hash.get(name) or next(song_ids, None)

        return [find(str(name)) for name in names]

    def sweep(self, used: Iterable[str]) -> None:
        """Delete vectors that no model uses, and files left by interrupted writes."""
        keys = set(used)
        for folder in self.folder.iterdir() if self.folder.exists() else ():
            if folder.name not in keys and time.time() - folder.stat().st_mtime > UNUSED_S:
                shutil.rmtree(folder, ignore_errors=True)


class VectorRows:
    """Vectors in an append-only file, keyed by the hash of each song's file; an incomplete last row is overwritten.

    The file is memory-mapped, because 100,000 vectors of MusiCNN take 620 MB.
    """

    def __init__(self, path: Path, width: int) -> None:
        self._path = path
        self._type = np.dtype([("hash", f"S{_HASH_BYTES}"), ("vector", "<f4", (width,))])
        self.row_of = {digest.decode("ascii", "replace"): row for row, digest in enumerate(self._map()["hash"])}

    def _map(self) -> npt.NDArray[Any]:
        n_rows = self._path.stat().st_size // self._type.itemsize if self._path.exists() else 0
        return np.memmap(self._path, self._type, "r", shape=n_rows) if n_rows else np.empty(0, self._type)

    def append(self, digest: str, vector: Float32Array) -> None:
        row = np.array([(digest.encode("ascii"), vector)], self._type)
        n_rows = len(self.row_of)
        with storage.writing_to(self._path):
            self._path.parent.mkdir(exist_ok=True)
            with self._path.open("r+b" if self._path.exists() else "w+b") as stream:
                stream.truncate(n_rows * self._type.itemsize)
                stream.seek(0, os.SEEK_END)
                stream.write(row.tobytes())
        self.row_of[digest] = n_rows

    def select(self, hashes: Iterable[str]) -> tuple[list[str], Float32Array]:
        """Return the hashes that have a vector, and these vectors, float32 (n, width)."""
        known = [digest for digest in hashes if digest in self.row_of]
        return known, self._map()[[self.row_of[digest] for digest in known]]["vector"]

    def last_columns(self, n: int) -> Float32Array:
        """Return the last columns of all vectors, float32 (n_rows, n)."""
        return np.array(self._map()["vector"][:, -n:])
