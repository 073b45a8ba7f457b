"""Plays and skips in the app's own player; they do not change the library's revision."""

import time

import sqlalchemy as sa

from musicsim.library.db import Tables, schema

PLAYER = "this player"
"""Source of these plays."""
_LISTENER = "owner"
_SKIP = "skip"  # kind of judgment


class PlayerPlays(Tables):
    def add_play(self, song_id: int) -> None:
        statement = sa.text(
            "INSERT INTO plays (listener, song_id, source, count) VALUES (:listener, :song_id, :source, 1) "
            "ON CONFLICT (listener, song_id, source) DO UPDATE SET count = count + 1"
        )
        self._write_rows((statement, [{"listener": _LISTENER, "song_id": song_id, "source": PLAYER}]))

    def add_skip(self, song_id: int) -> None:
        row = {"created_at": time.time(), "listener": "", "kind": _SKIP, "song_1": song_id, "context": {}}
        self._write_rows((schema.judgments.insert(), [row]))

    def often_skipped(self) -> list[int]:
        """Return the ids of songs that were skipped at least twice, and more often than played."""
        j, p = schema.judgments.c, schema.plays.c
        n_skips = sa.func.count()
        skips = sa.select(j.song_1, n_skips.label("n")).where(j.kind == _SKIP).group_by(j.song_1).subquery()
        played = sa.select(p.song_id, p.count).where(p.source == PLAYER).subquery()
        query = sa.select(skips.c.song_1).join(played, played.c.song_id == skips.c.song_1, isouter=True)
        return self._values(query.where(skips.c.n >= 2, skips.c.n > sa.func.coalesce(played.c.count, 0)))
