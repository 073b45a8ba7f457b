"""Folders that hold an index and are replaced whole, its metadata, and the rows it was made of."""

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
import numpy.typing as npt

from musicsim._arrays import Float32Array
from musicsim.search._rows import checked

META_FILE = "index.json"
DAMAGED = "The index in {} is damaged or of another version: build it again."
UNREADABLE = (OSError, EOFError, KeyError, IndexError, TypeError, ValueError, BadZipFile, TokenError, SyntaxError)
"""What reading a damaged index may raise; numpy reads the header of a file as Python."""


@contextmanager
def replaced(target: Path) -> Iterator[Path]:
    """Give a temporary folder to write into, which takes the place of `target` once that went well.

    The target's parent has to exist. Raises FileExistsError if something else than an index or an empty folder is
    there.
    """
    if target.exists() and not _is_replaceable(target):
        raise FileExistsError(
            errno.EEXIST, "something else than an index is there; name a folder of its own", str(target)
        )
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    try:
        written = temporary / "new"
        written.mkdir()
        yield written
        if target.exists():
            target.replace(temporary / "old")
        try:
            written.replace(target)
        except OSError:
            if (temporary / "old").exists():
                (temporary / "old").replace(target)
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _is_replaceable(target: Path) -> bool:
    return target.is_dir() and ((target / META_FILE).exists() or not any(target.iterdir()))


def read_meta(folder: Path, names: Collection[str]) -> dict[str, Any]:
    """Metadata of an index.

    Raises ValueError if it does not say what `names` ask for; FileNotFoundError if there is none.
    """
    try:
        meta = json.loads((folder / META_FILE).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(DAMAGED.format(folder)) from error
    if not isinstance(meta, dict) or not set(names) <= meta.keys() or not _counts(meta):
        raise ValueError(DAMAGED.format(folder))
    return meta


def _counts(meta: dict[str, Any]) -> bool:
    """Whether what should be numbers of rows and columns are such."""
    shape, built = meta.get("shape", [0, 0]), meta.get("built", 0)
    if not isinstance(shape, list) or len(shape) != 2:
        return False
    return all(type(n) is int and n >= 0 for n in (*shape, built))


def made_of(folder: Path, kind: str, names: Collection[str], X: npt.ArrayLike) -> tuple[dict[str, Any], Float32Array]:
    """Metadata of an index of some rows, and these rows, checked; there may be more at their end.

    `kind` is the class whose index it should be; `names` are as of :func:`read_meta`, "shape" and "fingerprint" among
    them.

    Raises ValueError if it is damaged, of another kind or version, or X does not begin with the rows it was made of;
    FileNotFoundError if there is none.
    """
    meta = read_meta(folder, names)
    if meta["kind"] != kind:
        raise ValueError(f"{folder} holds a {meta['kind']}, not a {kind}.")
    n, width = meta["shape"]
    rows = checked(X, "X", first=n)
    if rows.shape[1] != width or len(rows) < n or fingerprint(rows[:n]) != meta["fingerprint"]:
        raise ValueError(f"the index in {folder} was made of other rows: build it again.")
    return meta, rows


def kind_of_index(folder: Path) -> str:
    """The name of the class whose index a folder holds; raises as :func:`read_meta`."""
    return str(read_meta(folder, ("kind",))["kind"])


def write_meta(folder: Path, meta: dict[str, Any]) -> None:
    """Write what :func:`read_meta` reads; options may be numbers of numpy."""
    (folder / META_FILE).write_text(json.dumps(meta, default=lambda n: n.item()), encoding="utf-8")


def fingerprint(X: Float32Array) -> int:
    """A number that other rows will not have: of 64 rows spread over all."""
    chosen = np.linspace(0, len(X) - 1, 64).astype(np.int64) if len(X) else np.empty(0, np.int64)
    return zlib.crc32(np.ascontiguousarray(X[chosen]).tobytes(), len(X))
