"""Listening tests that were frozen, who takes part in them by which link, and what they graded."""

import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import sqlalchemy as sa

from musicsim.errors import NotFoundError
from musicsim.extensions.listening_tests import tables
from musicsim.library import Library
from musicsim.library.db.database import Tables

CATEGORIES = ("not similar", "somewhat similar", "very similar")
MAX_FINE = 100
MAX_LISTENERS = 200
"""Of one test."""


@dataclass(frozen=True, slots=True)
class KeptTest:
    """A listening test as the library has it."""

    id: int
    name: str
    digest: str
    created_at: float  # seconds since 1970
    document: str  # JSON: musicsim.extensions.listening_tests.frozen reads it


@dataclass(frozen=True, slots=True)
class InvitedListener:
    """Somebody who takes part in a test."""

    id: int
    test_id: int
    number: int  # among those of the test, from 0 on
    name: str
    token: str  # in the link
    consented_at: float | None  # None: not yet


@dataclass(frozen=True, slots=True)
class Grade:
    """What a listener said of a pair of songs; neither category nor fine score where a song could not be heard."""

    pair: int  # its place in the test
    category: int | None  # place in CATEGORIES
    fine: int | None  # 0 to 100
    graded_at: float

    def __post_init__(self) -> None:
        if (self.category is None) != (self.fine is None):
            raise ValueError("category and fine should both be given, or neither.")
        if self.category is not None and not 0 <= self.category < len(CATEGORIES):
            raise ValueError(f"category={self.category} should be from 0 to {len(CATEGORIES) - 1}.")
        if self.fine is not None and not 0 <= self.fine <= MAX_FINE:
            raise ValueError(f"fine={self.fine} should be from 0 to {MAX_FINE}.")


class ListeningTestStore(Tables):
    """The tests of one library; what is graded is no change that pages have to be drawn again for."""

    def __init__(self, library: Library) -> None:
        super().__init__(library.engine, library.write_unseen)

    # --- tests --------------------------------------------------------------------------------

    def add(self, name: str, digest: str, document: str) -> int:
        """Keep a test; its number. One of the same digest is the same test, and is kept as it is."""
        t = tables.listening_tests
        row = {"name": name, "digest": digest, "created_at": time.time(), "document": document}
        with self._write() as connection:
            known = connection.scalar(sa.select(t.c.id).where(t.c.digest == digest))
            if known is not None:
                return int(known)
            key = connection.execute(t.insert().values(**row)).inserted_primary_key
        return int(key[0])  # type: ignore[index]

    def all(self) -> list[KeptTest]:
        """All tests, the newest first."""
        return self._tests(sa.true())

    def get(self, test_id: int) -> KeptTest:
        """A test. Raises NotFoundError if there is none of the number."""
        found = self._tests(tables.listening_tests.c.id == test_id)
        if not found:
            raise NotFoundError(f"there is no listening test {test_id}: it was deleted. Choose another one.")
        return found[0]

    def _tests(self, which: sa.ColumnElement[bool]) -> list[KeptTest]:
        t = tables.listening_tests.c
        query = sa.select(*(t[f.name] for f in fields(KeptTest))).where(which).order_by(t.id.desc())
        return [KeptTest(*row) for row in self._rows(query)]

    def delete(self, test_id: int) -> None:
        """Delete a test with its listeners and all that they graded."""
        t = tables.listening_tests
        with self._write() as connection:
            connection.execute(t.delete().where(t.c.id == test_id))

    # --- listeners ----------------------------------------------------------------------------

    def invite(self, test_id: int, names: Sequence[str]) -> list[InvitedListener]:
        """Let more people take part, each by a link of their own.

        Raises ValueError if there would be more than 200, or a name is empty.
        """
        table = tables.test_listeners
        kept = [" ".join(name.split()) for name in names]
        if not all(kept):
            raise ValueError("names must not be empty: say who takes part.")
        with self._write() as connection:
            known = sa.select(sa.func.count()).select_from(table).where(table.c.test_id == test_id)
            n = connection.scalar(known) or 0
            if n + len(kept) > MAX_LISTENERS:
                raise ValueError(f"a test has at most {MAX_LISTENERS} listeners; it has {n} already.")
            rows = [
                {"test_id": test_id, "number": n + at, "name": name, "token": secrets.token_urlsafe(18)}
                for at, name in enumerate(kept)
            ]
            if rows:
                connection.execute(table.insert(), rows)
        return self.listeners(test_id)[-len(kept) :] if kept else []

    def listeners(self, test_id: int) -> list[InvitedListener]:
        """Who takes part in a test, by number."""
        return self._listeners(tables.test_listeners.c.test_id == test_id)

    def listener_of(self, token: str) -> InvitedListener:
        """Whose link holds a token. Raises NotFoundError if it is nobody's."""
        found = self._listeners(tables.test_listeners.c.token == token)
        if not found:
            raise NotFoundError("this link leads to no listening test. Ask for a new one.")
        return found[0]

    def _listeners(self, which: sa.ColumnElement[bool]) -> list[InvitedListener]:
        c = tables.test_listeners.c
        query = sa.select(*(c[f.name] for f in fields(InvitedListener))).where(which).order_by(c.number)
        return [InvitedListener(*row) for row in self._rows(query)]

    def consent(self, listener_id: int, at: float) -> None:
        """Note when a listener agreed to take part; the first time counts."""
        table = tables.test_listeners
        with self._write() as connection:
            connection.execute(
                table.update().where(table.c.id == listener_id, table.c.consented_at.is_(None)).values(consented_at=at)
            )

    # --- grades -------------------------------------------------------------------------------

    def grade(self, listener_id: int, grades: Iterable[Grade]) -> None:
        """Keep what a listener said of some pairs, in the place of what they said of these before."""
        rows = [asdict(grade) | {"listener_id": listener_id} for grade in grades]
        if rows:
            with self._write() as connection:
                connection.execute(tables.grades.insert().prefix_with("OR REPLACE"), rows)

    def grades(self, test_id: int) -> dict[int, list[Grade]]:
        """What each listener of a test graded, by their id, oldest first."""
        found: dict[int, list[Grade]] = {one.id: [] for one in self.listeners(test_id)}
        g = tables.grades.c
        for listener_id, *said in self._grades(g.listener_id.in_(list(found)), g.listener_id):
            found[listener_id].append(Grade(*said))
        return found

    def grades_of(self, listener_id: int) -> list[Grade]:
        """What a listener graded, oldest first."""
        return [Grade(*row) for row in self._grades(tables.grades.c.listener_id == listener_id)]

    def _grades(self, which: sa.ColumnElement[bool], *first: sa.ColumnElement[int]) -> Iterator[Any]:
        """Some columns, then those of :class:`Grade`, oldest first."""
        g = tables.grades.c
        query = sa.select(*first, *(g[f.name] for f in fields(Grade))).where(which)
        return self._rows(query.order_by(g.graded_at, g.pair))
