"""A library's trials, the songs that their models chose, and the listener's reactions."""

import time
from typing import Any

import numpy as np
import sqlalchemy as sa

from musicsim.errors import LibraryError, NotFoundError
from musicsim.explorer import draw_seed, shuffle_sides
from musicsim.library import Library, Tables
from musicsim.library.db import schema

SITTING_S = 3600.0  # a longer time without a play or a skip ends a sitting
_PLAYED_S = 30.0  # as in web/player/engine.js: a song counts as played after this time, or half of the song
_OF_SKIP = 0.5  # maximum outcome of a skip, so that a skip is always worse than a play

# Two models that take turns. A coin decided which of them is A, and the listener learns it only at the end.
trials = sa.Table(
    "radio_trials",
    schema.metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("model_a", "name_a", "model_b", "name_b")),
    sa.Column("random_state", sa.Integer, nullable=False),
    sa.Column("started_at", sa.Float, nullable=False),
    *(sa.Column(name, sa.Float) for name in ("ended_at", "revealed_at")),
    info=schema.IN_SMALL_COPY,
)

# A song that a model chose to follow another song in a queue; `queue` is the random state of that queue. There are no
# foreign keys to songs, because the outcome must stay if the listener deletes the song.
turns = sa.Table(
    "radio_turns",
    schema.metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("trial_id", sa.ForeignKey("radio_trials.id", ondelete="CASCADE"), nullable=False, index=True),
    *(sa.Column(name, sa.Integer, nullable=False) for name in ("queue", "previous_id", "song_a", "song_b", "song_id")),
    sa.Column("arm", sa.Text, nullable=False),  # "A", "B", or "both" if they proposed the same song
    sa.Column("made_at", sa.Float, nullable=False),
    # of the first play or skip; null before
    *(sa.Column(name, sa.Boolean) for name in ("is_skip", "is_first")),  # is_first: the first one of a sitting
    *(sa.Column(name, sa.Float) for name in ("event_at", "outcome")),
    info=schema.IN_SMALL_COPY,
)

Trial = sa.Row[Any]  # a row of `trials`
Turn = sa.Row[Any]  # a row of `turns`


def outcome_of(skipped_after_s: float | None, duration_s: float, thumb: int = 0) -> float:
    """Return the outcome of a song, from 0 to 1. The rule is fixed before a trial.

    A thumb (1 or -1) gives 1 or 0. Otherwise, a play gives 1; for it, `skipped_after_s` is None. A skip gives half of
    the share of the time after which the song would have counted as a play.
    """
    if thumb or skipped_after_s is None:
        return float(thumb >= 0)
    needed = min(_PLAYED_S, duration_s / 2.0)
    return _OF_SKIP * min(skipped_after_s / needed, 1.0) if needed > 0 else _OF_SKIP


class RadioStore(Tables):
    """Changes do not increase the library's revision, because songs and models stay the same."""

    def __init__(self, library: Library) -> None:
        super().__init__(library.engine, library.write_unseen)
        self.library = library

    def start(self, first: str, second: str, random_state: int | None = None) -> None:
        """Start a trial of two models, given by name. Raises LibraryError if it cannot start."""
        one, other = (self.library.models.find(name) for name in (first, second))
        if one.id == other.id:
            raise LibraryError(f"“{one.name}” cannot take turns with itself: choose two different models.")
        if not self.library.settings["keep_plays"]:
            raise LibraryError("this library does not store plays and skips: turn on the setting `keep_plays` first.")
        last = self.latest()
        if last is not None and last.ended_at is None:
            raise LibraryError("a trial is running: end it first with `musicsim radio stop`.")
        seed = draw_seed(random_state)
        a, b = shuffle_sides(one, other, np.random.default_rng(seed))
        row = {"model_a": a.id, "name_a": a.name, "model_b": b.id, "name_b": b.name, "random_state": seed}
        self._execute(trials.insert().values(**row, started_at=time.time()))

    def latest(self) -> Trial | None:
        """Return the newest trial, if there is one."""
        return self._row(sa.select(trials).order_by(trials.c.id.desc()).limit(1))

    def get_latest(self) -> Trial:
        """Return the newest trial; raises NotFoundError without one."""
        trial = self.latest()
        if trial is None:
            raise NotFoundError("this library does not have a trial yet: start one with `musicsim radio start`.")
        return trial

    def end(self, trial: Trial, *, reveal: bool = False) -> None:
        """End a trial; with `reveal`, show the names of its models from now on."""
        for column in (trials.c.ended_at, *([trials.c.revealed_at] if reveal else [])):
            change = trials.update().where(trials.c.id == trial.id, column.is_(None))
            self._execute(change.values({column: time.time()}))

    def add_turn(self, trial: Trial, queue: int, previous_id: int, song_a: int, song_b: int) -> Turn:
        """Toss a fair coin for the next song of a queue, which depends on the arguments only, and store the turn."""
        coin = np.random.default_rng((trial.random_state, queue, previous_id, song_a, song_b)).integers(2)
        arm, song_id = ("both", song_a) if song_a == song_b else (("A", song_a), ("B", song_b))[coin]
        places = {"queue": queue, "previous_id": previous_id, "song_a": song_a, "song_b": song_b, "song_id": song_id}
        insert = turns.insert().values(**places, trial_id=trial.id, arm=arm, made_at=time.time())
        with self._write() as connection:
            return connection.execute(insert.returning(turns)).one()

    def turns_of(self, trial: Trial, queue: int) -> dict[int, Turn]:
        """Return the last turns of a queue, keyed by the id of the previous song."""
        query = sa.select(turns).where(turns.c.trial_id == trial.id, turns.c.queue == queue).order_by(turns.c.id)
        return {turn.previous_id: turn for turn in self._rows(query)}

    def settle(self, trial: Trial) -> list[Turn]:
        """Store the outcomes that are final, and return all turns with an outcome, in the order they were heard.

        A song's outcome is final when another song was played or skipped, or after an hour. It never changes afterward.
        """
        own, is_open = sa.select(turns).where(turns.c.trial_id == trial.id), turns.c.outcome.is_(None)
        in_order = own.where(~is_open).order_by(turns.c.event_at, turns.c.id)
        known = list(self._rows(in_order))
        since = known[-1].event_at if known else trial.started_at - SITTING_S
        until = time.time() if trial.ended_at is None else trial.ended_at
        j, f, songs = schema.judgments, schema.feedback, schema.songs
        columns = (j.c.created_at, j.c.kind, j.c.song_1, j.c.context, songs.c.duration_s, f.c.value)
        query = (
            sa.select(*columns, f.c.created_at.label("thumb_at"))
            .join(songs, songs.c.id == j.c.song_1).outerjoin(f, f.c.song_id == j.c.song_1)
            .where(j.c.kind.in_(("play", "skip")), j.c.created_at.between(since, until))
            .order_by(j.c.created_at, j.c.id)
        )  # fmt: skip
        events = list(self._rows(query))
        is_live = bool(events) and trial.ended_at is None and until - events[-1].created_at <= SITTING_S
        # the last song may still get a thumb
        following = events.pop().created_at if is_live else until
        choices = [event.context.get("choice") for event in events]
        pending = {turn.id: turn for turn in self._rows(own.where(is_open, turns.c.id.in_(choices)))}
        ends = [*(event.created_at for event in events[1:]), following]
        for event, choice, before, end in zip(events, choices, [None, *events], ends, strict=False):
            turn = pending.get(choice)
            if turn is None or turn.song_id != event.song_1:
                continue
            del pending[choice]
            skipped_after_s = event.context.get("seconds", 0.0) if event.kind == "skip" else None
            has_thumb = event.value is not None and turn.made_at <= event.thumb_at <= end
            values = {
                "is_skip": event.kind == "skip", "event_at": event.created_at,
                "is_first": before is None or event.created_at - before.created_at > SITTING_S,
                "outcome": outcome_of(skipped_after_s, event.duration_s, event.value if has_thumb else 0),
            }  # fmt: skip
            self._execute(turns.update().where(turns.c.id == turn.id, is_open).values(**values))
        return list(self._rows(in_order))
