"""A listener's part in a listening test: giving consent, listening to pairs and grading them.

A public demonstration with ``--keep-answers`` saves the grades in one file per listener; see :func:`import_grades`.
"""

import threading
import time
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from musicsim.errors import LibraryError, NotFoundError, OwnerOnlyError
from musicsim.extensions.listening_tests.frozen import FileModel, ListeningTest, read_test
from musicsim.extensions.listening_tests.store import Grade, InvitedListener, ListeningTestStore
from musicsim.library import Library, Song, atomic_path
from musicsim.public import find_answers_folder, is_public

_MAX_BYTES = 4 << 20
_writing = threading.Lock()


class _GradesFile(FileModel):
    test: Annotated[str, Field(max_length=100)]  # digest of the test
    number: Annotated[int, Field(ge=0)]
    consented_at: float | None
    grades: list[Grade]


class TakingPart:
    """A listener taking part in a test. Raises NotFoundError if the token is unknown."""

    def __init__(self, library: Library, token: str) -> None:
        self.library, self._tests = library, ListeningTestStore(library)
        self.listener: InvitedListener = self._tests.listener_of(token)
        self.test: ListeningTest = test_of(library, self.listener.test_id)
        self._order = self.test.order_of(self.listener.number)
        self._file: Path | None = None
        if is_public():
            folder = find_answers_folder()
            if folder is None:
                raise OwnerOnlyError("This demonstration does not save grades. Start it with --keep-answers.")
            name = blake2b(token.encode(), digest_size=12).hexdigest()
            self._file = folder / f"listening-{self.test.digest[:8]}-{name}.json"

    def state(self, place: int | None = None) -> dict[str, Any]:
        """Return the page's data for a position that the listener has reached, by default the first without a grade."""
        consented_at, grades = self._load()
        first_open = next((i for i, pair in enumerate(self._order) if pair not in grades), len(self._order))
        place = first_open if place is None else place
        if not 0 <= place <= first_open:
            raise NotFoundError(f"{place}: this pair is not available yet.")
        has_pair = consented_at is not None and place < len(self._order)
        pair = self.test.pairs[self._order[place]] if has_pair else None
        grade = grades.get(self._order[place]) if has_pair else None
        return {
            "name": self.test.name, "consent": self.test.consent, "has_consented": consented_at is not None,
            "seconds": self.test.seconds, "n_pairs": len(self._order), "n_graded": len(grades), "place": place,
            "starts": [self.test.songs[i].start_s for i in (pair.query, pair.result)] if pair else [],
            "grade": [grade.category, grade.fine] if grade else None,
        }  # fmt: skip

    def song(self, place: int, side: int) -> Song:
        """Return a pair's query (side 0) or result (side 1). Raises NotFoundError if the song is not available."""
        pair = self.test.pairs[self._pair_at(place)]
        song = self.test.songs[pair.result if side else pair.query]
        song_id = self.library.song_with_sound(song.content_hash, song.sound_hash)
        if song_id is None:
            raise NotFoundError("this song is no longer in the library.")
        return self.library.song(song_id)

    def _pair_at(self, place: int) -> int:
        if not self.state(place)["starts"]:
            raise NotFoundError(f"{place}: there is no pair at this position.")
        return self._order[place]

    def consent(self) -> dict[str, Any]:
        """Save the listener's consent, and return the page's new data."""
        if self._file is None:
            self._tests.consent(self.listener.id, time.time())
            self.listener = self._tests.listener_of(self.listener.token)
        else:
            self._save_to_file(None)
        return self.state()

    def grade(self, place: int, category: int | None, fine: int | None) -> dict[str, Any]:
        """Grade a pair, and return the page's new data; the grades are None if a song cannot be played.

        Raises NotFoundError if the listener has not reached the pair yet.
        """
        grade = Grade(self._pair_at(place), category, fine, time.time())
        if self._file is None:
            self._tests.grade(self.listener.id, [grade])
        else:
            self._save_to_file(grade)
        return self.state()

    def _load(self) -> tuple[float | None, dict[int, Grade]]:
        if self._file is None:
            return self.listener.consented_at, {grade.pair: grade for grade in self._tests.grades_of(self.listener.id)}
        if not self._file.exists():
            return None, {}
        content = _read_grades(self._file.read_bytes(), self._file.name)
        return content.consented_at, {grade.pair: grade for grade in content.grades}

    def _save_to_file(self, grade: Grade | None) -> None:
        assert self._file is not None
        with _writing:
            consented_at, grades = self._load()
            if grade is None:
                consented_at = consented_at or time.time()
            else:
                grades[grade.pair] = grade
            content = _GradesFile(
                test=self.test.digest, number=self.listener.number, consented_at=consented_at,
                grades=list(grades.values()),
            )  # fmt: skip
            with atomic_path(self._file) as temporary:
                temporary.write_text(content.model_dump_json(), encoding="utf-8")


def test_of(library: Library, test_id: int) -> ListeningTest:
    stored = ListeningTestStore(library).get(test_id)
    return read_test(stored.document, stored.name)


def import_grades(library: Library, data: bytes, name: str) -> None:
    """Import a listener's grades from a file that a public demonstration saved."""
    content = _read_grades(data, name)
    tests = ListeningTestStore(library)
    for test in tests.all():
        for listener in tests.listeners(test.id) if test.digest == content.test else ():
            if listener.number == content.number:
                n_pairs, last = (
                    len(test_of(library, test.id).pairs),
                    max((one.pair for one in content.grades), default=0),
                )
                if last >= n_pairs:
                    raise LibraryError(
                        f"{name}: pair {last} is not in the test. Copy the file from the demonstration again."
                    )
                if content.consented_at is not None:
                    tests.consent(listener.id, content.consented_at)
                tests.grade(listener.id, content.grades)
                return
    raise LibraryError(f"{name} belongs to a test or listener that is not in this library.")


def _read_grades(data: bytes, name: str) -> _GradesFile:
    try:
        if len(data) > _MAX_BYTES:
            raise ValueError("the file is too large")
        return _GradesFile.model_validate_json(data)
    except ValueError as error:  # includes pydantic's ValidationError
        raise LibraryError(f"{name} does not contain grades from a listening test. Choose a different file.") from error
