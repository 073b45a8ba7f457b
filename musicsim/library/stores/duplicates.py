"""Pairs of songs that hold the same sound: found by the program, judged by the listener."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from musicsim.library.db import schema
from musicsim.library.db.database import Tables


@dataclass(frozen=True, slots=True)
class SamePair:
    """Two songs that hold the same sound."""

    # song ids, the smaller one first
    first_id: int
    second_id: int
    similarity: float  # agreement of their frames, at most 1
    offset_s: float  # how much later the sound begins in the second one
    is_same: bool = True  # False when a listener said that these are two songs


class DuplicateStore(Tables):
    """What is known of songs with the same sound in one library."""

    def pairs(self) -> list[SamePair]:
        """All pairs that were found, those that a listener has parted among them."""
        d = schema.duplicates.c
        query = sa.select(d.first_id, d.second_id, d.similarity, d.offset_s, d.is_same)
        return [SamePair(*row) for row in self._rows(query.order_by(d.first_id, d.second_id))]

    def not_compared(self) -> set[int]:
        """Ids of songs that have not been compared with the others yet."""
        s = schema.songs.c
        return set(self._values(sa.select(s.id).where(~s.is_compared)))

    def enter(self, pairs: Iterable[SamePair], compared: Iterable[int]) -> None:
        """Add pairs and note which songs were compared; what a listener has judged stays."""
        rows = [asdict(pair) for pair in pairs]
        done = [{"which": song_id} for song_id in compared]
        which = schema.songs.c.id == sa.bindparam("which")
        self._write_rows(
            (schema.duplicates.insert().prefix_with("OR IGNORE"), rows),
            (schema.songs.update().where(which).values(is_compared=True), done),
        )

    def judge(self, song_ids: Sequence[int], *, is_same: bool) -> int:
        """Say of some songs that every pair found among them is the same song, or is not; how many pairs these are."""
        ids = sorted(set(song_ids))
        d = schema.duplicates.c
        among = schema.duplicates.update().where(d.first_id.in_(ids), d.second_id.in_(ids))
        with self._write() as connection:
            return connection.execute(among.values(is_same=is_same)).rowcount
