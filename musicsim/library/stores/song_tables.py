"""A library's songs as columns, and its pairs of songs with the same sound: read once, then updated."""

from collections.abc import Iterable
from pathlib import Path

import sqlalchemy as sa

from musicsim.library.db import Archive, CachedValue, Changes, SongTable, Tables, Write, read_table, schema
from musicsim.library.stores.duplicates import DuplicateStore, SamePair

MIN_ARCHIVED = 50_000  # minimum number of songs for a cache file; reading fewer takes less than half a second


class SongTables(Tables):
    """Data about all songs in one library, in memory; methods return the same object until a change affects it."""

    def __init__(self, file: Path, engine: sa.Engine, write: Write, duplicates: DuplicateStore) -> None:
        super().__init__(engine, write)
        self._duplicates = duplicates
        archive = Archive(
            file, SongTable.to_arrays, SongTable.from_arrays, lambda table: len(table.ids) >= MIN_ARCHIVED
        )
        self._table = CachedValue(engine, _read_table, _update_table, archive)
        self._pairs = CachedValue(engine, lambda _: duplicates.pairs(), self._update_pairs)
        self._count: tuple[SongTable, int] | None = None

    def songs(self) -> SongTable:
        return self._table.get()

    def same_pairs(self) -> list[SamePair]:
        return self._pairs.get()

    def n_missing(self) -> int:
        table, count = self.songs(), self._count
        if count is None or count[0] is not table:  # every page needs it, and counting a million songs takes a while
            n_songs = self._value(sa.select(sa.func.count()).select_from(schema.songs))
            count = self._count = table, n_songs or 0
        return max(0, count[1] - len(table.ids))

    def _update_pairs(self, _connection: sa.Connection, old: list[SamePair], changes: Changes) -> list[SamePair] | None:
        if not changes.songs:
            return old if changes.songs is not None else None
        pairs = self._duplicates.pairs()
        paired = {i for pair in pairs for i in (pair.first_id, pair.second_id)}
        return old if pairs == old and changes.songs.isdisjoint(paired) else pairs


def _read_table(connection: sa.Connection, ids: Iterable[int] | None = None) -> SongTable:
    return read_table(connection, connection.scalars(sa.select(schema.roots.c.path)).all(), ids)


def _update_table(connection: sa.Connection, table: SongTable, changes: Changes) -> SongTable | None:
    if not changes.songs:
        return table if changes.songs is not None else None
    return table.replace_songs(changes.songs, _read_table(connection, changes.songs))
