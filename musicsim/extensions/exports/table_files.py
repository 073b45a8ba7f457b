"""Tables as Parquet, NPZ or CSV files, written in blocks of rows; only one block is in memory at a time.

In Parquet, vectors are lists, and a column whose name contains a dot is a field of a struct. A CSV file has one column
per dimension of a vector (``name_1``, ``name_2`` ...), and escapes strings that spreadsheets would run as formulas.
"""

import csv
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from musicsim.library import atomic_path, protect_cell

TEXT = "text"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: str  # TEXT, or a NumPy dtype
    width: int = 0  # number of dimensions of a vector; 0 for single values


Block = Sequence[npt.NDArray[Any] | Sequence[str | None]]
"""A block of rows, one entry per column: strings, numbers (n_rows,) or vectors (n_rows, width)."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and blocks of rows. The blocks can be iterated over only once."""

    columns: tuple[Column, ...]
    blocks: Iterable[Block]


def write_table(target: Path, table: Table) -> int:
    """Write a table atomically, in the format that the file extension selects; return the number of rows."""
    with atomic_path(target) as temporary:
        return _WRITERS[target.suffix.lower()](temporary, table)


def _write_parquet(path: Path, table: Table) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def to_array(column: Column, values: Any) -> Any:
        if column.kind == TEXT:
            return pa.array([utf8(value) if value else None for value in values], pa.string())
        numbers = np.ascontiguousarray(values, dtype=column.kind)
        if not column.width:
            return pa.array(numbers)
        offsets = np.arange(len(numbers) + 1, dtype=np.int32) * column.width
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(numbers.ravel()))

    def to_batch(block: Block) -> Any:
        arrays: dict[str, Any] = {}
        for column, values in zip(table.columns, block, strict=True):
            name, _, field = column.name.partition(".")
            if field:
                arrays.setdefault(name, {})[field] = to_array(column, values)
            else:
                arrays[name] = to_array(column, values)
        for name, value in arrays.items():
            if isinstance(value, dict):
                arrays[name] = pa.StructArray.from_arrays(list(value.values()), list(value))
        return pa.record_batch(arrays)

    empty: Block = [[] if c.kind == TEXT else np.empty((0, c.width or 1)[: 1 + bool(c.width)]) for c in table.columns]
    n_rows = 0
    with pq.ParquetWriter(path, to_batch(empty).schema, compression="zstd") as writer:
        for block in table.blocks:
            batch = to_batch(block)
            writer.write_batch(batch, row_group_size=max(1, batch.num_rows))
            n_rows += batch.num_rows
    return n_rows


def _write_csv(path: Path, table: Table) -> int:
    numbered = ([f"{c.name}_{i + 1}" for i in range(c.width)] if c.width else [c.name] for c in table.columns)
    n_rows = 0
    with path.open("w", encoding="utf-8", errors="replace", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(name for names in numbered for name in names)
        for block in table.blocks:
            columns = [_cells(column, values) for column, values in zip(table.columns, block, strict=True)]
            for row in zip(*columns, strict=True):
                writer.writerow(cell for cells in row for cell in cells)
                n_rows += 1
    return n_rows


def _cells(column: Column, values: Any) -> list[list[Any]]:
    """Return the cells of each row: escaped strings, and numbers in their shortest exact form (empty for nan)."""
    if column.kind == TEXT:
        return [[protect_cell(value)] for value in values]
    numbers = np.asarray(values, dtype=column.kind)
    texts = numbers.astype(np.str_)
    if numbers.dtype.kind == "f":
        texts[np.isnan(numbers)] = ""
    return [row if column.width else [row] for row in texts.tolist()]


def _write_npz(path: Path, table: Table) -> int:
    with ExitStack() as stack:
        # unnamed files disappear even if the process crashes
        spools = [
            _Spool(column, stack.enter_context(tempfile.TemporaryFile(dir=path.parent))) for column in table.columns
        ]
        for block in table.blocks:
            for spool, values in zip(spools, block, strict=True):
                spool.add(values)
        with zipfile.ZipFile(path, "w") as archive:
            for spool in spools:
                entry = zipfile.ZipInfo(f"{spool.column.name}.npy")
                entry.compress_type = zipfile.ZIP_DEFLATED if spool.column.kind == TEXT else zipfile.ZIP_STORED
                with archive.open(entry, "w", force_zip64=True) as member:
                    spool.save(member)
    return spools[0].n_rows


class _Spool:
    """A column in a temporary file, because the NPY header needs the number of rows and the maximum length."""

    def __init__(self, column: Column, file: IO[bytes]) -> None:
        self.column, self._file = column, file
        self._parts: list[tuple[int, np.dtype[Any]]] = []

    @property
    def n_rows(self) -> int:
        return sum(n for n, _ in self._parts)

    def add(self, values: Any) -> None:
        is_text = self.column.kind == TEXT
        rows = np.array([utf8(v) for v in values], np.str_) if is_text else np.asarray(values, self.column.kind)
        self._file.write(rows.tobytes())
        self._parts.append((len(rows), rows.dtype))

    def save(self, member: IO[bytes]) -> None:
        smallest = np.dtype("U1" if self.column.kind == TEXT else self.column.kind)
        dtype = np.result_type(smallest, *{kind for _, kind in self._parts})
        shape = (self.n_rows, self.column.width) if self.column.width else (self.n_rows,)
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(member, header)
        self._file.seek(0)
        if self.column.kind != TEXT:
            shutil.copyfileobj(self._file, member)
            return
        for n_rows, kind in self._parts:
            rows = np.frombuffer(self._file.read(n_rows * kind.itemsize), kind)
            member.write(rows.astype(dtype).tobytes())


def utf8(value: str | None) -> str:
    """Replace characters that UTF-8 cannot encode; file names can contain any bytes."""
    return (value or "").encode("utf-8", "replace").decode()


_WRITERS: dict[str, Callable[[Path, Table], int]] = {".parquet": _write_parquet, ".npz": _write_npz, ".csv": _write_csv}


def split_into_blocks(rows: Iterable[Sequence[Any]], size: int) -> Iterator[list[list[Any]]]:
    """Group rows of single values into blocks of `size` rows; yield each block as a list of columns."""
    rows = iter(rows)
    while block := list(islice(rows, size)):
        yield [list(column) for column in zip(*block, strict=True)]
