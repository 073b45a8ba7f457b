"""Comparing songs by ear: which question to ask next, and what the answers so far are worth.

Of the questions, a fifth are drawn by chance: how often the model foresees their answers is an estimate without
bias. Every second one of these is, where there is one, a question that chance drew for somebody else, so that people
can be compared. A tenth are questions that the listener has answered before, the songs in another order: how often
the answer is the same is the most that any model can foresee. All others are those that tell most.

A question tells most where tastes that go with the listener's answers so far disagree, and each is sure of itself:
see :mod:`musicsim.explorer.survey.tastes`. Simulated listeners who weigh 30 dimensions, and answer by chance as
tastes do, were foreseen in 0.75, 0.79 and 0.84 of unseen questions after 40, 80 and 150 of this kind, and in 0.70,
0.75 and 0.80 after as many drawn by chance. The largest entropy of the model's own answer, which asks what lies
halfway, taught no more than chance.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from musicsim._arrays import Float64Array, Int64Array
from musicsim.errors import ModelError, NotFoundError
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.survey.tastes import costs, information, pairs_apart, sample_tastes, softness
from musicsim.library.stores.judgments import FORMS, Judgment, QuestionKey, comparisons, listener_name, question_key

_KINDS, _SHARES = ("telling", "random", "repeat"), (0.7, 0.2, 0.1)
_SHARED = 1 / 2  # of the random ones: a question that chance drew for somebody else
_MIN_BETWEEN = 5  # answers before a question is asked again
_N_SONGS = (3, 4)
_N_POOL = 1_000  # songs that questions are drawn from
_N_CANDIDATES = 300
_MAX_COMPARISONS = 500
_Z = 1.959964  # 95 % of a normal variable lie within so many deviations


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask."""

    form: str  # "odd": which one does not belong? "like": which one is more like the first?
    song_ids: tuple[int, ...]  # as they are to be shown; of "like", the song asked about comes first
    is_random: bool  # whether chance alone drew the songs; to be kept with the answer
    is_repeat: bool  # whether this listener has answered it before, the songs in another order


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of some cases, with its interval."""

    share: float | None  # None where there are no cases
    n: int  # cases
    # Wilson's interval at 95 %; 0 and 1 where there are no cases
    low: float
    high: float
    chance: float | None  # the share that guessing would reach; None where there are no cases


@dataclass(frozen=True, slots=True)
class Standing:
    """What answers are worth so far."""

    n_answers: int  # answers, unsure ones among them
    n_unsure: int
    n_listeners: int  # people who have answered
    # of questions that one listener answered again: how often the answer was the same as the one before
    consistency: Rate
    # of two people who answered one question: how often their answers are the same; of each, the first counts
    agreement: Rate
    foreseen: Rate  # of questions drawn by chance: how often the model then in use would have said the same


# --- the next question ----------------------------------------------------------------------------


def next_question(
    snapshot: Snapshot,
    answers: Sequence[Judgment],
    *,
    listener: str,
    form: str = "odd",
    n_songs: int = 3,
    rng: np.random.Generator,
) -> Question:
    """The question that is asked next: see the head of this module.

    Parameters
    ----------
    snapshot : Snapshot
        The songs, under the model that is to learn.
    answers : sequence of Answer
        Of everybody, oldest first.
    listener : str
        Who is asked. No question comes again but the tenth that is meant to, and where nearly all have been answered.
    form : str
        "odd" or "like".
    n_songs : int
        3 or 4; of "like", the song asked about is one of them.

    Raises
    ------
    ModelError
        If fewer than `n_songs` songs can be compared.
    ValueError
        If `form`, `n_songs` or `listener` is none.

    Notes
    -----
    Looks at 1000 songs drawn again, 300 questions among them, and the last 500 comparisons of the listener's answers; a
    song that the listener was asked about n times counts 1 / (1 + n). Of a million songs of 100 dimensions this takes
    3 ms of CPU before any answer; after 5000 it takes 25 ms where all dimensions spread alike, and 60 ms where the
    spread of the k-th is 1 / k.
    """
    if form not in FORMS:
        raise ValueError(f"form={form!r} must be one of {', '.join(FORMS)}.")
    if n_songs not in _N_SONGS:
        raise ValueError(f"n_songs={n_songs!r} must be 3 or 4.")
    pool, vectors = _pool(snapshot, n_songs, rng)
    name = listener_name(listener)
    asked = _Asked(snapshot, answers, name, form, n_songs)
    kind = rng.choice(_KINDS, p=_SHARES)
    question = None
    if kind == "repeat":
        question = asked.to_repeat(rng)
    elif kind == "random" and rng.random() < _SHARED:
        question = asked.by_chance_of_others(rng)
    if question:
        return question
    places = _candidates(len(pool), n_songs, rng)
    if kind != "random":
        apart = pairs_apart(vectors, places)
        scale = softness(apart)
        gaps, of_answer = _gaps(snapshot, [a for a in answers if a.listener == name])
        tastes = sample_tastes(gaps / scale, of_answer, rng)
        told = information(apart, n_songs, form, tastes, scale)
        places = places[np.argsort(-told / (1 + asked.times(pool)[places].mean(axis=1)), kind="stable")]
    for rows in pool[places]:
        if question_key(form, rows.tolist()) not in asked.keys:
            ids = snapshot.row_ids[rows].tolist()  # their order is by chance already
            return Question(form, tuple(ids), is_random=kind == "random", is_repeat=False)
    return asked.to_repeat(rng, least_between=0) or asked.any(rng)


def _pool(snapshot: Snapshot, n_songs: int, rng: np.random.Generator) -> tuple[Int64Array, Float64Array]:
    """Rows that questions are drawn from, and their vectors (n_pool, n_dimensions)."""
    if snapshot.n_indexed >= n_songs:
        rows = rng.choice(snapshot.n_indexed, min(snapshot.n_indexed, _N_POOL), replace=False)
        vectors = snapshot.vectors_at(rows).astype(np.float64)
        is_finite = np.isfinite(vectors).all(axis=1)
        if is_finite.sum() >= n_songs:
            return rows[is_finite], vectors[is_finite]
    raise ModelError(
        f"{snapshot.library.name}: fewer than {n_songs} songs can be compared. Add more songs, or use another model."
    )


def _candidates(n_pool: int, n_songs: int, rng: np.random.Generator) -> Int64Array:
    """Places of different songs in the pool, every question as likely as any other, (n_candidates, n_songs)."""
    places = rng.integers(n_pool, size=(_N_CANDIDATES, n_songs))
    ordered = np.sort(places, axis=1)
    places = places[(ordered[:, 1:] > ordered[:, :-1]).all(axis=1)]
    return places if len(places) else rng.permutation(n_pool)[None, :n_songs]


def _gaps(snapshot: Snapshot, answers: Sequence[Judgment]) -> tuple[Float64Array, Int64Array]:
    """What answers say by dimension, as :func:`sample_tastes` takes it, but for the scale; the last ones count."""
    last = answers[-_MAX_COMPARISONS:]
    said = [(c, at) for at, answer in enumerate(last) for c in comparisons(answer)][-_MAX_COMPARISONS:]
    rows = snapshot.rows_of([i for c, _ in said for i in c]).reshape(-1, 4)
    known = (rows >= 0).all(axis=1)
    of_answer = np.array([at for _, at in said], dtype=np.int64)[known]
    songs, places = np.unique(rows[known], return_inverse=True)
    i, j, k, m = snapshot.vectors_at(songs).astype(np.float64)[places.reshape(-1, 4)].transpose(1, 0, 2)
    gaps = (k - m) ** 2 - (i - j) ** 2
    finite = np.isfinite(gaps).all(axis=1)
    return gaps[finite], np.unique(of_answer[finite], return_inverse=True)[1]


class _Asked:
    """Which questions of a form and size have been answered; songs by their rows, so that copies are one."""

    def __init__(self, snapshot: Snapshot, answers: Sequence[Judgment], listener: str, form: str, n_songs: int) -> None:
        self._snapshot, self._form = snapshot, form
        asked = [a for a in answers if a.kind == form and len(a.song_ids) == n_songs]
        rows = snapshot.rows_of([i for a in asked for i in a.song_ids]).reshape(-1, n_songs)
        self._mine: list[tuple[QuestionKey, Judgment]] = []
        self._others: list[tuple[QuestionKey, Judgment]] = []
        self._rows_of_mine: list[int] = []
        for answer, of_answer in zip(asked, rows.tolist(), strict=True):
            if min(of_answer) < 0 or len(set(of_answer)) < n_songs:
                continue  # a song has no vector, or two are copies: it cannot be asked
            if answer.listener == listener:
                self._mine.append((question_key(form, of_answer), answer))
                self._rows_of_mine += of_answer
            elif answer.is_random:
                self._others.append((question_key(form, of_answer), answer))
        self.keys = {key for key, _ in self._mine}

    def times(self, rows: Int64Array) -> Int64Array:
        """How often the listener was asked about songs, (n_rows,)."""
        asked, counts = np.unique(np.array(self._rows_of_mine, dtype=np.int64), return_counts=True)
        if not len(asked):
            return np.zeros(len(rows), dtype=np.int64)
        at = np.minimum(np.searchsorted(asked, rows), len(asked) - 1)
        return np.where(asked[at] == rows, counts[at], 0)

    def to_repeat(self, rng: np.random.Generator, least_between: int = _MIN_BETWEEN) -> Question | None:
        """A question that the listener was sure of, was asked once, and not a moment ago."""
        n_asked = Counter(key for key, _ in self._mine)
        earlier = self._mine[: max(0, len(self._mine) - least_between)]
        return self._one(
            [answer for key, answer in earlier if answer.chosen is not None and n_asked[key] == 1], rng, is_repeat=True
        )

    def by_chance_of_others(self, rng: np.random.Generator) -> Question | None:
        """A question that chance drew for somebody else, and that is new to the listener."""
        new = {key: answer for key, answer in self._others if key not in self.keys}
        return self._one(list(new.values()), rng, is_repeat=False)

    def any(self, rng: np.random.Generator) -> Question:
        """A question that has been answered, where there is no other one."""
        found = self._one([answer for _, answer in self._mine], rng, is_repeat=True)
        assert found is not None, "or there would be a question that has not been answered"
        return found

    def _one(self, answers: list[Judgment], rng: np.random.Generator, *, is_repeat: bool) -> Question | None:
        for at in rng.permutation(len(answers)).tolist():
            ids = answers[at].song_ids
            if np.isfinite(self._snapshot.vectors_at(self._snapshot.rows_of(ids))).all():
                first = ids[:1] if self._form == "like" else ()
                shown = (*first, *rng.permutation(ids[len(first) :]).tolist())
                return Question(self._form, shown, is_random=not is_repeat, is_repeat=is_repeat)
        return None


def foreseen(snapshot: Snapshot, question: Question, chosen: int) -> bool:
    """Whether the model would have answered as the listener did.

    Of "odd": whether the songs other than `chosen`, a place in ``question.song_ids``, are nearer to one another, by
    the mean of their squared distances, than those without any other song. Of "like": whether it is nearest to the
    first song. A tie is not foreseen.

    Raises NotFoundError if a song has no vector under the model; ValueError if `chosen` is no place that can be
    chosen.
    """
    first = 1 if question.form == "like" else 0
    if not first <= chosen < len(question.song_ids):
        raise ValueError(f"chosen={chosen} must be from {first} to {len(question.song_ids) - 1}.")
    rows = snapshot.rows_of(question.song_ids)
    if (rows < 0).any():
        gone = [i for i, row in zip(question.song_ids, rows.tolist(), strict=True) if row < 0]
        raise NotFoundError(f"{snapshot.library.name}: song {gone[0]} has no vector under the model. Try again.")
    vectors = snapshot.vectors_at(rows).astype(np.float64)
    apart = pairs_apart(vectors, np.arange(len(rows))[None, :]).sum(axis=2)
    of_choices = costs(apart, len(rows), question.form)[0]
    return bool((np.delete(of_choices, chosen - first) > of_choices[chosen - first]).all())


# --- what answers are worth -----------------------------------------------------------------------


def standing(answers: Sequence[Judgment], listener: str | None = None) -> Standing:
    """What the answers so far, of everybody and oldest first, are worth.

    Of a listener only their answers count, and their agreement with all others; `n_listeners` is of everybody.
    Answers that are unsure count in `n_answers` and `n_unsure` alone.

    The intervals take cases as independent. Pairs of people are not quite: where many answered one question, the
    interval of `agreement` is too narrow.
    """
    counted = [a for a in answers if listener is None or a.listener == listener]
    by_question: dict[QuestionKey, dict[str, list[Judgment]]] = defaultdict(lambda: defaultdict(list))
    for answer in answers:
        if answer.chosen is not None:
            by_question[question_key(answer.kind, answer.song_ids)][answer.listener].append(answer)
    repeated: list[tuple[bool, float]] = []
    shared: list[tuple[bool, float]] = []
    for by_listener in by_question.values():
        for name, theirs in by_listener.items():
            if listener in (None, name):
                repeated += [_alike(a, b) for a, b in pairwise(theirs)]
        for one, other in combinations(by_listener, 2):
            if listener in (None, one, other):
                shared.append(_alike(by_listener[one][0], by_listener[other][0]))
    return Standing(
        n_answers=len(counted),
        n_unsure=sum(a.chosen is None for a in counted),
        n_listeners=len({a.listener for a in answers}),
        consistency=_rate(repeated),
        agreement=_rate(shared),
        foreseen=_rate((a.foreseen, _guess(a)) for a in counted if a.is_random and a.foreseen is not None),
    )


def _guess(answer: Judgment) -> float:
    return 1 / (len(answer.song_ids) - (answer.kind == "like"))


def _alike(a: Judgment, b: Judgment) -> tuple[bool, float]:
    """Whether two answers to one question name the same song, and the chance that they do."""
    assert a.chosen is not None
    assert b.chosen is not None
    return a.song_ids[a.chosen] == b.song_ids[b.chosen], _guess(a)


def _rate(cases: Iterable[tuple[bool, float]]) -> Rate:
    """The share of cases that are true, and the mean of their chances."""
    known = list(cases)
    n = len(known)
    if not n:
        return Rate(None, 0, 0.0, 1.0, None)
    share = sum(is_so for is_so, _ in known) / n
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return Rate(share, n, low, high, sum(chance for _, chance in known) / n)
