"""Values that take seconds to read: kept in memory and in a file for as long as what they say holds."""

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from musicsim.errors import StorageError
from musicsim.library.db.changes import NOTHING, ChangeLog, Changes, Moment
from musicsim.library.disk.arrays import atomic_path

_log = logging.getLogger(__name__)

T = TypeVar("T")
Arrays = dict[str, npt.NDArray[Any]]

_SAVED_EVERY = 5_000  # changes, after which the file is written again: half of what is remembered of them
_FORMAT = 2


def save_arrays(target: Path, **arrays: Any) -> None:
    """Write arrays to a file whole."""
    with atomic_path(target) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **arrays)


def load_arrays(source: Path) -> Arrays:
    """Arrays of a file by name; empty where there is no file."""
    if not source.exists():
        return {}
    with np.load(source, allow_pickle=False) as stored:
        return dict(stored)


@dataclass(frozen=True, slots=True)
class Archive(Generic[T]):
    """The file of a kept value."""

    path: Path
    pack: Callable[[T], Mapping[str, npt.NDArray[Any]]]  # callable of the value: arrays by name
    unpack: Callable[[Arrays], T]  # callable of such arrays
    # callable of the value: whether reading it takes so long that a file is worth its room
    is_worth: Callable[[T], bool]

    def save(self, value: T, moment: Moment) -> None:
        """Write a value as it was at a moment, unless the folder cannot be written to."""
        about = np.array(json.dumps([_FORMAT, moment.revision, moment.mark]))
        try:
            save_arrays(self.path, about=about, **self.pack(value))
        except (OSError, StorageError):  # it is read from the database again then
            return

    def load(self) -> tuple[T, Moment] | None:
        """The value and its moment; None where there is no file, or none that this program reads."""
        try:
            arrays = load_arrays(self.path)
            if not arrays:
                return None
            version, revision, mark = json.loads(str(arrays.pop("about")))
            return (self.unpack(arrays), Moment(revision, mark)) if version == _FORMAT else None
        except Exception as error:  # zipfile and numpy raise nearly anything at a damaged file
            _log.warning("%s cannot be read and is rebuilt: %r", self.path, error)
            return None


class Kept(Generic[T]):
    """A value read from a library's database, and brought up to date with its changes on each :meth:`get`.

    `read` makes the value from nothing. `update` returns it after some changes: the same object if they do not concern
    it, None to read it again. `archive` keeps it for the next process. Safe in several threads.
    """

    def __init__(
        self,
        engine: sa.Engine,
        log: ChangeLog,
        read: Callable[[sa.Connection], T],
        update: Callable[[sa.Connection, T, Changes], T | None],
        archive: Archive[T] | None = None,
    ) -> None:
        self._engine, self._log, self._read, self._update = engine, log, read, update
        self._archive = archive
        self._lock = threading.Lock()
        self._held: tuple[T, Moment] | None = None
        self._saved: int | None = None  # the revision of the file

    def get(self) -> T:
        """The value as it stands."""
        with self._lock, self._engine.connect() as connection:
            now = self._log.now(connection)  # the transaction begins here: what is read below is of one state
            held = self._held or self._from_file()
            value = self._brought_up(connection, *held, now) if held else None
            if value is None:
                value = self._read(connection)
                self._saved = None
            self._held = value, now
            is_due = self._saved is None or now.revision - self._saved >= _SAVED_EVERY
            if self._archive and is_due and now.mark and self._archive.is_worth(value):
                self._archive.save(value, now)
                self._saved = now.revision
        return value

    def _brought_up(self, connection: sa.Connection, value: T, then: Moment, now: Moment) -> T | None:
        changes = NOTHING if then == now else self._log.since(connection, then)
        if changes is None or changes == NOTHING:
            return value if changes else None
        return self._update(connection, value, changes)

    def _from_file(self) -> tuple[T, Moment] | None:
        held = self._archive.load() if self._archive else None
        self._saved = held[1].revision if held else None
        return held
