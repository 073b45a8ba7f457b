"""Listeners' judgments: comparisons of songs, ratings of search results, and choices between two options."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations, zip_longest
from numbers import Integral
from typing import Any

import numpy as np
import sqlalchemy as sa

from musicsim.errors import NotFoundError
from musicsim.library.db import Tables, Write, check_details, schema

FORMS = ("odd", "like")
"""Kinds of questions about songs. Which one does not belong? Which one is more like the first?"""
RESULT = "result"
"""The kind of judgment that says whether a search result is similar to the query song."""

_MIN_SONGS, _MAX_SONGS = 3, len(schema.JUDGED_SONGS)  # minimum and maximum number of songs in a question
_MAX_PAGES = 1024  # maximum number of database pages of 4 kB for one visitor's judgments


@dataclass(frozen=True, slots=True)
class Judgment:
    """One judgment: an answer to a question, a rating, or (other kinds) a choice between the options in its context."""

    id: int
    created_at: float  # seconds since 1970, to the microsecond
    listener: str  # empty if unknown
    kind: str
    # question: three or four songs in the order shown on screen; for "like", the reference song comes first
    # rating: the query song, then the result
    song_ids: tuple[int, ...]
    # question or choice: position of the song or option, starting at 0; None: unsure, or no difference
    # rating: 1 if the result is similar to the query song, else -1
    chosen: int | None
    context: Mapping[str, Any] = field(default_factory=dict, hash=False)  # JSON

    @property
    def is_random(self) -> bool:
        """True if the songs in a question were drawn at random; such answers measure the model without bias."""
        return bool(self.context.get("is_random", False))

    @property
    def foreseen(self) -> bool | None:
        """True if the model in use predicted the answer to a question; None if there was no model or no answer."""
        return self.context.get("foreseen")

    @property
    def model(self) -> str:
        """Name of the model in use when a question was answered. The model may have been deleted since."""
        return str(self.context.get("model", ""))

    @property
    def options(self) -> tuple[str, str]:
        """Names of the two options, in the order shown on screen."""
        first, second = self.context.get("options", ("", ""))
        return first, second


def comparisons(answer: Judgment) -> list[tuple[int, int, int, int]]:
    """Return the comparisons (i, j, k, l) of distances between song ids that an answer implies: d(i, j) < d(k, l).

    "odd": any two of the other songs are closer to each other than either is to the odd one. "like": the first song
    is closer to the chosen one than to each other song. An unsure answer implies nothing.
    """
    if answer.chosen is None:
        return []
    chosen = answer.song_ids[answer.chosen]
    others = [song for song in answer.song_ids if song != chosen]
    if answer.kind == "like":
        first, *rest = others
        return [(first, chosen, first, other) for other in rest]
    return [(a, b, near, chosen) for a, b in combinations(others, 2) for near in (a, b)]


QuestionKey = tuple[str, tuple[int, ...]]


def question_key(form: str, songs: Sequence[int]) -> QuestionKey:
    """Return the key of a question, which does not depend on the order of the songs on screen."""
    n_fixed = int(form == "like")  # the reference song stays first
    return form, (*songs[:n_fixed], *sorted(songs[n_fixed:]))


class JudgmentStore(Tables):
    """Judgments in one database; deleting a song deletes its judgments. They do not change the library's revision."""

    def add(self, listener: str, kind: str, song_ids: Sequence[int], chosen: int | None, **context: Any) -> int:
        """Store a :class:`Judgment` and return its id. Raises ValueError, or NotFoundError if a song is missing."""
        row = judgment_row(time.time(), listener, kind, song_ids, chosen, context)
        try:
            with self._write() as connection:
                key = connection.execute(schema.judgments.insert().values(**row)).inserted_primary_key
        except sa.exc.IntegrityError as error:
            raise NotFoundError(
                f"song_ids={tuple(song_ids)}: one of these songs is no longer in the library. Try again."
            ) from error
        return int(key[0])  # type: ignore[index]

    def insert(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._write_rows((schema.judgments.insert(), list(rows)))

    def forget(self, number: int) -> None:
        self._execute(schema.judgments.delete().where(schema.judgments.c.id == number))

    def all(self, *kinds: str, listener: str | None = None) -> list[Judgment]:
        """Return the judgments of some kinds by all listeners, or by one, oldest first."""
        j = schema.judgments
        rows = self._rows(sa.select(j).where(_filter(kinds, listener)).order_by(j.c.created_at, j.c.id))
        return [_judgment(row._asdict()) for row in rows]

    def mark(self, *kinds: str) -> tuple[int, int]:
        """Return the number of judgments of some kinds and their last id, to detect changes."""
        query = sa.select(sa.func.count(), sa.func.max(schema.judgments.c.id)).where(_filter(kinds))
        n, last = self._row(query)
        return n, last or 0

    def answers(self, listener: str | None = None) -> list[Judgment]:
        """Return the answers to questions about songs by all listeners, or by one, oldest first."""
        return self.all(*FORMS, listener=listener)

    def count(self, listener: str | None = None) -> int:
        """Return the number of answers to questions about songs by all listeners, or by one."""
        query = sa.select(sa.func.count()).select_from(schema.judgments)
        return self._value(query.where(_filter(FORMS, listener))) or 0

    def listeners(self) -> list[str]:
        listener = schema.judgments.c.listener
        return self._values(sa.select(listener).where(listener != "").distinct().order_by(listener))

    def rename(self, old: str, new: str) -> None:
        """Rename a listener, or merge two. Raises ValueError if `new` is empty or cannot be stored."""
        change = schema.judgments.update().where(schema.judgments.c.listener == old)
        self._execute(change.values(listener=listener_name(new)))

    def forget_listener(self, name: str) -> int:
        return self._execute(schema.judgments.delete().where(schema.judgments.c.listener == name))

    def rate_results(self, query_id: int, rated: Mapping[int, int]) -> None:
        """Replace the ratings of a song's results: a dict from song id to 1 (similar) or -1 (not), which may be empty.

        Raises ValueError for other values or the song itself, and NotFoundError if a song is not in the library.
        """
        rows = _rating_rows(query_id, rated)
        with _find_songs(), self._write() as connection:
            _replace_ratings(connection, query_id, rows)

    def ratings_of(self, query_id: int) -> dict[int, int]:
        """Return the ratings of a song's results, keyed by song id, oldest first."""
        j = schema.judgments.c
        query = sa.select(j.song_2, j.chosen).where(j.kind == RESULT, j.song_1 == query_id).order_by(j.id)
        return {row.song_2: row.chosen for row in self._rows(query)}


def _rating_rows(query_id: int, rated: Mapping[int, int]) -> list[dict[str, Any]]:
    now = time.time()
    return [judgment_row(now, "", RESULT, (query_id, song), value, {}) for song, value in rated.items()]


def _replace_ratings(connection: sa.Connection, query_id: int, rows: Sequence[Mapping[str, Any]]) -> None:
    j = schema.judgments
    connection.execute(j.delete().where(j.c.kind == RESULT, j.c.song_1 == query_id))
    if rows:
        connection.execute(j.insert(), rows)


@contextmanager
def _find_songs() -> Iterator[None]:
    try:
        yield
    except sa.exc.IntegrityError as error:
        raise NotFoundError("a rated song, or the query song, is no longer in the library. Search again.") from error


def _filter(kinds: Sequence[str], listener: str | None = None) -> sa.ColumnElement[bool]:
    j = schema.judgments.c
    return sa.and_(j.kind.in_(kinds), sa.true() if listener is None else j.listener == listener)


def _judgment(row: dict[str, Any]) -> Judgment:
    ids = [row.pop(song.name) for song in schema.JUDGED_SONGS]
    return Judgment(**row, song_ids=tuple(i for i in ids if i is not None))


class Opinions(Tables):
    """Judgments, and thumbs on songs, in one database."""

    def __init__(self, engine: sa.Engine, write: Write) -> None:
        super().__init__(engine, write)
        self.judgments = JudgmentStore(engine, write)

    def feedback(self) -> dict[int, int]:
        """Return the thumbs, +1 or -1, keyed by song id."""
        f = schema.feedback.c
        return {row.song_id: row.value for row in self._rows(sa.select(f.song_id, f.value))}

    def set_feedback(self, song_id: int, value: int) -> None:
        """Store a thumb, +1 or -1; 0 deletes it."""
        self.save_thumbs({song_id: value})

    def save_thumbs(
        self, feedback: Mapping[int, int], query_id: int | None = None, rated: Mapping[int, int] | None = None
    ) -> None:
        """Store thumbs on songs (0 deletes one) and replace the ratings of a song's results, in one transaction.

        Raises the errors of :meth:`JudgmentStore.rate_results`.
        """
        f, now = schema.feedback, time.time()
        thumbs = [
            {"song_id": song_id, "value": int(np.sign(value)), "created_at": now}
            for song_id, value in feedback.items()
            if value
        ]
        ratings = [] if query_id is None else _rating_rows(query_id, rated or {})
        with _find_songs(), self._write() as connection:
            connection.execute(f.delete().where(f.c.song_id.in_(list(feedback))))
            if thumbs:
                connection.execute(f.insert(), thumbs)
            if query_id is not None:
                _replace_ratings(connection, query_id, ratings)


def opinions_in_memory() -> Opinions:
    """Create an in-memory store for one visitor's opinions. Song ids are not checked."""
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool, connect_args={"check_same_thread": False})
    with engine.begin() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count={_MAX_PAGES}")
        schema.metadata.create_all(connection, tables=(schema.judgments, schema.feedback))
    return Opinions(engine, engine.begin)


def judgment_row(
    created_at: float, listener: str, kind: str, song_ids: Sequence[int], chosen: int | None, context: Mapping[str, Any]
) -> dict[str, Any]:
    """Check a judgment and return its table row. Raises ValueError, which names the invalid argument."""
    ids = [int(song_id) for song_id in song_ids]
    if kind in FORMS:
        _check_question(kind, ids, chosen)
        listener, context = listener_name(listener), _question_context(chosen, **context)
    elif kind == RESULT:
        if not len(set(ids)) == len(ids) == 2 or chosen not in (-1, 1):
            raise ValueError(f"song_ids={tuple(ids)}, chosen={chosen}: give two different songs, and 1 or -1.")
    else:
        _check_choice(kind, ids, chosen, context.get("options", ()))
    return {
        "created_at": round(created_at, 6),  # same precision as in an exported file
        "listener": listener,
        "kind": kind,
        **{song.name: song_id for song, song_id in zip_longest(schema.JUDGED_SONGS, ids)},
        "chosen": None if chosen is None else int(chosen),
        "context": check_details(context),
    }


def _check_question(form: str, ids: Sequence[int], chosen: int | None) -> None:
    if not _MIN_SONGS <= len(set(ids)) == len(ids) <= _MAX_SONGS:
        raise ValueError(f"song_ids={tuple(ids)} must be {_MIN_SONGS} or {_MAX_SONGS} different songs.")
    first = int(form == "like")
    if chosen is not None and not (isinstance(chosen, Integral) and first <= chosen < len(ids)):
        raise ValueError(f"chosen={chosen!r} must be a position from {first} to {len(ids) - 1}, or None if unsure.")


def _question_context(
    chosen: int | None, *, is_random: bool = False, foreseen: bool | None = None, model: str = ""
) -> dict[str, Any]:
    if chosen is None and foreseen is not None:
        raise ValueError(f"`foreseen` must be None for an unsure answer, not {foreseen!r}.")
    _check_encodable("model", model)
    return {"is_random": bool(is_random), "foreseen": None if foreseen is None else bool(foreseen), "model": model}


def _check_choice(kind: str, ids: Sequence[int], chosen: int | None, options: Sequence[str]) -> None:
    if not kind or ids or len(options) != 2 or not all(options):
        raise ValueError(
            f"kind={kind!r} must be one of {', '.join((*FORMS, RESULT))}, or a choice between two named options."
        )
    if options[0] == options[1]:
        raise ValueError(f"options={tuple(options)!r}: the two options must be different.")
    if chosen not in (0, 1, None):
        raise ValueError(f"chosen={chosen!r} must be 0, 1, or None for no difference.")


def listener_name(name: str) -> str:
    """Normalize the white space in a name. Raises ValueError if it is empty or cannot be encoded as UTF-8."""
    _check_encodable("listener", name)
    if not name.split():
        raise ValueError("listener must not be empty: enter a name.")
    return " ".join(name.split())


def _check_encodable(argument: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{argument}={text!r} must be text that can be encoded as UTF-8.") from None
