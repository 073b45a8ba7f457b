"""What a session is asked on the Compare page: the question that waits, and answers that can be taken back."""

import secrets
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.survey.questions import Question, foreseen, next_question
from musicsim.library import Library
from musicsim.library.stores.judgments import FORMS, Judgment
from musicsim.ui.base.keys import QUEUE_LIBRARY, Key
from musicsim.ui.base.openers import snapshot
from musicsim.ui.base.text import plain
from musicsim.ui.base.visitors import keep_answers, opinions

_MAX_NAME = 60


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that somebody is asked about songs of the library in a folder."""

    library: Path
    listener: str
    question: Question


@dataclass(frozen=True, slots=True)
class Given:
    """An answer of this session and its number in the library."""

    asked: Asked
    chosen: int | None
    answer_id: int


@dataclass(frozen=True, slots=True)
class _Ahead:
    """The question after the one that waits, worked out while songs are heard; good for what it `fits`."""

    fits: tuple[Any, ...]
    question: "Future[Question]"


FORM: Key[str] = Key("compare_form", lambda: FORMS[0], "what is asked, one of FORMS")
N_SONGS: Key[int] = Key("compare_n_songs", lambda: 3, "songs of a question")
LISTENER: Key[str | None] = Key("compare_listener", lambda: None, "name of the person who answers")
SHOW_NAMES: Key[bool] = Key("compare_names", lambda: False, "whether songs are named before the answer")
_ASKED: Key[Asked | None] = Key("compare_asked", lambda: None, "the question that waits for its answer")
_PUT_OFF: Key[list[Asked]] = Key("compare_put_off", list, "questions that waited when answers were taken back")
_AHEAD: Key[_Ahead | None] = Key("compare_ahead", lambda: None, "the question that comes after it")
_GIVEN: Key[list[Given]] = Key("compare_given", list, "answers of this session, the last one last")
_SKIPPED: Key[list[Asked]] = Key("compare_skipped", list, "questions of this session that nobody wanted")
_TURN: Key[int] = Key("compare_turn", lambda: 0, "number of the question in this session")
_SEED: Key[int] = Key("compare_seed", lambda: secrets.randbits(32), "where the questions are drawn from")


def turn() -> int:
    """The number of the question that is asked; the browser's answers carry it."""
    return _TURN.get()


def who(typed: str | None) -> str:
    """A listener's name as it is kept; empty for none."""
    return " ".join((typed or "").split())[:_MAX_NAME].strip()


def question(now: Snapshot, answers: Sequence[Judgment], listener: str) -> Question:
    """The question that waits for its answer; if there is none, one that was put off, or a new one.

    Raises ModelError if too few songs can be compared.
    """
    asked = _ASKED.get()
    if asked is None or not _stands(asked, now, listener):
        put_off = [of for of in _PUT_OFF.get() if _stands(of, now, listener)]
        _PUT_OFF.set(put_off[:-1])
        asked = put_off[-1] if put_off else Asked(now.library.folder, listener, _drawn(now, answers, listener))
        _ASKED.set(asked)
        _TURN.set(_TURN.get() + 1)
    ahead = _AHEAD.get()
    if ahead is None or ahead.fits != _fits(now, listener):
        # it knows of the question that waits, not of its answer: one answer more or less changes little
        following = _pool().submit(_next, now, _known(answers, now, asked), *_drawn_with(listener))
        _AHEAD.set(_Ahead(_fits(now, listener), following))
    return asked.question


def _stands(asked: Asked, now: Snapshot, listener: str) -> bool:
    """Whether a question is still to be asked: of this library and person, as chosen, its songs still here."""
    of = asked.question
    as_chosen = (of.form, len(of.song_ids)) == (FORM.get(), N_SONGS.get())
    is_here = (asked.library, asked.listener) == (now.library.folder, listener)
    return is_here and as_chosen and bool((now.rows_of(of.song_ids) >= 0).all())


def _fits(now: Snapshot, listener: str) -> tuple[Any, ...]:
    return now.library.folder, now.revision, now.model_id, listener, FORM.get(), N_SONGS.get()


@st.cache_resource(show_spinner=False)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="compare")


def _drawn(now: Snapshot, answers: Sequence[Judgment], listener: str) -> Question:
    ahead = _AHEAD.get()
    _AHEAD.set(None)
    if ahead is not None and ahead.fits == _fits(now, listener):
        return ahead.question.result()
    return _next(now, _known(answers, now), *_drawn_with(listener))


def _drawn_with(listener: str) -> tuple[str, str, int, list[int]]:
    return listener, FORM.get(), N_SONGS.get(), [_SEED.get(), _TURN.get()]


def _next(now: Snapshot, known: list[Judgment], listener: str, form: str, n_songs: int, seed: list[int]) -> Question:
    """The next question; without the session, for it may run beside the page."""
    rng = np.random.default_rng(seed)
    return next_question(now, known, listener=listener, form=form, n_songs=n_songs, rng=rng)


def _known(answers: Sequence[Judgment], now: Snapshot, *waiting: Asked) -> list[Judgment]:
    """All answers, and what is not to be asked again: for the survey, answers that say nothing."""
    silent = [
        Judgment(-1, time.time(), of.listener, of.question.form, of.question.song_ids, None)
        for of in (*_SKIPPED.get(), *waiting)
        if of.library == now.library.folder
    ]
    return [*answers, *silent]


# --- what the listener does -----------------------------------------------------------------------


def act(kind: str, at: int, chosen: int | None = None) -> None:
    """Do what a listener asked for; for callbacks. A kind that is none, as a browser may send it, does nothing.

    `at` is the :func:`turn` that it is about: of another one it comes too late. `chosen` is the place of the song
    that was chosen.
    """
    asked = _ASKED.get()
    if at != _TURN.get():
        return
    if kind == "heard":
        QUEUE_LIBRARY.set(snapshot().library.name)
    elif kind == "undo":
        _take_back()
    elif asked is None or asked.library != snapshot().library.folder:
        return
    elif kind == "skip":
        _SKIPPED.set([*_SKIPPED.get(), asked])
        _ASKED.set(None)
    elif kind == "unsure":
        _keep(asked, None)
    elif kind == "choose" and chosen is not None and chosen in _choosable(asked.question):
        _keep(asked, int(chosen))  # a browser may send true for 1


def rename(library: Library, old: str, new: str) -> None:
    """Give a listener another name, in the library and in all that this session knows of them."""
    library.judgments.rename(old, new)

    def renamed(asked: Asked) -> Asked:
        is_theirs = (asked.library, asked.listener) == (library.folder, old)
        return replace(asked, listener=new) if is_theirs else asked

    for key in (_PUT_OFF, _SKIPPED):
        key.set([renamed(asked) for asked in key.get()])
    _GIVEN.set([replace(given, asked=renamed(given.asked)) for given in _GIVEN.get()])
    waiting = _ASKED.get()
    _ASKED.set(renamed(waiting) if waiting is not None else None)
    LISTENER.set(new)


def _choosable(of: Question) -> range:
    """Places of the songs that can be chosen: not of the one that is asked about."""
    return range(int(of.form == "like"), len(of.song_ids))


def _keep(asked: Asked, chosen: int | None) -> None:
    """Write the answer at once: a closed tab must not lose it."""
    now, of = snapshot(), asked.question
    _ASKED.set(None)
    try:
        answer_id = opinions(now.library).judgments.add(
            asked.listener, of.form, of.song_ids, chosen, is_random=of.is_random,
            foreseen=None if chosen is None else foreseen(now, of, chosen),
            model=now.record.name if now.record else "",
        )  # fmt: skip
    except MusicsimError as error:  # one of the songs has just left the library
        st.toast(plain(error), icon=":material/error:")
    else:
        _GIVEN.set([*_GIVEN.get(), Given(asked, chosen, answer_id)])
        keep_answers(now.library)


def last_given(library: Library) -> Given | None:
    """The answer that can be taken back."""
    given = _GIVEN.get()
    return given[-1] if given and given[-1].asked.library == library.folder else None


def _take_back() -> None:
    """Forget the last answer and ask its question again; the one that was asked comes after it."""
    now = snapshot()
    given = last_given(now.library)
    if given is None:
        return
    opinions(now.library).judgments.forget(given.answer_id)
    keep_answers(now.library)
    _GIVEN.set(_GIVEN.get()[:-1])
    of = given.asked.question
    FORM.set(of.form)
    N_SONGS.set(len(of.song_ids))
    LISTENER.set(given.asked.listener)
    waiting = _ASKED.get()
    _PUT_OFF.set([*_PUT_OFF.get(), *([waiting] if waiting is not None else [])])
    _ASKED.set(given.asked)
    _TURN.set(_TURN.get() + 1)
