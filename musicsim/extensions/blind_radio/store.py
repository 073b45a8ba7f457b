"""A library's trials, the songs that their models chose, and the listener's reactions."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from musicsim.errors import LibraryError, NotFoundError
from musicsim.extensions.blind_radio.tables import trials, turns
from musicsim.library import Library
from musicsim.library.db import Tables, schema

SITTING_S = 3600.0  # a longer time without a play or a skip ends a sitting
_PLAYED_S = 30.0  # as in player_engine.js: a song counts as played after this time, or half of the song
_OF_SKIP = 0.5  # maximum outcome of a skip, so that a skip is always worse than a play


@dataclass(frozen=True, slots=True)
class Trial:
    """Two models that take turns. A coin decided which of them is A, and the listener learns it only at the end."""

    id: int
    model_a: str  # id
    name_a: str
    model_b: str
    name_b: str
    random_state: int
    started_at: float  # seconds since 1970
    ended_at: float | None
    revealed_at: float | None


@dataclass(frozen=True, slots=True)
class Turn:
    """A song of a trial, chosen to follow another song; the last four fields are None until it was heard."""

    id: int
    trial_id: int
    queue: int  # random state of the queue
    previous_id: int
    song_a: int  # ids of the songs that A and B proposed
    song_b: int
    arm: str  # the model whose song is played: "A", "B", or "both" if they proposed the same song
    made_at: float
    is_skip: bool | None = None
    is_first: bool | None = None  # True for the first song of a sitting
    event_at: float | None = None  # time of the play or skip
    outcome: float | None = None

    @property
    def song_id(self) -> int:
        """Id of the song that is played."""
        return self.song_b if self.arm == "B" else self.song_a

    @property
    def counts(self) -> bool:
        """True if only one model chose the song, and it is not the first of a sitting."""
        return self.arm != "both" and not self.is_first


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
        models = [self.library.models.find(name) for name in (first, second)]
        if models[0].id == models[1].id:
            raise LibraryError(f"“{models[0].name}” cannot take turns with itself: choose two different models.")
        if not all(map(self.library.models.is_whole, models)):
            raise LibraryError("the files of a model are missing: choose another one.")
        if not self.library.settings["keep_plays"]:
            raise LibraryError("this library does not store plays and skips: turn on the setting `keep_plays` first.")
        last = self.last()
        if last is not None and last.ended_at is None:
            raise LibraryError("a trial is running: end it first with `musicsim radio stop`.")
        seed = int(np.random.default_rng().integers(1 << 31)) if random_state is None else random_state
        a, b = models if np.random.default_rng(seed).integers(2) else models[::-1]
        row = {"model_a": a.id, "name_a": a.name, "model_b": b.id, "name_b": b.name, "random_state": seed}
        self._execute(trials.insert().values(**row, started_at=time.time()))

    def last(self) -> Trial | None:
        """Return the newest trial, if there is one."""
        row = self._row(sa.select(trials).order_by(trials.c.id.desc()).limit(1))
        return None if row is None else Trial(**row._asdict())

    def known(self) -> Trial:
        """Return the newest trial; raises NotFoundError if there is none."""
        trial = self.last()
        if trial is None:
            raise NotFoundError("this library has no trial: start one with `musicsim radio start`.")
        return trial

    def end(self, trial: Trial, *, reveal: bool = False) -> None:
        """End a trial; with `reveal`, show the names of its models from now on."""
        for column in (trials.c.ended_at, *([trials.c.revealed_at] if reveal else [])):
            change = trials.update().where(trials.c.id == trial.id, column.is_(None))
            self._execute(change.values({column: time.time()}))

    def add_turn(self, trial: Trial, queue: int, previous_id: int, song_a: int, song_b: int) -> Turn:
        """Toss a fair coin for the next song of a queue, which depends on the arguments only, and store the turn."""
        arm = "both"
        if song_a != song_b:
            coin = np.random.default_rng((trial.random_state, queue, previous_id, song_a, song_b))
            arm = "AB"[coin.integers(2)]
        turn = Turn(0, trial.id, queue, previous_id, song_a, song_b, arm, time.time())
        values = {name: getattr(turn, name) for name in turns.c.keys()[1:]}
        with self._write() as connection:
            key = connection.execute(turns.insert().values(**values)).inserted_primary_key
        return Turn(int(key[0]), **values)  # type: ignore[index]

    def turns_of(self, trial: Trial, queue: int) -> dict[int, Turn]:
        """Return the last turns of a queue, keyed by the id of the previous song."""
        found = self._turns(turns.c.trial_id == trial.id, turns.c.queue == queue)
        return {turn.previous_id: turn for turn in found}

    def heard(self, trial: Trial) -> list[Turn]:
        """Store the outcomes that are final, and return all turns with an outcome, in the order they were heard.

        A song's outcome is final when another song was played or skipped, or after an hour. It never changes afterward.
        """
        is_own, is_open = turns.c.trial_id == trial.id, turns.c.outcome.is_(None)
        known = sorted(self._turns(is_own, ~is_open), key=lambda turn: (turn.event_at, turn.id))
        since = known[-1].event_at if known else trial.started_at - SITTING_S
        until = time.time() if trial.ended_at is None else trial.ended_at
        j = schema.judgments.c
        query = sa.select(j.created_at, j.kind, j.song_1, j.context).order_by(j.created_at, j.id)
        events = list(self._rows(query.where(j.kind.in_(("play", "skip")), j.created_at.between(since, until))))
        if events and trial.ended_at is None and until - events[-1].created_at <= SITTING_S:
            following = events.pop().created_at  # the listener may still give a thumb to this song
        else:
            following = until
        choices = [event.context.get("choice") for event in events]
        pending = {turn.id: turn for turn in self._turns(is_own, is_open, turns.c.id.in_(choices))}
        for event, choice, before, after in zip(
            events, choices, [None, *events], [*(e.created_at for e in events[1:]), following], strict=False
        ):
            turn = pending.get(choice)
            if turn is None or turn.song_id != event.song_1:
                continue
            del pending[choice]
            skipped_after_s = event.context.get("seconds", 0.0) if event.kind == "skip" else None
            thumb = self._thumb(event.song_1, turn.made_at, after)
            values: dict[str, Any] = {
                "is_skip": event.kind == "skip", "event_at": event.created_at,
                "is_first": before is None or event.created_at - before.created_at > SITTING_S,
                "outcome": outcome_of(skipped_after_s, self.library.song(event.song_1).duration_s, thumb),
            }  # fmt: skip
            self._execute(turns.update().where(turns.c.id == turn.id, is_open).values(**values))
        return sorted(self._turns(is_own, ~is_open), key=lambda turn: (turn.event_at, turn.id))

    def _turns(self, *conditions: sa.ColumnElement[bool]) -> Iterator[Turn]:
        return (Turn(**row._asdict()) for row in self._rows(sa.select(turns).where(*conditions).order_by(turns.c.id)))

    def _thumb(self, song_id: int, since: float, until: float) -> int:
        """Return the thumb that the listener gave in a period; 0 if there is none."""
        f = schema.feedback.c
        query = sa.select(f.value).where(f.song_id == song_id, f.created_at.between(since, until))
        return int(self._value(query) or 0)
