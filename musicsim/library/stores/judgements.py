"""Which answers to a search listeners said to be like the song they searched with, or not: kept to learn from."""

import time
from collections.abc import Mapping

import sqlalchemy as sa

from musicsim.errors import NotFoundError
from musicsim.library.db import schema
from musicsim.library.stores.opinions import OpinionStore


class JudgementStore(OpinionStore):
    """Judgements of the songs of one library, as answers to one another."""

    newest = schema.judgements.c.created_at

    def keep(self, query_id: int, judged: Mapping[int, int]) -> None:
        """Keep what was said of answers to a song, in the place of what was kept of it before.

        1 for a song that is like it, -1 for one that is not, by song id; empty to forget them.

        Raises ValueError if a song is judged as an answer to itself, or by another number; NotFoundError if a song is
        not in the library, and nothing is written then.
        """
        for song_id, value in judged.items():
            if song_id == query_id or value not in (-1, 1):
                raise ValueError(
                    f"judged={{{song_id}: {value}}}: another song should be judged, and by 1 or -1."
                )
        j = schema.judgements
        now = time.time()
        rows = [
            {"query_id": query_id, "song_id": song_id, "value": value, "created_at": now + 1e-6 * place}
            for place, (song_id, value) in enumerate(judged.items())  # microseconds tell their order
        ]
        try:
            with self._write() as connection:
                connection.execute(j.delete().where(j.c.query_id == query_id))
                if rows:
                    connection.execute(j.insert(), rows)
        except sa.exc.IntegrityError as error:
            raise NotFoundError(
                "a song that was judged, or searched with, is no longer in the library. Search again."
            ) from error

    def of(self, query_id: int) -> dict[int, int]:
        """What is kept of answers to a song: 1 or -1 by song id, in the order in which it was said."""
        j = schema.judgements.c
        query = sa.select(j.song_id, j.value).where(j.query_id == query_id).order_by(j.created_at)
        return {row.song_id: row.value for row in self._rows(query)}

    def all(self) -> list[tuple[int, int, int]]:
        """What is kept of all songs, the newest last: the song that was searched with, the answer, 1 or -1."""
        j = schema.judgements.c
        query = sa.select(j.query_id, j.song_id, j.value).order_by(j.created_at, j.query_id, j.song_id)
        return [(row.query_id, row.song_id, row.value) for row in self._rows(query)]
