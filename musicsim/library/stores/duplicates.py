"""Pairs of songs with the same sound, found by musicsim and judged by the listener."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from musicsim.library.db import Tables, schema


@dataclass(frozen=True, slots=True)
class SamePair:
    """Two songs with the same sound; the smaller id comes first."""

    first_id: int
    second_id: int
    similarity: float  # agreement of their frames, at most 1
    offset_s: float  # delay of the sound in the second song
    is_same: bool = True  # False if a listener decided that the songs differ


class DuplicateStore(Tables):
    def pairs(self) -> list[SamePair]:
        """Return all pairs, including those that a listener called different."""
        d = schema.duplicates.c
        query = sa.select(d.first_id, d.second_id, d.similarity, d.offset_s, d.is_same)
        return [SamePair(*row) for row in self._rows(query.order_by(d.first_id, d.second_id))]

    def not_compared(self) -> set[int]:
        """Return the ids of songs that have not been compared with the others yet."""
        s = schema.songs.c
        return set(self._values(sa.select(s.id).where(~s.is_compared)))

    def enter(self, pairs: Iterable[SamePair], compared: Iterable[int]) -> None:
        """Add pairs and mark songs as compared; a listener's decisions are not changed."""
        which = schema.songs.c.id == sa.bindparam("which")
        self._write_rows(
            (schema.duplicates.insert().prefix_with("OR IGNORE"), [asdict(pair) for pair in pairs]),
            (schema.songs.update().where(which).values(is_compared=True), [{"which": i} for i in compared]),
        )

    def remove(self, pairs: Iterable[SamePair]) -> None:
        """Delete pairs that turned out to be different recordings."""
        d = schema.duplicates.c
        one = schema.duplicates.delete().where(d.first_id == sa.bindparam("one"), d.second_id == sa.bindparam("other"))
        self._write_rows((one, [{"one": pair.first_id, "other": pair.second_id} for pair in pairs]))

    def judge(self, song_ids: Sequence[int], *, is_same: bool) -> int:
        """Store a listener's decision about all pairs among some songs, and return their number."""
        ids = sorted(set(song_ids))
        d = schema.duplicates.c
        pairs = schema.duplicates.update().where(d.first_id.in_(ids), d.second_id.in_(ids))
        return self._execute(pairs.values(is_same=is_same))
