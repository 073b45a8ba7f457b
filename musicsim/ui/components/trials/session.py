"""A session's questions in a trial: the one on the page, its answer, skipped ones, and undo."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.library import Library, Opinions
from musicsim.ui.base import Key, openers, opinions, plain
from musicsim.ui.base.visitors import keep_answers

Q = TypeVar("Q")


@dataclass(frozen=True, slots=True)
class Asked(Generic[Q]):
    """A question about songs of the library in the folder `library`, and its answer."""

    library: Path
    question: Q
    chosen: int | None = None  # position of the chosen song or option; None before the answer, and if unsure
    answer_id: int | None = None  # id of the stored answer; None before the answer


@dataclass(slots=True)
class Sitting(Generic[Q]):
    """The questions and answers of one trial in a browser session."""

    current: Asked[Q] | None = None
    answers: list[Asked[Q]] = field(default_factory=list)  # oldest first
    put_off: list[Asked[Q]] = field(default_factory=list)  # questions that were current when an answer was undone
    skipped: list[Asked[Q]] = field(default_factory=list)
    turn: int = 0  # number of the current question, sent with each action

    @property
    def pending(self) -> Asked[Q] | None:
        """The question on the page, unless it is answered."""
        return self.current if self.current is not None and self.current.answer_id is None else None


@dataclass(frozen=True)
class Session(Generic[Q]):
    """A trial on a page. An answer is stored at once, so that a closed tab does not lose it.

    If an answer `reveals` what was hidden, its question stays on the page, and is never asked again. Otherwise the next
    question takes its place, and an undone question is asked again. `record` stores an answer and returns its id.
    """

    key: Key[Any]  # of Sitting[Q]
    record: Callable[[Opinions, Q, int | None], int]
    reveals: bool = True

    def current(self, library: Library, is_valid: Callable[[Q], bool] = lambda _: True) -> Asked[Q] | None:
        """Return the valid question on the page, else one that was put off; None if a new one must be asked."""
        sitting: Sitting[Q] = self.key.get()

        def is_usable(asked: Asked[Q]) -> bool:
            is_open = self.reveals or asked.answer_id is None
            return is_open and asked.library == library.folder and is_valid(asked.question)

        if sitting.current is None or not is_usable(sitting.current):
            sitting.put_off = list(filter(is_usable, sitting.put_off))
            self._show(sitting.put_off.pop() if sitting.put_off else None)
        return sitting.current

    def ask(self, library: Library, question: Q) -> Asked[Q]:
        """Put a question on the page."""
        asked = Asked(library.folder, question)
        self._show(asked)
        return asked

    def _show(self, asked: Asked[Q] | None) -> None:
        sitting = self.key.get()
        sitting.current = asked
        sitting.turn += asked is not None

    def answer(self, chosen: int | None) -> None:
        """Store the answer to the question on the page, in a callback."""
        library, sitting = openers.snapshot().library, self.key.get()
        asked = sitting.pending
        if asked is None or asked.library != library.folder:
            return
        try:
            answer_id = self.record(opinions(library), asked.question, chosen)
        except MusicsimError as error:  # one of the songs was just removed from the library
            sitting.current = None
            st.toast(plain(error), icon=":material/error:")
        else:
            sitting.current = replace(asked, chosen=chosen, answer_id=answer_id)
            sitting.answers.append(sitting.current)
            keep_answers(library)

    def skip(self) -> None:
        """Take the question from the page without an answer, in a callback."""
        sitting = self.key.get()
        if sitting.pending is not None:
            sitting.skipped.append(sitting.pending)
            sitting.current = None

    def last_answer(self, library: Library) -> Asked[Q] | None:
        """Return the answer that can be undone."""
        answers = self.key.get().answers
        return answers[-1] if answers and answers[-1].library == library.folder else None

    def undo(self) -> None:
        """Delete the last answer, in a callback."""
        library, sitting = openers.snapshot().library, self.key.get()
        answer = self.last_answer(library)
        if answer is None or answer.answer_id is None:
            return
        opinions(library).judgments.forget(answer.answer_id)
        keep_answers(library)
        sitting.answers.pop()
        if self.reveals:
            sitting.current = None if sitting.current == answer else sitting.current
            st.toast("The last answer was undone.", icon=":material/undo:")
        else:
            sitting.put_off += [sitting.pending] if sitting.pending is not None else []
            self._show(replace(answer, chosen=None, answer_id=None))

    def revise(self, library: Library, change: Callable[[Q], Q]) -> None:
        """Change all questions about a library."""
        sitting = self.key.get()

        def revised(these: list[Asked[Q]]) -> list[Asked[Q]]:
            return [replace(a, question=change(a.question)) if a.library == library.folder else a for a in these]

        for name in ("answers", "put_off", "skipped"):
            setattr(sitting, name, revised(getattr(sitting, name)))
        sitting.current = revised([sitting.current])[0] if sitting.current is not None else None
