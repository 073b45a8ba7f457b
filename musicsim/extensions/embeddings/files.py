"""Files of vectors that other programs made: ``.npz``, ``.npy`` and ``.parquet``, one vector a song.

What is read:

- ``.npz``: an array `vectors` (n, d), and `ids`, `paths` or `hashes` (n,), which say whose they are;
- ``.npy``: a structured array with a field `vector` and one of `id`, `path`, `hash`; or a plain array (n, d) of
  numbers, whose rows are the songs of the library by rising id;
- ``.parquet``: a column `id`, `path` or `hash`, and either one column of lists of numbers or a column a dimension.

Whole numbers as names are song ids; text is the hash of a file's bytes, or a path. A file is looked at before it is
believed: nothing is unpickled, and the sizes that it claims are checked, also against its own, before memory is taken
for them.
"""

import importlib
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Float32Array
from musicsim.errors import LibraryError
from musicsim.library.disk.archives import in_short
from musicsim.library.disk.csv_cells import shortened
from musicsim.library.disk.npy_headers import read_header

ENDINGS = (".npz", ".npy", ".parquet")
_VECTORS = ("vectors", "vector", "embeddings", "embedding")
_NAMES = ("ids", "id", "song_ids", "song_id", "paths", "path", "files", "file", "hashes", "hash", "content_hash")
_MAX_NUMBERS = 2**29  # 2 GB as float32: a million songs of 512 numbers
_MAX_BYTES = 2**32  # of one array: as many numbers as float64
_MAX_ROWS = 2**22
_MAX_RATIO = 100  # of bytes in memory to bytes of the file: numbers hardly pack, a bomb packs a thousandfold
_ALWAYS_READ = 2**26  # bytes in memory that no file is too small for
MAX_WIDE = 4_096
_MAX_NAME = 4_096
_BATCH = 4_096  # rows of a parquet file at a time
_MAX_RUNS = 8  # of columns that are named


@dataclass(frozen=True, slots=True)
class EmbeddingFile:
    """What a file of vectors says."""

    # a song id, or a hash or path, for each vector; None where the rows are the songs by rising id
    names: list[int] | list[str] | None
    vectors: Float32Array  # (n, d): finite, and none of them 0
    # why rows were left out, a sentence each; the first 20, and how many more there are
    problems: tuple[str, ...]
    # one sentence on which columns of a table were taken as names and numbers; empty where none had to be
    # chosen
    note: str = ""


def read_embedding(path: Path) -> EmbeddingFile:
    """Read a file of vectors; its ending, one of :data:`ENDINGS`, says how.

    Rows with NaN, infinite values or nothing but 0, rows without a name, and all but the first of the same name are
    left out and told.

    Raises LibraryError if the file cannot be read as what its ending says, holds no vectors or objects in place of
    numbers, is larger than 2 GB of numbers or a hundred times its own size, or no row of it can be used.
    """
    read = {".npz": _from_npz, ".npy": _from_npy, ".parquet": _from_parquet}.get(path.suffix.lower())
    if read is None:
        raise LibraryError(f"{path.name}: vectors are read from {', '.join(ENDINGS)} files, not from this one.")
    try:
        if read is _from_parquet:
            _read_apart(path)
        names, vectors, note = read(path)
    except OSError as error:
        raise LibraryError(f"{path.name}: it cannot be read ({in_short(error.strerror or error)}).") from error
    except (ValueError, TypeError, KeyError, EOFError, MemoryError, RuntimeError) as error:
        # those of pyarrow are of these kinds
        raise LibraryError(f"{path.name}: no vectors can be read from this file ({in_short(error)}).") from error
    except (zipfile.BadZipFile, zlib.error) as error:
        raise LibraryError(f"{path.name}: it is not an .npz file, or a damaged one ({in_short(error)}).") from error
    return _checked(path.name, names, vectors, note)


# --- by kind --------------------------------------------------------------------------------------


_Read = tuple[npt.NDArray[Any] | None, npt.NDArray[Any], str]


def _from_npz(path: Path) -> _Read:
    with zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        wanted = {what: _one(members, known) for what, known in (("vectors", _VECTORS), ("names", _NAMES))}
        found = {}
        for name in wanted.values():
            if members[name].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"{name} is packed in a way that numpy does not use")
            with archive.open(members[name]) as stream:
                _check_header(stream, members[name].file_size)
        _check_ratio(sum(members[name].file_size for name in wanted.values()), path)
        for what, name in wanted.items():
            with archive.open(members[name]) as stream:
                found[what] = np.lib.format.read_array(stream, allow_pickle=False)
    return found["names"], found["vectors"], ""


def _from_npy(path: Path) -> _Read:
    with path.open("rb") as stream:
        _check_header(stream, path.stat().st_size)
    array = np.load(path, allow_pickle=False)
    if array.dtype.names is None:
        return None, array, ""
    return array[_one(array.dtype.names, _NAMES)], array[_one(array.dtype.names, _VECTORS)], ""


def _check_header(stream: IO[bytes], n_bytes: int) -> None:
    """Refuse a stored array that says that it is more than there is of it, before memory is taken for it."""
    header = read_header(stream, n_bytes)
    if header.size > _MAX_NUMBERS or n_bytes > _MAX_BYTES or (header.shape and header.shape[0] > _MAX_ROWS):
        raise ValueError(
            f"an array is larger than {_MAX_ROWS:,} rows, {_MAX_NUMBERS:,} numbers or {_MAX_BYTES / 2**30:g} GB"
        )


def _check_ratio(n_bytes: int, path: Path) -> None:
    """Refuse what would take far more memory than its file has bytes."""
    if n_bytes > max(_ALWAYS_READ, _MAX_RATIO * path.stat().st_size):
        raise ValueError(
            f"it would unpack to {n_bytes >> 20:,} MB, {_MAX_RATIO} times its size or more, as no vectors do; "
            "if they are vectors, save them as .npy"
        )


def _read_apart(path: Path) -> None:
    """Read a table in a process of its own first: at some that are damaged, pyarrow ends the process that reads them.

    Raises ValueError where it does.
    """
    read = f"import pathlib, sys, {__name__} as files; files._from_parquet(pathlib.Path(sys.argv[1]))"
    package = Path(__file__).parents[3]  # where a checkout that is not installed is found
    command = [sys.executable, "-c", read, str(path.absolute())]
    done = subprocess.run(command, cwd=package, capture_output=True, check=False)
    if done.returncode < 0:
        raise ValueError("it is damaged, so that the program that reads it crashes")


def _from_parquet(path: Path) -> _Read:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
        pa = importlib.import_module("pyarrow")
    except ImportError as error:
        raise ValueError("pyarrow is needed for it: python -m pip install pyarrow") from error
    schema = parquet.read_schema(path)
    kinds = {name: schema.field(name).type for name in schema.names}
    by = _one(kinds, _NAMES)
    lists = [name for name, kind in kinds.items() if pa.types.is_nested(kind)]
    if len(lists) > 1:
        lists = [_one(lists, _VECTORS)]
    # the last is how pandas writes an index
    alone = [n for n, kind in kinds.items() if n != by and _is_number(pa, kind) and not n.startswith("__index_")]
    columns = lists or alone
    if not columns:
        raise ValueError("it has neither a column of lists nor columns of numbers")
    names, values, has_one = [], [], []
    # names stay what they are packed as: a long one may stand there a million times
    with parquet.ParquetFile(path, read_dictionary=[by]) as file:
        _check_table(file.metadata, path)
        for batch in file.iter_batches(_BATCH, columns=[by, *columns]):
            numbers, is_there = _of_lists(batch.column(columns[0])) if lists else _of_columns(batch, columns)
            names.append(_of_names(pa, batch.column(by)))
            values.append(numbers)
            has_one.append(is_there)
    widths = {numbers.shape[1] for numbers in values if len(numbers)}
    if len(widths) != 1:
        raise ValueError(f"its vectors are of {_listed(widths) or 'no'} numbers; they should be of one length")
    n_rows = sum(map(len, has_one))
    _check_ratio(4 * n_rows * max(widths), path)  # rows without a vector take a place, too
    rows = np.full((n_rows, *widths), np.nan, dtype=np.float32)
    end = 0
    for numbers, is_there in zip(values, has_one, strict=True):
        start, end = end, end + len(is_there)
        if len(numbers):
            rows[start:end][is_there] = numbers
    note = "" if lists else f"Songs are named by the column {by}, their numbers are {_runs(columns)}."
    return np.concatenate(names), rows, note


def _check_table(about: Any, path: Path) -> None:
    """Refuse a table by what it says of itself, before anything of it is read."""
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    chunks = [chunk for group in groups for chunk in map(group.column, range(group.num_columns))]
    n_values = sum(chunk.num_values for chunk in chunks)
    if sum(group.num_rows for group in groups) > _MAX_ROWS or n_values > _MAX_NUMBERS:
        raise ValueError(f"it holds more than {_MAX_ROWS:,} rows or {_MAX_NUMBERS:,} numbers")
    _check_ratio(max(4 * n_values, sum(chunk.total_uncompressed_size for chunk in chunks)), path)


def _runs(columns: Sequence[str]) -> str:
    """Names of columns, those that differ in the number at their end as one run: what is no dimension stands out."""
    runs: list[tuple[str, list[str]]] = []
    for name in columns:
        stem = re.sub(r"\d+$", "", name)
        if not runs or runs[-1][0] != stem:
            runs.append((stem, []))
        runs[-1][1].append(name)
    said = [names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}" for _, names in runs]
    more = len(said) - _MAX_RUNS
    return ", ".join(said[:_MAX_RUNS]) + (f" and {more:,} more" if more > 0 else "")


def _of_columns(batch: Any, columns: Sequence[str]) -> tuple[npt.NDArray[Any], BoolArray]:
    """A vector a row, a column a number."""
    numbers = [_floats(batch.column(name)) for name in columns]
    return np.stack(numbers, axis=1), np.ones(len(batch), dtype=np.bool_)


def _floats(column: Any) -> Float32Array:
    with np.errstate(over="ignore"):  # what is too large for float32 is infinite there, and told
        return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.float32)


def _of_names(pa: Any, column: Any) -> npt.NDArray[Any]:
    if isinstance(column, pa.DictionaryArray) and not _is_number(pa, column.type.value_type):
        known = np.array([*column.dictionary.to_pylist(), None], dtype=object)
        places = column.indices.cast("int64").fill_null(len(known) - 1)
        return np.asarray(known[places.to_numpy()])
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _of_lists(column: Any) -> tuple[npt.NDArray[Any], BoolArray]:
    """The vectors of rows that have one, and which do."""
    compute = importlib.import_module("pyarrow.compute")
    is_there = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    kept = column.drop_null()
    lengths = set(compute.list_value_length(kept).to_pylist())
    if len(lengths) > 1:
        raise ValueError(f"its vectors are of {_listed(lengths)} numbers; they should be of one length")
    return _floats(kept.flatten()).reshape(len(kept), *lengths or (0,)), is_there


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _is_number(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _one(there: Any, known: Sequence[str]) -> str:
    """The first known name among those that are there."""
    of = {str(name).lower(): str(name) for name in there}
    for name in known:
        if name in of:
            return of[name]
    raise ValueError(
        f"it lacks {', '.join(repr(n) for n in known[:-1])} or {known[-1]!r}; it has {_runs(list(of)) or 'nothing'}"
    )


# --- checks ---------------------------------------------------------------------------------------


def _checked(label: str, names: npt.NDArray[Any] | None, vectors: npt.NDArray[Any], note: str) -> EmbeddingFile:
    if vectors.dtype.kind not in "fiu":
        raise LibraryError(f"{label}: its vectors are of type {vectors.dtype}; they should be numbers.")
    if vectors.ndim != 2 or not vectors.size or vectors.shape[1] > MAX_WIDE or vectors.size > _MAX_NUMBERS:
        raise LibraryError(
            f"{label}: its vectors have the shape {vectors.shape}; it should be (songs, numbers), with at most "
            f"{MAX_WIDE:,} numbers a song and {_MAX_NUMBERS:,} in all."
        )
    if names is not None and names.shape != vectors.shape[:1]:
        raise LibraryError(f"{label}: it has {names.shape} names for {len(vectors):,} vectors; a name each is needed.")
    called = None if names is None else _called(label, names)
    with np.errstate(over="ignore"):  # what is too large for float32 is infinite there, and told
        rows = np.asarray(vectors, dtype=np.float32)
    wrong = _wrong(rows, called)
    problems = shortened([what for _, what in sorted(wrong.items())])
    if len(wrong) == len(rows):
        raise LibraryError(f"{label}: none of its {len(rows):,} rows can be used. {problems[0]}")
    if called is None:
        # rows are of songs by their place: none may go
        rows[list(wrong)] = np.nan
        return EmbeddingFile(None, rows, problems, note)
    if not wrong:  # without a copy
        return EmbeddingFile(called, rows, problems, note)
    good = [i for i in range(len(rows)) if i not in wrong]
    chosen: Any = [called[i] for i in good]
    return EmbeddingFile(chosen, rows[good], problems, note)


def _wrong(rows: Float32Array, called: list[int] | list[str] | None) -> dict[int, str]:
    """What is wrong with rows, a sentence each, by their number."""

    def row(i: int) -> str:
        return f"row {i + 1}" if called is None else f"row {i + 1} ({str(called[i])[-80:]!r})"

    finite = np.asarray(np.isfinite(rows).all(axis=1))
    wrong = {i: f"{row(i)} is 0 throughout." for i in np.flatnonzero(~rows.any(axis=1)).tolist()}
    wrong |= {i: f"{row(i)} holds NaN or infinite values." for i in np.flatnonzero(~finite).tolist()}
    seen: set[int | str] = set()
    names: Sequence[int | str] = called or ()
    for i, name in enumerate(names):
        if i in wrong:
            continue
        if name in ("", -1):
            wrong[i] = f"row {i + 1} has no name."
        elif name in seen:
            wrong[i] = f"{row(i)} comes more than once."
        seen.add(name)
    return wrong


def _called(label: str, names: npt.NDArray[Any]) -> list[int] | list[str]:
    """Names as whole numbers or text; -1 or nothing where there is none."""
    if names.dtype.kind in "iu":
        return [int(name) for name in names.tolist()]
    if names.dtype.kind == "f" and np.isfinite(names).any():  # ids, of which some are missing
        return [int(name) if np.isfinite(name) and name == int(name) else -1 for name in names.tolist()]
    texts = [_text(name) for name in names.tolist()]
    if any(text is None or len(text) > _MAX_NAME for text in texts):
        raise LibraryError(f"{label}: names should be whole numbers or text of at most {_MAX_NAME:,} letters.")
    return [text or "" for text in texts]


def _text(name: object) -> str | None:
    if isinstance(name, bytes):
        return name.decode("utf-8", "surrogateescape")
    return "" if name is None else name if isinstance(name, str) else None
