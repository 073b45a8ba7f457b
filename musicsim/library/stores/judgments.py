"""Judgments of listeners: comparisons of songs, ratings of search results, and choices between two options.

All kinds share one table and one record. A library keeps them on disk. A visitor of a public demonstration has them in
memory.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np
import sqlalchemy as sa

from musicsim.errors import NotFoundError
from musicsim.library.db import schema
from musicsim.library.db.database import Tables, Write, checked_details

FORMS = ("odd", "like")
"""Kinds of questions about songs. Which one does not belong? Which one is more like the first?"""
RESULT = "result"
"""Kind of a rating: a search result is like the song of the query, or not."""

_FEWEST, _MOST = 3, len(schema.JUDGED_SONGS)  # songs of a question
_MAX_PAGES = 1024  # of 4 kB, for the judgments of one visitor


@dataclass(frozen=True, slots=True)
class Judgment:
    """One judgment.

    A kind other than :data:`FORMS` and :data:`RESULT` is a choice between two options, which its context names.
    """

    id: int
    created_at: float  # seconds since 1970, to the microsecond
    listener: str  # empty if unknown
    kind: str
    # of a question: three or four songs in the order on the screen, and for "like" the reference song comes first;
    # of a rating: the song of the query, then the result
    song_ids: tuple[int, ...]
    # the place of the song, or of the option, from 0 on; None: unsure, or no difference.
    # of a rating: 1 for a result like the song of the query, -1 for another
    chosen: int | None
    context: Mapping[str, Any] = field(default_factory=dict, hash=False)  # JSON

    @property
    def is_random(self) -> bool:
        """True if the songs of a question were drawn at random; such answers estimate the model without bias."""
        return bool(self.context.get("is_random", False))

    @property
    def foreseen(self) -> bool | None:
        """True if the model in use gave the same answer to a question; None if there was no model or no answer."""
        return self.context.get("foreseen")

    @property
    def model(self) -> str:
        """Name of the model in use when a question was answered; it outlives the model."""
        return str(self.context.get("model", ""))

    @property
    def options(self) -> tuple[str, str]:
        """Names of the two options, in the order on the screen."""
        first, second = self.context.get("options", ("", ""))
        return first, second


# --- questions about songs ------------------------------------------------------------------------


def comparisons(answer: Judgment) -> list[tuple[int, int, int, int]]:
    """Comparisons of distances (i, j, k, l) that an answer implies: d(i, j) < d(k, l), by song ids.

    "odd" with three songs: the other two are closer to each other than either is to the odd one. With four: the same
    for every pair of the others. "like": the first song is closer to the chosen one than to each other song. An
    unsure answer implies nothing.
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
    """Key of a question, which does not depend on the order of the songs on the screen."""
    n_fixed = int(form == "like")  # the reference song stays first
    return form, (*songs[:n_fixed], *sorted(songs[n_fixed:]))


# --- summary --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tally:
    """How often each of two options was chosen, on either side; `first` sorts first."""

    first: str
    second: str
    wins_first: int
    wins_second: int
    ties: int

    @property
    def n_judgments(self) -> int:
        """Number of judgments, ties included."""
        return self.n_decided + self.ties

    @property
    def n_decided(self) -> int:
        """Number of judgments that chose one of the two."""
        return self.wins_first + self.wins_second

    @property
    def share(self) -> float | None:
        """Share of the first option among the decided judgments; None without any."""
        return self.wins_first / self.n_decided if self.n_decided else None

    @property
    def p_value(self) -> float:
        """P-value of the two-sided sign test on the decided judgments; 1 without any."""
        n = self.n_decided
        tail = sum(math.comb(n, k) for k in range(min(self.wins_first, self.wins_second) + 1))
        return min(1.0, 2 * tail / 2**n)


def summarize(
    judgments: Iterable[Judgment], options_of: Callable[[Judgment], tuple[str, str]] = lambda one: one.options
) -> list[Tally]:
    """Count the choices of each pair of options; pairs with the most judgments come first."""
    counts: dict[tuple[str, str], list[int]] = {}
    for judgment in judgments:
        options = options_of(judgment)
        pair = (min(options), max(options))
        winner = pair.index(options[judgment.chosen]) if judgment.chosen in (0, 1) else 2
        counts.setdefault(pair, [0, 0, 0])[winner] += 1
    tallies = [Tally(*pair, *count) for pair, count in counts.items()]
    return sorted(tallies, key=lambda one: (-one.n_judgments, one.first, one.second))


# --- storage --------------------------------------------------------------------------------------


class JudgmentStore(Tables):
    """The judgments in one database. Each is deleted with the first of its songs that is deleted.

    A judgment does not change the pages: transactions keep the revision of the library.
    """

    def add(self, listener: str, kind: str, song_ids: Sequence[int], chosen: int | None, **context: Any) -> int:
        """Store one judgment and return its id, which no other judgment ever gets.

        The arguments are those of :class:`Judgment`.

        Raises ValueError, which names the argument, if the judgment is invalid; NotFoundError if a song is not in the
        library.
        """
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
        """Add rows of :func:`judgment_row` in one transaction."""
        if rows:
            with self._write() as connection:
                connection.execute(schema.judgments.insert(), list(rows))

    def forget(self, number: int) -> None:
        """Delete the judgment with an id, if it exists."""
        with self._write() as connection:
            connection.execute(schema.judgments.delete().where(schema.judgments.c.id == number))

    def all(self, *kinds: str, listener: str | None = None) -> list[Judgment]:
        """Judgments of some kinds, and of one listener if named, oldest first."""
        j = schema.judgments
        query = sa.select(j).where(_is_among(kinds, listener)).order_by(j.c.created_at, j.c.id)
        return [_judgment(row._asdict()) for row in self._rows(query)]

    def mark(self, *kinds: str) -> tuple[int, int]:
        """Number of judgments of some kinds, and the last id: it differs if the judgments do."""
        query = sa.select(sa.func.count(), sa.func.max(schema.judgments.c.id)).where(_is_among(kinds))
        n, last = next(self._rows(query))
        return n, last or 0

    # --- answers to questions about songs -----------------------------------------------------

    def answers(self, listener: str | None = None) -> list[Judgment]:
        """Answers to questions about songs, oldest first; all, or those of one listener."""
        return self.all(*FORMS, listener=listener)

    def count(self, listener: str | None = None) -> int:
        """Number of answers to questions about songs; all, or those of one listener."""
        query = sa.select(sa.func.count()).select_from(schema.judgments)
        return self._value(query.where(_is_among(FORMS, listener))) or 0

    def listeners(self) -> list[str]:
        """Names of the listeners, sorted."""
        listener = schema.judgments.c.listener
        return self._values(sa.select(listener).where(listener != "").distinct().order_by(listener))

    def rename(self, old: str, new: str) -> None:
        """Rename a listener; a listener who has the new name becomes the same one.

        Raises ValueError if `new` is empty or cannot be stored.
        """
        change = schema.judgments.update().where(schema.judgments.c.listener == old)
        with self._write() as connection:
            connection.execute(change.values(listener=listener_name(new)))

    def forget_listener(self, name: str) -> int:
        """Delete all judgments of a listener and return how many there were."""
        with self._write() as connection:
            return connection.execute(schema.judgments.delete().where(schema.judgments.c.listener == name)).rowcount

    # --- ratings of search results ------------------------------------------------------------

    def rate_results(self, query_id: int, rated: Mapping[int, int]) -> None:
        """Replace the ratings of the results for a song: 1 (similar) or -1 (not), by song id; empty deletes them.

        Raises ValueError if a song rates itself, or a rating is another number; NotFoundError if a song is not in the
        library. Nothing is written then.
        """
        j, created_at = schema.judgments, time.time()
        rows = [judgment_row(created_at, "", RESULT, (query_id, song), value) for song, value in rated.items()]
        try:
            with self._write() as connection:
                connection.execute(j.delete().where(j.c.kind == RESULT, j.c.song_1 == query_id))
                if rows:
                    connection.execute(j.insert(), rows)
        except sa.exc.IntegrityError as error:
            raise NotFoundError("a rated song, or the song of the query, is no longer here. Search again.") from error

    def rated_results(self, query_id: int) -> dict[int, int]:
        """Ratings of the results for a song, by song id, oldest first."""
        j = schema.judgments.c
        query = sa.select(j.song_2, j.chosen).where(j.kind == RESULT, j.song_1 == query_id).order_by(j.id)
        return {row.song_2: row.chosen for row in self._rows(query)}


def _is_among(kinds: Sequence[str], listener: str | None = None) -> sa.ColumnElement[bool]:
    j = schema.judgments.c
    of_kinds = j.kind.in_(kinds)
    return of_kinds if listener is None else sa.and_(of_kinds, j.listener == listener)


def _judgment(row: dict[str, Any]) -> Judgment:
    ids = [row.pop(song.name) for song in schema.JUDGED_SONGS]
    return Judgment(**row, song_ids=tuple(i for i in ids if i is not None))


class Opinions:
    """Judgments, and thumbs on songs, in one database."""

    def __init__(self, engine: sa.Engine, write: Write) -> None:
        self._opinions, self._write_opinion = engine, write
        self.judgments = JudgmentStore(engine, write)

    def feedback(self) -> dict[int, int]:
        """Thumbs by song id: +1 or -1."""
        f = schema.feedback.c
        with self._opinions.connect() as connection:
            return {row.song_id: row.value for row in connection.execute(sa.select(f.song_id, f.value))}

    def set_feedback(self, song_id: int, value: int) -> None:
        """Store a thumb, +1 or -1; 0 deletes it."""
        with self._write_opinion() as connection:
            connection.execute(schema.feedback.delete().where(schema.feedback.c.song_id == song_id))
            if value:
                connection.execute(
                    schema.feedback.insert().values(song_id=song_id, value=int(np.sign(value)), created_at=time.time())
                )


def opinions_in_memory() -> Opinions:
    """Opinions of one visitor, which are gone with the object; their songs are not checked."""
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool, connect_args={"check_same_thread": False})
    with engine.begin() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count={_MAX_PAGES}")
        schema.metadata.create_all(connection, tables=(schema.judgments, schema.feedback))
    return Opinions(engine, engine.begin)


# --- checks ---------------------------------------------------------------------------------------


def judgment_row(
    created_at: float,
    listener: str,
    kind: str,
    song_ids: Sequence[int],
    chosen: int | None,
    context: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Check a judgment and make its row of the table. Raises ValueError if it is invalid."""
    ids, context = [int(song_id) for song_id in song_ids], context or {}
    if kind in FORMS:
        _check_question(kind, ids, chosen)
        listener, context = listener_name(listener), _question_context(chosen, **context)
    elif kind == RESULT:
        if len(set(ids)) != 2 or chosen not in (-1, 1):
            raise ValueError(f"song_ids={tuple(ids)}, chosen={chosen}: rate another song, by 1 or -1.")
    else:
        _check_choice(kind, ids, chosen, context)
    return {
        "created_at": round(created_at, 6),  # as in an exported file
        "listener": listener,
        "kind": kind,
        **{song.name: None for song in schema.JUDGED_SONGS},
        **{song.name: song_id for song, song_id in zip(schema.JUDGED_SONGS, ids, strict=False)},
        "chosen": None if chosen is None else int(chosen),
        "context": checked_details(context),
    }


def _check_question(form: str, ids: Sequence[int], chosen: int | None) -> None:
    if not _FEWEST <= len(set(ids)) == len(ids) <= _MOST:
        raise ValueError(f"song_ids={tuple(ids)} must be {_FEWEST} or {_MOST} different songs.")
    first = int(form == "like")
    if chosen is not None and not (isinstance(chosen, Integral) and first <= chosen < len(ids)):
        raise ValueError(f"chosen={chosen!r} must be a place from {first} to {len(ids) - 1}, or None for unsure.")


def _question_context(
    chosen: int | None, *, is_random: bool = False, foreseen: bool | None = None, model: str = ""
) -> dict[str, Any]:
    if chosen is None and foreseen is not None:
        raise ValueError(f"foreseen={foreseen!r} must be None for an unsure answer.")
    return {
        "is_random": bool(is_random),
        "foreseen": None if foreseen is None else bool(foreseen),
        "model": _storable("model", model),
    }


def _check_choice(kind: str, ids: Sequence[int], chosen: int | None, context: Mapping[str, Any]) -> None:
    options = context.get("options", ())
    if not kind or ids or len(options) != 2 or not all(options):
        raise ValueError(
            f"kind={kind!r} must be one of {', '.join((*FORMS, RESULT))}, or a choice between two named options."
        )
    if options[0] == options[1]:
        raise ValueError(f"options={tuple(options)!r} must be different.")
    if chosen not in (0, 1, None):
        raise ValueError(f"chosen={chosen!r} must be 0, 1 or None for no difference.")


def listener_name(name: str) -> str:
    """Normalize the white space in the name of a listener.

    Raises ValueError if it is empty, or UTF-8 cannot hold it.
    """
    kept = " ".join(_storable("listener", name).split())
    if not kept:
        raise ValueError("listener must not be empty: name the listener.")
    return kept


def _storable(argument: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{argument}={text!r} must be text that UTF-8 can hold.") from None
    return text
