"""What listeners say of songs, answers and models: what the tables of it share, judgements and preferences."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import sqlalchemy as sa

from musicsim.errors import NotFoundError
from musicsim.library.db import schema
from musicsim.library.db.database import Tables

CHOICES = ("a", "b", "same")


class OpinionStore(Tables):
    """Opinions of one kind in one library.

    An opinion is no change that pages have to be drawn again for: transactions leave the library's revision as it is.
    """

    newest: ClassVar[sa.Column[Any]]
    """What grows with every opinion: the number it has, or the time when it was said."""

    def mark(self) -> tuple[int, float]:
        """How many opinions there are, and which is the newest: others for others."""
        n, last = next(self._rows(sa.select(sa.func.count(), sa.func.max(self.newest))))
        return n, last or 0


class NumberedOpinionStore(OpinionStore):
    """Opinions that have a number each, the column `id`."""

    def forget(self, number: int) -> None:
        """Take back the opinion of a number; one that is not there is no error."""
        table = self.newest.table
        with self._write() as connection:
            connection.execute(sa.delete(table).where(table.c.id == number))


def checked_details(details: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Details as JSON will give them back. Raises ValueError if JSON cannot hold them."""
    if details is None:
        return None
    try:
        return dict(json.loads(json.dumps(dict(details), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise ValueError(f"details must hold text, finite numbers, lists and mappings only ({error}).") from error


class JudgementStore(OpinionStore):
    """Which answers to a search listeners said to be like the song they searched with, or not: to learn from."""

    newest = schema.judgements.c.created_at

    def keep(self, query_id: int, judged: Mapping[int, int]) -> None:
        """Keep what was said of answers to a song, in the place of what was kept of it before.

        1 for a song that is like it, -1 for one that is not, by song id; empty to forget them.

        Raises ValueError if a song is judged as an answer to itself, or by another number; NotFoundError if a song is
        not in the library, and nothing is written then.
        """
        for song_id, value in judged.items():
            if song_id == query_id or value not in (-1, 1):
                raise ValueError(f"judged={{{song_id}: {value}}}: another song should be judged, and by 1 or -1.")
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


@dataclass(frozen=True, slots=True)
class Preference:
    """One answer."""

    id: int
    created_at: float  # seconds since 1970
    question: str  # what was compared, such as "playlists"
    # names of the models, in the order in which they were shown
    model_a: str
    model_b: str
    chosen: str  # a, b or same
    details: Mapping[str, Any] | None = field(hash=False)  # what was shown: songs, seed, settings

    @property
    def winner(self) -> str | None:
        """The model that was chosen; None where they were the same."""
        return {"a": self.model_a, "b": self.model_b}.get(self.chosen)


@dataclass(frozen=True, slots=True)
class PairSummary:
    """How often each of two models was chosen, on whichever side it was shown; `model_a` sorts first."""

    model_a: str
    model_b: str
    wins_a: int
    wins_b: int
    ties: int

    @property
    def n_answers(self) -> int:
        """Answers about this pair."""
        return self.wins_a + self.wins_b + self.ties


class PreferenceStore(NumberedOpinionStore):
    """Which of two models a listener preferred, asked blind: one answer a row, summed up by pair of models."""

    newest = schema.preferences.c.id

    def add(self, question: str, a: str, b: str, chosen: str, details: Mapping[str, Any] | None = None) -> int:
        """Keep one answer; its number.

        `a` and `b` are the names of two models, as they were shown; `chosen` is a, b or same; `details` are anything
        that JSON can hold.

        Raises ValueError if a name is empty, both are one, or `chosen` or `details` are nothing that can be kept.
        """
        if not (question and a and b):
            raise ValueError(f"question={question!r}, a={a!r} and b={b!r} must not be empty.")
        if a == b:
            raise ValueError(f"a and b are both {a!r}: compare two models.")
        if chosen not in CHOICES:
            raise ValueError(f"chosen={chosen!r} must be one of {', '.join(CHOICES)}.")
        row = {
            "created_at": time.time(),
            "question": question,
            "model_a": a,
            "model_b": b,
            "chosen": chosen,
            "details": checked_details(details),
        }
        with self._write() as connection:
            key = connection.execute(schema.preferences.insert().values(**row)).inserted_primary_key
        return int(key[0])  # type: ignore[index]

    def all(self, question: str | None = None) -> list[Preference]:
        """Answers, oldest first; all, or those to one question."""
        p = schema.preferences.c
        query = sa.select(*(p[f.name] for f in fields(Preference))).order_by(p.id)
        if question is not None:
            query = query.where(p.question == question)
        return [Preference(*row) for row in self._rows(query)]

    def summary(self, question: str | None = None) -> list[PairSummary]:
        """Wins and ties of each pair of models, by their names."""
        counts: dict[tuple[str, str], dict[str | None, int]] = {}
        for answer in self.all(question):
            first, second = sorted((answer.model_a, answer.model_b))
            of_pair = counts.setdefault((first, second), {first: 0, second: 0, None: 0})
            of_pair[answer.winner] += 1
        return [
            PairSummary(first, second, n[first], n[second], n[None]) for (first, second), n in sorted(counts.items())
        ]
