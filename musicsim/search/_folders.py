"""Folders that hold an index, and their metadata."""

import errno
import json
import shutil
import tempfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile

import numpy as np

from musicsim._arrays import Float32Array

_META_FILE = "index.json"
# Errors raised when a damaged index is read; numpy parses a file header as Python code.
_UNREADABLE = (OSError, EOFError, KeyError, IndexError, TypeError, ValueError, BadZipFile, TokenError, SyntaxError)


@contextmanager
def replace_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces `target` on success; `target` must be an index, empty or missing."""
    is_replaceable = target.is_dir() and ((target / _META_FILE).exists() or not any(target.iterdir()))
    if target.exists() and not is_replaceable:
        raise FileExistsError(errno.EEXIST, "this is not an index; choose a separate folder for the index", str(target))
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    try:
        new, old = temporary / "new", temporary / "old"
        new.mkdir()
        yield new
        if target.exists():
            target.replace(old)
        try:
            new.replace(target)
        except OSError:
            if old.exists():
                old.replace(target)
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def report_damage(folder: Path) -> Iterator[None]:
    """Turn any error raised while a damaged index is read into a ValueError that names the folder."""
    try:
        yield
    except _UNREADABLE as error:
        raise ValueError(f"The index in {folder} is damaged or has a different version; rebuild it.") from error


def read_meta(folder: Path, names: Collection[str]) -> dict[str, Any]:
    """Return the metadata of an index; raise ValueError if one of `names` is missing or a number is not valid."""
    content = (folder / _META_FILE).read_bytes()
    with report_damage(folder):
        meta = json.loads(content)
        if not isinstance(meta, dict) or not set(names) <= meta.keys():
            raise ValueError("The metadata is incomplete.")
        n_rows, n_columns = meta.get("shape", [0, 0])
        if not all(type(n) is int and n >= 0 for n in (n_rows, n_columns, meta.get("built", 0))):
            raise ValueError("The number of rows or columns is not valid.")
    return meta


def read_index_kind(folder: Path) -> str:
    """Return the class name of the index in a folder; raises the same errors as :func:`read_meta`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from musicsim.search import PartitionIndex, read_index_kind
    >>> X = np.random.default_rng(0).normal(size=(2000, 8)).astype(np.float32)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     PartitionIndex(random_state=0).fit(X).save(Path(folder) / "index")
    ...     print(read_index_kind(Path(folder) / "index"))
    ...
    PartitionIndex
    """
    return str(read_meta(folder, ("kind",))["kind"])


def write_meta(folder: Path, meta: dict[str, Any]) -> None:
    """Write the metadata that :func:`read_meta` reads. Options may be numpy numbers."""
    (folder / _META_FILE).write_text(json.dumps(meta, default=lambda n: n.item()), encoding="utf-8")


def fingerprint(X: Float32Array) -> int:
    """Return a checksum of 64 evenly spaced rows."""
    chosen = np.linspace(0, len(X) - 1, 64).astype(np.int64) if len(X) else np.empty(0, np.int64)
    return zlib.crc32(np.ascontiguousarray(X[chosen]).tobytes(), len(X))
