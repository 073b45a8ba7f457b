"""The songs of a library as columns, and which of them hold the same sound: read once, kept up with its changes."""

from collections.abc import Iterable
from pathlib import Path

import sqlalchemy as sa

from musicsim.library.db import schema
from musicsim.library.db.cache import Archive, Kept
from musicsim.library.db.changes import ChangeLog, Changes
from musicsim.library.db.columns import SongTable, read_table
from musicsim.library.db.database import Tables, Write
from musicsim.library.stores.duplicates import DuplicateStore, SamePair

_MIN_KEPT = 50_000  # songs: fewer are read in less than half a second


class SongTables(Tables):
    """What is held of all songs of one library.

    Asking again costs next to nothing, and gives the very same object where no change concerns it. From 50,000 songs
    on the columns are kept in a file, too: read from the database they take 9 s for a million songs, from the file
    half a second.
    """

    def __init__(self, file: Path, engine: sa.Engine, write: Write, log: ChangeLog, duplicates: DuplicateStore) -> None:
        super().__init__(engine, write)
        self._duplicates = duplicates
        archive = Archive(file, SongTable.to_arrays, SongTable.from_arrays, lambda table: len(table.ids) >= _MIN_KEPT)
        self._table = Kept(engine, log, _read_table, _update_table, archive)
        self._pairs = Kept(engine, log, lambda _: duplicates.pairs(), self._update_pairs)
        self._known: tuple[SongTable, int] | None = None

    def songs(self) -> SongTable:
        """Every song that has a file; 0.2 kB each."""
        return self._table.get()

    def same_pairs(self) -> list[SamePair]:
        """Pairs of songs with the same sound; another list as soon as one of their songs changes."""
        return self._pairs.get()

    def n_missing(self) -> int:
        """Songs without a file."""
        table, held = self.songs(), self._known
        if held is None or held[0] is not table:  # every page asks, and to count a million takes a while
            n_known = self._value(sa.select(sa.func.count()).select_from(schema.songs))
            held = self._known = table, n_known or 0
        return max(0, held[1] - len(table.ids))

    def _update_pairs(
        self, _connection: sa.Connection, known: list[SamePair], changes: Changes
    ) -> list[SamePair] | None:
        if not changes.songs:
            return known if changes.songs is not None else None
        pairs = self._duplicates.pairs()
        paired = {i for pair in pairs for i in (pair.first_id, pair.second_id)}
        return known if pairs == known and changes.songs.isdisjoint(paired) else pairs


def _read_table(connection: sa.Connection, ids: Iterable[int] | None = None) -> SongTable:
    return read_table(connection, connection.scalars(sa.select(schema.roots.c.path)).all(), ids)


def _update_table(connection: sa.Connection, table: SongTable, changes: Changes) -> SongTable | None:
    if not changes.songs:
        return table if changes.songs is not None else None
    return table.replaced(changes.songs, _read_table(connection, changes.songs))
