"""A library's listening tests, with their listeners, links and grades."""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import sqlalchemy as sa

from musicsim.errors import NotFoundError
from musicsim.library import IN_SMALL_COPY, Library, Tables, metadata, new_token

CATEGORIES = ("not similar", "somewhat similar", "very similar")
MAX_FINE = 100
MAX_LISTENERS = 200  # maximum number of listeners per test
MAX_MODELS = 6


# a test's document identifies songs by hashes, not by ids
_tests = sa.Table(
    "listening_tests",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False, unique=True),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("document", sa.Text, nullable=False),  # JSON
    sqlite_autoincrement=True,
    info=IN_SMALL_COPY,
)

# participants in a test, each with a link
_listeners = sa.Table(
    "test_listeners",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("test_id", sa.ForeignKey("listening_tests.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("number", sa.Integer, nullable=False),  # 0 for the first listener; determines the order of the pairs
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("token", sa.Text, nullable=False, unique=True, info={"is_token": True}),
    sa.Column("consented_at", sa.Float),
    sqlite_autoincrement=True,
    info=IN_SMALL_COPY,
)

_grades = sa.Table(
    "grades",
    metadata,
    sa.Column("listener_id", sa.ForeignKey("test_listeners.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("pair", sa.Integer, primary_key=True),  # index of the pair in the document
    sa.Column("category", sa.Integer),  # 0: not, 1: somewhat, 2: very similar; None if a song could not be played
    sa.Column("fine", sa.Integer),  # 0 to 100; None if a song could not be played
    sa.Column("graded_at", sa.Float, nullable=False),
    info=IN_SMALL_COPY,
)


@dataclass(frozen=True, slots=True)
class KeptTest:
    id: int
    name: str
    digest: str
    created_at: float  # seconds since 1970
    document: str  # JSON (see musicsim.extensions.listening_tests.frozen)


@dataclass(frozen=True, slots=True)
class InvitedListener:
    id: int
    test_id: int
    number: int  # 0 for the first listener of the test
    name: str
    token: str  # secret part of the link
    consented_at: float | None


@dataclass(frozen=True, slots=True)
class Grade:
    """A listener's grade for a pair; the category and fine score are None if a song could not be played.

    Raises ValueError for values out of range, also if a grade is read from a file.
    """

    pair: int  # index of the pair in the test
    category: int | None  # index into CATEGORIES
    fine: int | None  # 0 to 100
    graded_at: float  # seconds since 1970

    def __post_init__(self) -> None:
        if self.pair < 0 or not 0 <= self.graded_at < math.inf:
            raise ValueError(f"pair={self.pair} and graded_at={self.graded_at} must be finite and not negative.")
        if (self.category is None) != (self.fine is None):
            raise ValueError("give both category and fine, or neither.")
        if self.category is not None and not 0 <= self.category < len(CATEGORIES):
            raise ValueError(f"category={self.category} must be from 0 to {len(CATEGORIES) - 1}.")
        if self.fine is not None and not 0 <= self.fine <= MAX_FINE:
            raise ValueError(f"fine={self.fine} must be from 0 to {MAX_FINE}.")


class ListeningTestStore(Tables):
    """The tests in one library. Changes do not increase the library's revision, because no other page shows tests."""

    def __init__(self, library: Library) -> None:
        super().__init__(library.engine, library.write_unseen)

    def add(self, name: str, digest: str, document: str) -> int:
        """Store a test and return its id. A test whose digest is already known is not stored again."""
        t = _tests
        row = {"name": name, "digest": digest, "created_at": time.time(), "document": document}
        with self._write() as connection:
            known = connection.scalar(sa.select(t.c.id).where(t.c.digest == digest))
            if known is not None:
                return int(known)
            key = connection.execute(t.insert().values(**row)).inserted_primary_key
        return int(key[0])  # type: ignore[index]

    def all(self) -> list[KeptTest]:
        return self._select_tests(sa.true())

    def get(self, test_id: int) -> KeptTest:
        tests = self._select_tests(_tests.c.id == test_id)
        if not tests:
            raise NotFoundError(f"listening test {test_id} was deleted. Choose a different test.")
        return tests[0]

    def _select_tests(self, condition: sa.ColumnElement[bool]) -> list[KeptTest]:
        t = _tests.c
        query = sa.select(*(t[f.name] for f in fields(KeptTest))).where(condition).order_by(t.id.desc())
        return [KeptTest(*row) for row in self._rows(query)]

    def delete(self, test_id: int) -> None:
        self._execute(_tests.delete().where(_tests.c.id == test_id))

    def invite(self, test_id: int, names: Sequence[str]) -> list[InvitedListener]:
        """Add listeners to a test and return them. Raises ValueError if the test then has more than 200 listeners."""
        table = _listeners
        with self._write() as connection:
            known = sa.select(sa.func.count()).select_from(table).where(table.c.test_id == test_id)
            n = connection.scalar(known) or 0
            if n + len(names) > MAX_LISTENERS:
                raise ValueError(f"a test can have at most {MAX_LISTENERS} listeners; this test already has {n}.")
            rows = [
                {"test_id": test_id, "number": number, "name": name, "token": new_token()}
                for number, name in enumerate(names, n)
            ]
            if rows:
                connection.execute(table.insert(), rows)
        return self.listeners(test_id)[n:]

    def listeners(self, test_id: int) -> list[InvitedListener]:
        return self._select_listeners(_listeners.c.test_id == test_id)

    def listener_of(self, token: str) -> InvitedListener:
        listeners = self._select_listeners(_listeners.c.token == token)
        if not listeners:
            raise NotFoundError("this link is not valid. Ask for a new one.")
        return listeners[0]

    def _select_listeners(self, condition: sa.ColumnElement[bool]) -> list[InvitedListener]:
        c = _listeners.c
        query = sa.select(*(c[f.name] for f in fields(InvitedListener))).where(condition).order_by(c.number)
        return [InvitedListener(*row) for row in self._rows(query)]

    def consent(self, listener_id: int, at: float) -> None:
        """Save the time of a listener's consent, unless it has already been saved."""
        t = _listeners
        self._execute(t.update().where(t.c.id == listener_id, t.c.consented_at.is_(None)).values(consented_at=at))

    def grade(self, listener_id: int, grades: Iterable[Grade]) -> None:
        """Save a listener's grades, replacing earlier grades for the same pairs."""
        rows = [asdict(grade) | {"listener_id": listener_id} for grade in grades]
        self._write_rows((_grades.insert().prefix_with("OR REPLACE"), rows))

    def grades(self, test_id: int) -> dict[int, list[Grade]]:
        """Return a dict from listener id to the listener's grades in a test, oldest first."""
        grades: dict[int, list[Grade]] = {listener.id: [] for listener in self.listeners(test_id)}
        g = _grades.c
        for listener_id, *values in self._select_grades(g.listener_id.in_(list(grades)), g.listener_id):
            grades[listener_id].append(Grade(*values))
        return grades

    def grades_of(self, listener_id: int) -> list[Grade]:
        """Return a listener's grades, oldest first."""
        return [Grade(*row) for row in self._select_grades(_grades.c.listener_id == listener_id)]

    def _select_grades(self, condition: sa.ColumnElement[bool], *first: sa.ColumnElement[int]) -> Iterator[Any]:
        """Yield rows with the columns `first` and the fields of :class:`Grade`, oldest first."""
        g = _grades.c
        query = sa.select(*first, *(g[f.name] for f in fields(Grade))).where(condition)
        return self._rows(query.order_by(g.graded_at, g.pair))
