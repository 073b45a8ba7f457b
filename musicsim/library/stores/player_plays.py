"""Plays and skips in the app's own player; they do not change the library's revision."""

import time
from typing import Any

import sqlalchemy as sa

from musicsim._arrays import Float64Array, Int64Array
from musicsim.library.db import Tables, schema

PLAYER = "this player"
"""Source of these plays."""
_LISTENER = "owner"
_PLAY, _SKIP = "play", "skip"  # kinds of judgments, which store the times


class PlayerPlays(Tables):
    def add_play(self, song_id: int, **details: float) -> None:
        """Store a play; `details` are numbers such as the `choice` of the queue that the song came from."""
        statement = sa.text(
            "INSERT INTO plays (listener, song_id, source, count) VALUES (:listener, :song_id, :source, 1) "
            "ON CONFLICT (listener, song_id, source) DO UPDATE SET count = count + 1"
        )
        counted = (statement, [{"listener": _LISTENER, "song_id": song_id, "source": PLAYER}])
        self._write_rows(counted, _make_event(_PLAY, song_id, details))

    def add_skip(self, song_id: int, **details: float) -> None:
        """Store a skip; `details` are as above, and the `seconds` that were heard."""
        self._write_rows(_make_event(_SKIP, song_id, details))

    def latest(self) -> int:
        """Return a number that increases with every play; 0 before the first play."""
        j = schema.judgments.c
        return self._value(sa.select(sa.func.max(j.id)).where(j.kind == _PLAY)) or 0

    def count(self) -> int:
        """Return the number of plays whose time is known."""
        j = schema.judgments.c
        return int(self._value(sa.select(sa.func.count()).where(j.kind == _PLAY)))

    def play_times(self) -> tuple[Int64Array, Float64Array]:
        """Return the song id and time (seconds since 1970) of each play, in any order; version 1.0 stored no times."""
        j = schema.judgments.c
        return self._times_of_songs(j.song_1, j.created_at, j.kind == _PLAY)

    def often_skipped(self) -> list[int]:
        """Return the ids of songs that were skipped at least twice, and more often than played."""
        j, p = schema.judgments.c, schema.plays.c
        n_skips = sa.func.count()
        skips = sa.select(j.song_1, n_skips.label("n")).where(j.kind == _SKIP).group_by(j.song_1).subquery()
        played = sa.select(p.song_id, p.count).where(p.source == PLAYER).subquery()
        query = sa.select(skips.c.song_1).join(played, played.c.song_id == skips.c.song_1, isouter=True)
        return self._values(query.where(skips.c.n >= 2, skips.c.n > sa.func.coalesce(played.c.count, 0)))


def _make_event(kind: str, song_id: int, details: dict[str, float]) -> tuple[sa.Insert, list[dict[str, Any]]]:
    row = {"created_at": time.time(), "listener": "", "kind": kind, "song_1": song_id, "context": details}
    return schema.judgments.insert(), [row]
