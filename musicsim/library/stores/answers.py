"""What listeners answered when they were asked to compare songs: one answer a row."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral
from typing import Any

import sqlalchemy as sa

from musicsim.errors import NotFoundError
from musicsim.library.db import schema
from musicsim.library.stores.opinions import NumberedOpinionStore

FORMS = ("odd", "like")
"""Which one does not belong? Which one is more like the first?"""

_FEWEST, _MOST = 3, len(schema.ANSWER_SONGS)  # songs of a question


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer."""

    id: int
    created_at: float  # seconds since 1970, to the microsecond
    listener: str
    form: str  # one of FORMS
    # three or four, as they were shown; of "like", the song asked about comes first
    song_ids: tuple[int, ...]
    # the place in `song_ids`, from 1 on where the form is "like"; None where the listener was unsure
    chosen: int | None
    # whether chance alone drew the songs: such answers estimate without bias how often a model is right
    is_random: bool
    # whether the model then in use would have said the same; None where there was none, or nothing to say
    foreseen: bool | None
    model: str  # the name of that model, which outlives it


def comparisons(answer: Answer) -> list[tuple[int, int, int, int]]:
    """What an answer says of distances, as comparisons (i, j, k, l) of song ids: d(i, j) < d(k, l).

    Of the odd one out among three: the other two are nearer to one another than either is to it. Among four: the same
    for every pair of the others. Of "like": the first song is nearer to the one chosen than to each other one. None
    of an answer that is unsure.
    """
    if answer.chosen is None:
        return []
    chosen = answer.song_ids[answer.chosen]
    others = [song for song in answer.song_ids if song != chosen]
    if answer.form == "like":
        first, *rest = others
        return [(first, chosen, first, other) for other in rest]
    return [(a, b, near, chosen) for a, b in combinations(others, 2) for near in (a, b)]


QuestionKey = tuple[str, tuple[int, ...]]


def question_key(form: str, songs: Sequence[int]) -> QuestionKey:
    """What tells questions apart: the same for the same question, in whatever order its songs are shown."""
    n_fixed = int(form == "like")  # the song that is asked about stays the first
    return form, (*songs[:n_fixed], *sorted(songs[n_fixed:]))


class AnswerStore(NumberedOpinionStore):
    """Answers of listeners in one library; an answer goes with the first of its songs that is forgotten."""

    newest = schema.answers.c.id  # which is given to no other answer

    # --- one by one ---------------------------------------------------------------------------

    def add(
        self,
        listener: str,
        form: str,
        song_ids: Sequence[int],
        chosen: int | None,
        *,
        is_random: bool = False,
        foreseen: bool | None = None,
        model: str = "",
    ) -> int:
        """Keep one answer, with the arguments of :class:`Answer`; its number, which is given to no other one.

        Raises ValueError if the answer makes no sense: it names the argument at fault; NotFoundError if a song is not
        in the library.
        """
        row = answer_row(time.time(), listener, form, song_ids, chosen, is_random, foreseen, model)
        try:
            with self._write() as connection:
                key = connection.execute(schema.answers.insert().values(**row)).inserted_primary_key
        except sa.exc.IntegrityError as error:
            raise NotFoundError(
                f"song_ids={tuple(song_ids)}: one of these songs is no longer in the library. Try again."
            ) from error
        return int(key[0])  # type: ignore[index]

    def all(self, listener: str | None = None) -> list[Answer]:
        """Answers, oldest first; all, or those of one listener."""
        a = schema.answers.c
        query = sa.select(schema.answers).order_by(a.created_at, a.id)
        if listener is not None:
            query = query.where(a.listener == listener)
        return [_answer(row._asdict()) for row in self._rows(query)]

    def count(self, listener: str | None = None) -> int:
        """How many answers there are; all, or those of one listener."""
        query = sa.select(sa.func.count()).select_from(schema.answers)
        if listener is not None:
            query = query.where(schema.answers.c.listener == listener)
        return self._value(query) or 0

    # --- listeners ----------------------------------------------------------------------------

    def listeners(self) -> list[str]:
        """Everybody who has answered, by name."""
        listener = schema.answers.c.listener
        return self._values(sa.select(listener).distinct().order_by(listener))

    def rename(self, old: str, new: str) -> None:
        """Give a listener another name; who has it already becomes one with this one.

        Raises ValueError if `new` is no name.
        """
        change = schema.answers.update().where(schema.answers.c.listener == old)
        with self._write() as connection:
            connection.execute(change.values(listener=listener_name(new)))

    def forget_listener(self, name: str) -> int:
        """Forget all answers of a listener; how many they were."""
        with self._write() as connection:
            return connection.execute(schema.answers.delete().where(schema.answers.c.listener == name)).rowcount

    def insert(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add answers that :func:`answer_row` has checked, in one transaction."""
        if rows:
            with self._write() as connection:
                connection.execute(schema.answers.insert(), list(rows))


def _answer(row: dict[str, Any]) -> Answer:
    ids = [row.pop(song.name) for song in schema.ANSWER_SONGS]
    return Answer(**row, song_ids=tuple(i for i in ids if i is not None))


# --- checks ---------------------------------------------------------------------------------------


def answer_row(
    created_at: float,
    listener: str,
    form: str,
    song_ids: Sequence[int],
    chosen: int | None,
    is_random: bool,
    foreseen: bool | None,
    model: str,
) -> dict[str, Any]:
    """An answer as the table has it. Raises ValueError if it makes no sense."""
    if form not in FORMS:
        raise ValueError(f"form={form!r} must be one of {', '.join(FORMS)}.")
    ids = [int(song_id) for song_id in song_ids]
    if not _FEWEST <= len(set(ids)) == len(ids) <= _MOST:
        raise ValueError(f"song_ids={tuple(ids)} must be {_FEWEST} or {_MOST} different songs.")
    first = 1 if form == "like" else 0
    if chosen is not None and not (isinstance(chosen, Integral) and first <= chosen < len(ids)):
        raise ValueError(f"chosen={chosen!r} must be a place from {first} to {len(ids) - 1}, or None for unsure.")
    if chosen is None and foreseen is not None:
        raise ValueError(f"foreseen={foreseen!r} must be None of an answer that is unsure.")
    return {
        "created_at": round(created_at, 6),  # as a file keeps it
        "listener": listener_name(listener),
        "form": form,
        **{song.name: song_id for song, song_id in zip(schema.ANSWER_SONGS, [*ids, None], strict=False)},
        "chosen": None if chosen is None else int(chosen),
        "is_random": bool(is_random),
        "foreseen": None if foreseen is None else bool(foreseen),
        "model": _storable("model", model),
    }


def listener_name(name: str) -> str:
    """A listener's name as it is kept: spaces are one each, and none stand around it.

    Raises ValueError if nothing is left of it, or UTF-8 cannot hold it.
    """
    kept = " ".join(_storable("listener", name).split())
    if not kept:
        raise ValueError("listener must not be empty: say who answers.")
    return kept


def _storable(argument: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{argument}={text!r} must be text that UTF-8 can hold.") from None
    return text
