"""Which of two models a listener preferred, asked blind: kept one answer a row, summed up by pair of models."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import sqlalchemy as sa

from musicsim.library.db import schema
from musicsim.library.stores.opinions import NumberedOpinionStore, checked_details

CHOICES = ("a", "b", "same")


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
    """Preferences of listeners in one library."""

    newest = schema.preferences.c.id

    def add(
        self, question: str, a: str, b: str, chosen: str, details: Mapping[str, Any] | None = None
    ) -> int:
        """Keep one answer.

        Parameters
        ----------
        a, b : str
            Names of two models, as they were shown.
        chosen : str
            a, b or same.
        details : mapping, optional
            Anything that JSON can hold.

        Returns
        -------
        int
            The number of the answer.

        Raises
        ------
        ValueError
            If a name is empty, both are one, or `chosen` or `details` are nothing that can be kept.
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
            PairSummary(first, second, n[first], n[second], n[None])
            for (first, second), n in sorted(counts.items())
        ]
