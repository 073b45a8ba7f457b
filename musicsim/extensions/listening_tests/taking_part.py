"""What somebody with a link does in a listening test: agree, hear pairs, grade them.

Grades are kept in the library. A public demonstration changes no library: where its owner asked for it by
``--keep-answers``, what a listener says is kept as a file in that folder, which :func:`import_grades` reads.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from musicsim.errors import LibraryError, NotFoundError, OwnerOnlyError
from musicsim.extensions.listening_tests.frozen import ListeningTest, Said, read_test
from musicsim.extensions.listening_tests.store import Grade, InvitedListener, ListeningTestStore
from musicsim.library import Library, Song
from musicsim.library.disk.arrays import atomic_path
from musicsim.public import is_public, kept_answers_folder

_MAX_BYTES = 4 << 20
_writing = threading.Lock()


class _SaidGrade(Said):
    pair: Annotated[int, Field(ge=0)]
    category: int | None
    fine: int | None
    graded_at: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _SaidGrades(Said):
    test: Annotated[str, Field(max_length=100)]  # its digest
    number: Annotated[int, Field(ge=0)]
    consented_at: float | None
    grades: list[_SaidGrade]

    def checked(self, n_pairs: int) -> list[Grade]:
        """The grades. Raises ValueError if one is none of the test's pairs."""
        found = [Grade(**grade.model_dump()) for grade in self.grades]
        for grade in found:
            if grade.pair >= n_pairs:
                raise ValueError(f"pair {grade.pair} is not in the test")
        return found


class TakingPart:
    """A listener in a test.

    Raises NotFoundError if the token is nobody's; OwnerOnlyError in a public demonstration that keeps no answers.
    """

    def __init__(self, library: Library, token: str) -> None:
        self._library = library
        self.listener: InvitedListener = ListeningTestStore(library).listener_of(token)
        self.test: ListeningTest = test_of(library, self.listener.test_id)
        self._order = self.test.order_of(self.listener.number)
        self._file: Path | None = None
        if is_public():
            folder = kept_answers_folder()
            if folder is None:
                raise OwnerOnlyError("This demonstration keeps no answers: its owner starts it with --keep-answers.")
            name = blake2b(token.encode(), digest_size=12).hexdigest()
            self._file = folder / f"listening-{self.test.digest[:8]}-{name}.json"

    def state(self, place: int | None = None) -> dict[str, Any]:
        """What the listener's page shows: the pair at a place of their order; by default the first without a grade.

        Raises NotFoundError if there is no such place, or one before it has no grade.
        """
        consented_at, grades = self._said()
        open_places = [at for at, pair in enumerate(self._order) if pair not in grades]
        following = open_places[0] if open_places else len(self._order)
        at = following if place is None else place
        if not 0 <= at <= following:
            raise NotFoundError(f"{place}: this pair comes later.")
        has_pair = consented_at is not None and at < len(self._order)
        pair = self.test.pairs[self._order[at]] if has_pair else None
        grade = grades.get(self._order[at]) if has_pair else None
        return {
            "name": self.test.name,
            "consent": self.test.consent,
            "has_consented": consented_at is not None,
            "seconds": self.test.seconds,
            "n_pairs": len(self._order),
            "n_graded": len(grades),
            "place": at,
            "starts": [self.test.songs[i].start_s for i in (pair.query, pair.result)] if pair else [],
            "grade": [grade.category, grade.fine] if grade else None,
        }

    def song(self, place: int, side: int) -> Song:
        """The query (side 0) or the result (1) of a pair.

        Raises NotFoundError if the listener may not hear it yet, or the library has it no more.
        """
        pair = self.test.pairs[self._order[self._reached(place)]]
        song = self.test.songs[pair.result if side else pair.query]
        song_id = self._library.song_with_sound(song.content_hash, song.sound_hash)
        if song_id is None:
            raise NotFoundError("this song is no longer in the library.")
        return self._library.song(song_id)

    def _reached(self, place: int) -> int:
        """A place that the listener has come to; raises NotFoundError for others, and before they agreed."""
        if not self.state(place)["starts"]:
            raise NotFoundError(f"{place}: there is no pair to hear.")
        return place

    def consent(self) -> None:
        """Agree to take part."""
        self._say(lambda: ListeningTestStore(self._library).consent(self.listener.id, time.time()), None)

    def grade(self, place: int, category: int | None, fine: int | None) -> None:
        """Grade the pair at a place; neither category nor fine score where it cannot be heard.

        Raises NotFoundError if the listener has not come to the place; ValueError if it is no grade.
        """
        grade = Grade(self._order[self._reached(place)], category, fine, time.time())
        self._say(lambda: ListeningTestStore(self._library).grade(self.listener.id, [grade]), grade)

    # --- where it is kept ---------------------------------------------------------------------

    def _said(self) -> tuple[float | None, dict[int, Grade]]:
        """When the listener agreed, and what they graded, by pair."""
        if self._file is None:
            grades = ListeningTestStore(self._library).grades_of(self.listener.id)
            return self.listener.consented_at, {grade.pair: grade for grade in grades}
        if not self._file.exists():
            return None, {}
        said = _read(self._file.read_bytes(), self._file.name)
        return said.consented_at, {grade.pair: grade for grade in said.checked(len(self._order))}

    def _say(self, to_library: Callable[[], None], grade: Grade | None) -> None:
        if self._file is None:
            to_library()
            self.listener = ListeningTestStore(self._library).listener_of(self.listener.token)
            return
        with _writing:
            consented_at, grades = self._said()
            if grade is None:
                consented_at = consented_at or time.time()
            else:
                grades[grade.pair] = grade
            said = _SaidGrades(
                test=self.test.digest, number=self.listener.number, consented_at=consented_at,
                grades=[_SaidGrade(**asdict(one)) for one in grades.values()],
            )  # fmt: skip
            with atomic_path(self._file) as temporary:
                temporary.write_text(said.model_dump_json(), encoding="utf-8")


def test_of(library: Library, test_id: int) -> ListeningTest:
    """A test of a library. Raises NotFoundError if there is none of the number."""
    kept = ListeningTestStore(library).get(test_id)
    return read_test(kept.document, kept.name)


def import_grades(library: Library, data: bytes, name: str) -> str:
    """Take what a listener said in a public demonstration; the name of the listener.

    Raises LibraryError if the file is none, or about a test or listener that the library does not have.
    """
    said = _read(data, name)
    tests = ListeningTestStore(library)
    for kept in tests.all():
        for listener in tests.listeners(kept.id) if kept.digest == said.test else ():
            if listener.number == said.number:
                try:
                    grades = said.checked(len(test_of(library, kept.id).pairs))
                except ValueError as error:
                    raise LibraryError(f"{name}: {error}. Export it again.") from error
                if said.consented_at is not None:
                    tests.consent(listener.id, said.consented_at)
                tests.grade(listener.id, grades)
                return listener.name
    raise LibraryError(f"{name} belongs to a test or listener that this library does not have.")


def _read(data: bytes, name: str) -> _SaidGrades:
    try:
        if len(data) > _MAX_BYTES:
            raise ValueError("too large")
        return _SaidGrades.model_validate_json(data)
    except (ValidationError, ValueError) as error:
        raise LibraryError(f"{name} holds no grades of a listening test. Name another file.") from error
