"""The trial of Compare: settings, the next question, which is prepared in the background, and the record."""

import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from musicsim.explorer import Snapshot
from musicsim.explorer.survey.questions import Criterion, Question, is_predicted, next_question
from musicsim.library import Judgment, Library, Opinions
from musicsim.library.stores.judgments import FORMS
from musicsim.ui.base import Key, openers
from musicsim.ui.components import Asked, Session, Sitting

_MAX_NAME = 60
_POOL = ThreadPoolExecutor(1, thread_name_prefix="compare")


@dataclass(slots=True)
class Survey(Sitting[Question]):
    """The questions and answers of a session, and the next question."""

    ahead: "tuple[tuple[Any, ...], Future[Question]] | None" = None  # the next question, and what it was prepared for
    seed: int = field(default_factory=lambda: secrets.randbits(32))


FORM: Key[str] = Key("compare_form", lambda: FORMS[0], "kind of question, one of FORMS")
N_SONGS: Key[int] = Key("compare_n_songs", lambda: 3, "number of songs in a question")
LISTENER: Key[str | None] = Key("compare_listener", lambda: None, "name of the person who answers")
SHOW_NAMES: Key[bool] = Key("compare_names", lambda: False, "True if song names are shown before the answer")
CRITERION: Key[Criterion | None] = Key("compare_criterion", lambda: None, "the value of a question; None: information")
ASKED: Key[Survey] = Key("compare_asked", Survey, "the session's questions and answers")


def clean_name(text: str | None) -> str:
    """Return a listener's name as it is stored; it may be empty."""
    return " ".join((text or "").split())[:_MAX_NAME].strip()


def _record(opinions: Opinions, question: Question, chosen: int | None) -> int:
    snapshot = openers.snapshot()
    return opinions.judgments.add(
        question.listener, question.form, question.song_ids, chosen, is_random=question.is_random,
        foreseen=None if chosen is None else is_predicted(snapshot, question, chosen),
        model=snapshot.record.name if snapshot.record else "",
    )  # fmt: skip


class _Compare(Session[Question]):
    def undo(self) -> None:
        """Delete the last answer and ask its question again, with the settings that it was asked with."""
        answer = self.last_answer(openers.snapshot().library)
        super().undo()
        if answer is not None:
            FORM.set(answer.question.form)
            N_SONGS.set(len(answer.question.song_ids))
            LISTENER.set(answer.question.listener)


SESSION = _Compare(ASKED, _record, reveals=False)


def pending_question(snapshot: Snapshot, answers: Sequence[Judgment], listener: str) -> Asked[Question]:
    """Return the question on the page, and prepare the one after it. Raises the errors of :func:`next_question`."""

    def is_valid(question: Question) -> bool:
        """Return True if a question has the chosen form and size, and is about indexed songs for this listener."""
        is_chosen = (question.form, len(question.song_ids)) == (FORM.get(), N_SONGS.get())
        return question.listener == listener and is_chosen and bool((snapshot.rows_of(question.song_ids) >= 0).all())

    pending = SESSION.current(snapshot.library, is_valid)
    if pending is None:
        pending = SESSION.ask(snapshot.library, _take_next(snapshot, answers, listener))
    survey = ASKED.get()
    state, _ = survey.ahead or (None, None)
    if state != _state(snapshot, listener):
        # this takes the pending question into account, but not its answer, because one answer changes little
        future = _POOL.submit(_question_after(snapshot, answers, listener, pending))
        survey.ahead = _state(snapshot, listener), future
    return pending


def _state(snapshot: Snapshot, listener: str) -> tuple[Any, ...]:
    chosen = listener, FORM.get(), N_SONGS.get(), CRITERION.get()
    return snapshot.library.place, snapshot.revision, snapshot.model_id, *chosen


def _take_next(snapshot: Snapshot, answers: Sequence[Judgment], listener: str) -> Question:
    survey = ASKED.get()
    state, question = survey.ahead or (None, None)
    survey.ahead = None
    if question is not None and state == _state(snapshot, listener):
        return question.result()
    return _question_after(snapshot, answers, listener)()


def _question_after(
    snapshot: Snapshot, answers: Sequence[Judgment], listener: str, *pending: Asked[Question]
) -> Callable[[], Question]:
    """Return a function that computes the next question; it does not use the session, so that a thread can call it."""
    survey = ASKED.get()
    unanswered = [  # skipped and pending questions count as answers without a choice
        Judgment(-1, time.time(), other.question.listener, other.question.form, other.question.song_ids, None)
        for other in (*survey.skipped, *pending)
        if other.library == snapshot.library.folder
    ]
    return partial(
        next_question, snapshot, [*answers, *unanswered], listener=listener, form=FORM.get(), n_songs=N_SONGS.get(),
        criterion=CRITERION.get(), rng=np.random.default_rng([survey.seed, survey.turn]),
    )  # fmt: skip


def rename(library: Library, old: str, new: str) -> None:
    """Rename a listener in the library and in this session."""
    library.judgments.rename(old, new)
    SESSION.revise(library, lambda one: replace(one, listener=new) if one.listener == old else one)
    LISTENER.set(new)
