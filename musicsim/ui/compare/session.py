"""A session's questions in Compare: the pending one, earlier and later ones, and undo."""

import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.survey.questions import Criterion, Question, is_predicted, next_question
from musicsim.library import Library
from musicsim.library.stores.judgments import FORMS, Judgment
from musicsim.ui.base import openers
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain
from musicsim.ui.base.visitors import keep_answers, opinions

_MAX_NAME = 60
_POOL = ThreadPoolExecutor(1, thread_name_prefix="compare")


@dataclass(frozen=True, slots=True)
class Pending:
    """A question for a listener about songs of the library in the folder `library`."""

    library: Path
    listener: str
    question: Question


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in this session: the position of the chosen song (None: unsure), and the answer's id in the library."""

    pending: Pending
    chosen: int | None
    answer_id: int


FORM: Key[str] = Key("compare_form", lambda: FORMS[0], "kind of question, one of FORMS")
N_SONGS: Key[int] = Key("compare_n_songs", lambda: 3, "number of songs in a question")
LISTENER: Key[str | None] = Key("compare_listener", lambda: None, "name of the person who answers")
SHOW_NAMES: Key[bool] = Key("compare_names", lambda: False, "True if song names are shown before the answer")
CRITERION: Key[Criterion | None] = Key("compare_criterion", lambda: None, "the value of a question; None: information")
_PENDING: Key[Pending | None] = Key("compare_asked", lambda: None, "the pending question")
_PUT_OFF: Key[list[Pending]] = Key("compare_put_off", list, "questions that were pending when an answer was undone")
_AHEAD: Key[tuple[tuple[Any, ...], "Future[Question]"] | None] = Key(
    "compare_ahead", lambda: None, "session state, and the next question that was prepared for this state"
)
_ANSWERS: Key[list[Answer]] = Key("compare_given", list, "this session's answers, oldest first")
_SKIPPED: Key[list[Pending]] = Key("compare_skipped", list, "questions skipped in this session")
TURN: Key[int] = Key("compare_turn", lambda: 0, "number of the pending question, sent with each action")
_SEED: Key[int] = Key("compare_seed", lambda: secrets.randbits(32), "random seed of the questions")


def clean_name(text: str | None) -> str:
    """Return a listener's name as it is stored; it may be empty."""
    return " ".join((text or "").split())[:_MAX_NAME].strip()


def pending_question(snapshot: Snapshot, answers: Sequence[Judgment], listener: str) -> Question:
    """Return the pending question, a postponed one, or a new one; raise ModelError if too few songs can be compared."""
    pending = _PENDING.get()
    if pending is None or not _is_valid(pending, snapshot, listener):
        put_off = [other for other in _PUT_OFF.get() if _is_valid(other, snapshot, listener)]
        _PUT_OFF.set(put_off[:-1])
        if put_off:
            pending = put_off[-1]
        else:
            pending = Pending(snapshot.library.folder, listener, _take_next(snapshot, answers, listener))
        _PENDING.set(pending)
        TURN.set(TURN.get() + 1)
    state, _ = _AHEAD.get() or (None, None)
    if state != _state(snapshot, listener):
        # this takes the pending question into account, but not its answer, because one answer changes little
        future = _POOL.submit(_question_after(snapshot, answers, listener, pending))
        _AHEAD.set((_state(snapshot, listener), future))
    return pending.question


def _is_valid(pending: Pending, snapshot: Snapshot, listener: str) -> bool:
    """Return True if a question has the chosen form and size, and is about songs of this library for this listener."""
    question = pending.question
    is_chosen = (question.form, len(question.song_ids)) == (FORM.get(), N_SONGS.get())
    is_here = (pending.library, pending.listener) == (snapshot.library.folder, listener)
    return is_here and is_chosen and bool((snapshot.rows_of(question.song_ids) >= 0).all())


def _state(snapshot: Snapshot, listener: str) -> tuple[Any, ...]:
    chosen = listener, FORM.get(), N_SONGS.get(), CRITERION.get()
    return snapshot.library.place, snapshot.revision, snapshot.model_id, *chosen


def _take_next(snapshot: Snapshot, answers: Sequence[Judgment], listener: str) -> Question:
    state, question = _AHEAD.get() or (None, None)
    _AHEAD.set(None)
    if question is not None and state == _state(snapshot, listener):
        return question.result()
    return _question_after(snapshot, answers, listener)()


def _question_after(
    snapshot: Snapshot, answers: Sequence[Judgment], listener: str, *pending: Pending
) -> Callable[[], Question]:
    """Return a function that computes the next question; it does not use the session, so that a thread can call it."""
    unanswered = [  # skipped and pending questions count as answers without a choice
        Judgment(-1, time.time(), other.listener, other.question.form, other.question.song_ids, None)
        for other in (*_SKIPPED.get(), *pending)
        if other.library == snapshot.library.folder
    ]
    return partial(
        next_question, snapshot, [*answers, *unanswered], listener=listener, form=FORM.get(), n_songs=N_SONGS.get(),
        criterion=CRITERION.get(), rng=np.random.default_rng([_SEED.get(), TURN.get()]),
    )  # fmt: skip


def act(kind: str, at: int, chosen: int | None = None) -> None:
    """Carry out an action from the browser, in a callback. Unknown kinds are ignored.

    `at` is the turn of the action; actions from earlier turns are ignored. `chosen` is the chosen song's position.
    """
    pending = _PENDING.get()
    if at != TURN.get():
        return
    if kind == "undo":
        _undo()
    elif pending is None or pending.library != openers.snapshot().library.folder:
        return
    elif kind == "skip":
        _SKIPPED.set([*_SKIPPED.get(), pending])
        _PENDING.set(None)
    elif kind == "unsure":
        _save(pending, None)
    elif kind == "choose" and chosen is not None:
        question = pending.question
        if chosen in range(int(question.form == "like"), len(question.song_ids)):
            _save(pending, int(chosen))  # an int, because a browser may send true for 1


def rename(library: Library, old: str, new: str) -> None:
    """Rename a listener in the library and in this session."""
    library.judgments.rename(old, new)

    def rename_in(pending: Pending) -> Pending:
        is_theirs = (pending.library, pending.listener) == (library.folder, old)
        return replace(pending, listener=new) if is_theirs else pending

    for key in (_PUT_OFF, _SKIPPED):
        key.set([rename_in(pending) for pending in key.get()])
    _ANSWERS.set([replace(answer, pending=rename_in(answer.pending)) for answer in _ANSWERS.get()])
    pending = _PENDING.get()
    _PENDING.set(rename_in(pending) if pending is not None else None)
    LISTENER.set(new)


def _save(pending: Pending, chosen: int | None) -> None:
    """Write an answer to the library immediately, so that a closed tab does not lose it."""
    snapshot, question = openers.snapshot(), pending.question
    _PENDING.set(None)
    try:
        answer_id = opinions(snapshot.library).judgments.add(
            pending.listener, question.form, question.song_ids, chosen, is_random=question.is_random,
            foreseen=None if chosen is None else is_predicted(snapshot, question, chosen),
            model=snapshot.record.name if snapshot.record else "",
        )  # fmt: skip
    except MusicsimError as error:  # one of the songs was just removed from the library
        st.toast(plain(error), icon=":material/error:")
    else:
        _ANSWERS.set([*_ANSWERS.get(), Answer(pending, chosen, answer_id)])
        keep_answers(snapshot.library)


def last_answer(library: Library) -> Answer | None:
    """Return the answer that can be undone."""
    answers = _ANSWERS.get()
    return answers[-1] if answers and answers[-1].pending.library == library.folder else None


def _undo() -> None:
    """Delete the last answer and ask its question again; the pending question is asked after it."""
    library = openers.snapshot().library
    answer = last_answer(library)
    if answer is None:
        return
    opinions(library).judgments.forget(answer.answer_id)
    keep_answers(library)
    _ANSWERS.set(_ANSWERS.get()[:-1])
    FORM.set(answer.pending.question.form)
    N_SONGS.set(len(answer.pending.question.song_ids))
    LISTENER.set(answer.pending.listener)
    pending = _PENDING.get()
    _PUT_OFF.set([*_PUT_OFF.get(), *([pending] if pending is not None else [])])
    _PENDING.set(answer.pending)
    TURN.set(TURN.get() + 1)
