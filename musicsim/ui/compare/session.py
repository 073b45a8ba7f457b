"""A session's questions in Compare: the pending one, earlier and later ones, and undo."""

import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
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


@dataclass(slots=True)
class Asked:
    """The questions and answers of a session."""

    pending: Pending | None = None
    put_off: list[Pending] = field(default_factory=list)  # questions that were pending when an answer was undone
    ahead: "tuple[tuple[Any, ...], Future[Question]] | None" = None  # the next question, and what it was prepared for
    answers: list[Answer] = field(default_factory=list)  # oldest first
    skipped: list[Pending] = field(default_factory=list)
    turn: int = 0  # number of the pending question, sent with each action
    seed: int = field(default_factory=lambda: secrets.randbits(32))


FORM: Key[str] = Key("compare_form", lambda: FORMS[0], "kind of question, one of FORMS")
N_SONGS: Key[int] = Key("compare_n_songs", lambda: 3, "number of songs in a question")
LISTENER: Key[str | None] = Key("compare_listener", lambda: None, "name of the person who answers")
SHOW_NAMES: Key[bool] = Key("compare_names", lambda: False, "True if song names are shown before the answer")
CRITERION: Key[Criterion | None] = Key("compare_criterion", lambda: None, "the value of a question; None: information")
ASKED: Key[Asked] = Key("compare_asked", Asked, "the session's questions and answers")


def clean_name(text: str | None) -> str:
    """Return a listener's name as it is stored; it may be empty."""
    return " ".join((text or "").split())[:_MAX_NAME].strip()


def pending_question(snapshot: Snapshot, answers: Sequence[Judgment], listener: str) -> Question:
    """Return the pending question, a postponed one, or a new one; raise ModelError if too few songs can be compared."""
    asked = ASKED.get()
    pending = asked.pending
    if pending is None or not _is_valid(pending, snapshot, listener):
        put_off = [other for other in asked.put_off if _is_valid(other, snapshot, listener)]
        asked.put_off = put_off[:-1]
        if put_off:
            pending = put_off[-1]
        else:
            pending = Pending(snapshot.library.folder, listener, _take_next(snapshot, answers, listener))
        asked.pending = pending
        asked.turn += 1
    state, _ = asked.ahead or (None, None)
    if state != _state(snapshot, listener):
        # this takes the pending question into account, but not its answer, because one answer changes little
        future = _POOL.submit(_question_after(snapshot, answers, listener, pending))
        asked.ahead = _state(snapshot, listener), future
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
    asked = ASKED.get()
    state, question = asked.ahead or (None, None)
    asked.ahead = None
    if question is not None and state == _state(snapshot, listener):
        return question.result()
    return _question_after(snapshot, answers, listener)()


def _question_after(
    snapshot: Snapshot, answers: Sequence[Judgment], listener: str, *pending: Pending
) -> Callable[[], Question]:
    """Return a function that computes the next question; it does not use the session, so that a thread can call it."""
    asked = ASKED.get()
    unanswered = [  # skipped and pending questions count as answers without a choice
        Judgment(-1, time.time(), other.listener, other.question.form, other.question.song_ids, None)
        for other in (*asked.skipped, *pending)
        if other.library == snapshot.library.folder
    ]
    return partial(
        next_question, snapshot, [*answers, *unanswered], listener=listener, form=FORM.get(), n_songs=N_SONGS.get(),
        criterion=CRITERION.get(), rng=np.random.default_rng([asked.seed, asked.turn]),
    )  # fmt: skip


def act(kind: str, at: int, chosen: int | None = None) -> None:
    """Carry out an action from the browser, in a callback. Unknown kinds are ignored.

    `at` is the turn of the action; actions from earlier turns are ignored. `chosen` is the chosen song's position.
    """
    asked = ASKED.get()
    pending = asked.pending
    if at != asked.turn:
        return
    if kind == "undo":
        _undo()
    elif pending is None or pending.library != openers.snapshot().library.folder:
        return
    elif kind == "skip":
        asked.skipped.append(pending)
        asked.pending = None
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

    asked = ASKED.get()
    asked.put_off, asked.skipped = ([rename_in(one) for one in these] for these in (asked.put_off, asked.skipped))
    asked.answers = [replace(answer, pending=rename_in(answer.pending)) for answer in asked.answers]
    asked.pending = rename_in(asked.pending) if asked.pending is not None else None
    LISTENER.set(new)


def _save(pending: Pending, chosen: int | None) -> None:
    """Write an answer to the library immediately, so that a closed tab does not lose it."""
    snapshot, question, asked = openers.snapshot(), pending.question, ASKED.get()
    asked.pending = None
    try:
        answer_id = opinions(snapshot.library).judgments.add(
            pending.listener, question.form, question.song_ids, chosen, is_random=question.is_random,
            foreseen=None if chosen is None else is_predicted(snapshot, question, chosen),
            model=snapshot.record.name if snapshot.record else "",
        )  # fmt: skip
    except MusicsimError as error:  # one of the songs was just removed from the library
        st.toast(plain(error), icon=":material/error:")
    else:
        asked.answers.append(Answer(pending, chosen, answer_id))
        keep_answers(snapshot.library)


def last_answer(library: Library) -> Answer | None:
    """Return the answer that can be undone."""
    answers = ASKED.get().answers
    return answers[-1] if answers and answers[-1].pending.library == library.folder else None


def _undo() -> None:
    """Delete the last answer and ask its question again; the pending question is asked after it."""
    library = openers.snapshot().library
    answer = last_answer(library)
    if answer is None:
        return
    opinions(library).judgments.forget(answer.answer_id)
    keep_answers(library)
    asked = ASKED.get()
    asked.answers.pop()
    FORM.set(answer.pending.question.form)
    N_SONGS.set(len(answer.pending.question.song_ids))
    LISTENER.set(answer.pending.listener)
    if asked.pending is not None:
        asked.put_off.append(asked.pending)
    asked.pending = answer.pending
    asked.turn += 1
