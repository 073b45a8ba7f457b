"""Cache in memory and in a file for values that take seconds to read. It is updated when the library changes."""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from musicsim.errors import StorageError
from musicsim.library.db.changes import Changes, LoggedRevision, find_changes, read_revision
from musicsim.library.disk.arrays import atomic_path

_log = logging.getLogger(__name__)

T = TypeVar("T")
Arrays = dict[str, npt.NDArray[Any]]

SAVE_INTERVAL = 5_000  # number of changes between two writes of the file: half the size of the change log
_FORMAT = 4


def save_arrays(target: Path, **arrays: Any) -> None:
    with atomic_path(target) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **arrays)


def load_arrays(source: Path) -> Arrays:
    """Return the arrays in a file, keyed by name; empty if the file does not exist."""
    if not source.exists():
        return {}
    with np.load(source, allow_pickle=False) as arrays:
        return dict(arrays)


@dataclass(frozen=True, slots=True)
class Archive(Generic[T]):
    path: Path
    pack: Callable[[T], Mapping[str, npt.NDArray[Any]]]  # converts the value to named arrays
    unpack: Callable[[Arrays], T]
    is_worthwhile: Callable[[T], bool]  # returns True if reading the value takes so long that a file is worthwhile

    def save(self, value: T, revision: LoggedRevision) -> None:
        """Write a value and its revision; do nothing if the file cannot be written."""
        about = np.array(json.dumps([_FORMAT, revision.number, revision.token]))
        with suppress(OSError, StorageError):  # if this fails, the next process reads the database
            save_arrays(self.path, about=about, **self.pack(value))

    def load(self) -> tuple[T, LoggedRevision] | None:
        """Return the value and its revision; None if the file is missing, damaged or in a different format."""
        try:
            arrays = load_arrays(self.path)
            if not arrays:
                return None
            version, number, token = json.loads(str(arrays.pop("about")))
            return (self.unpack(arrays), LoggedRevision(number, token)) if version == _FORMAT else None
        except Exception as error:  # zipfile and numpy raise many kinds of errors for a damaged file
            _log.warning("%s cannot be read and will be rebuilt: %r", self.path, error)
            return None


class CachedValue(Generic[T]):
    """A value read from a database; :meth:`get` updates it with the latest changes. Thread-safe.

    `update` returns the same object if the changes do not affect it, and None if the value must be read again.
    """

    def __init__(
        self,
        engine: sa.Engine,
        read: Callable[[sa.Connection], T],
        update: Callable[[sa.Connection, T, Changes], T | None],
        archive: Archive[T] | None = None,
    ) -> None:
        self._engine, self._read, self._update = engine, read, update
        self._archive = archive
        self._lock = threading.Lock()
        self._cached: tuple[T, LoggedRevision] | None = None
        self._saved: int | None = None  # the revision of the file

    def get(self) -> T:
        with self._lock, self._engine.connect() as connection:
            revision = read_revision(connection)  # begins the transaction, so that everything below is consistent
            cached = self._cached
            if cached is None and self._archive:
                cached = self._archive.load()
                self._saved = cached[1].number if cached else None
            value = self._refresh(connection, *cached, revision) if cached else None
            if value is None:
                value = self._read(connection)
                self._saved = None
            self._cached = value, revision
            is_due = self._saved is None or revision.number - self._saved >= SAVE_INTERVAL
            if self._archive and is_due and revision.token and self._archive.is_worthwhile(value):
                self._archive.save(value, revision)
                self._saved = revision.number
        return value

    def _refresh(self, connection: sa.Connection, value: T, old: LoggedRevision, new: LoggedRevision) -> T | None:
        if old == new:
            return value
        changes = find_changes(connection, old)
        return None if changes is None else self._update(connection, value, changes)
