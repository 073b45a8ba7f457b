"""Questions in Compare: selection of the next question, and reliability of the answers so far.

A fifth of the questions are random, for an unbiased estimate of the share of answers that the model predicts. If
possible, half of these are random questions that another listener has answered, to measure agreement. A tenth of the
questions repeat an earlier question to the same listener, with the songs in a different order. They measure the
consistency of the answers, which limits the accuracy of every model.

All other questions are the most informative ones: sampled tastes disagree on the answer, but each taste is certain
(:mod:`musicsim.explorer.survey.tastes`). For simulated listeners, the model then predicts 0.75, 0.79 and 0.84 of unseen
answers after 40, 80 and 150 questions. With random questions, it predicts 0.70, 0.75 and 0.80.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from musicsim._arrays import Float64Array, Int64Array
from musicsim.errors import ModelError, NotFoundError
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.survey.tastes import answer_costs, information, pairs_apart, sample_tastes, softness
from musicsim.explorer.trials.rates import Rate, measure_rate
from musicsim.library import Judgment, QuestionKey, question_key
from musicsim.library.stores.judgments import FORMS, comparisons, listener_name

_KINDS, SHARES = ("telling", "random", "repeat"), (0.7, 0.2, 0.1)
_SHARED = 1 / 2  # share of random questions that another listener has answered
_MIN_BETWEEN = 5  # minimum number of answers between a question and its repetition
_N_SONGS = (3, 4)
_N_POOL = 1_000  # number of songs that questions are drawn from
_N_CANDIDATES = 300
_MAX_COMPARISONS = 500

Criterion = Callable[[Snapshot, Sequence[Judgment], str, Int64Array], Float64Array]
"""A function of the listener's answers, the form and song ids (n_questions, n_songs) that returns the value of asking
each question, (n_questions,)."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about three or four songs."""

    form: str  # "odd": which one does not belong? "like": which one is more like the first?
    song_ids: tuple[int, ...]  # song ids in the order on the page; for "like", the reference song comes first
    is_random: bool  # whether the songs were chosen at random; stored with the answer
    is_repeat: bool  # whether this listener has answered the question before, with the songs in a different order
    listener: str = ""  # name of the person who is asked


@dataclass(frozen=True, slots=True)
class AnswerSummary:
    """Number and reliability of the answers so far."""

    n_answers: int  # including unsure ones
    n_unsure: int
    n_listeners: int  # number of listeners with at least one answer
    consistency: Rate  # how often a listener answers a repeated question the same way
    agreement: Rate  # how often two listeners give equal first answers to the same question
    predicted: Rate  # how often the model in use predicted answers to random questions


def next_question(
    snapshot: Snapshot,
    answers: Sequence[Judgment],
    *,
    listener: str,
    form: str = "odd",
    n_songs: int = 3,
    criterion: Criterion | None = None,
    rng: np.random.Generator,
) -> Question:
    """Return the next question; the module docstring describes the selection.

    If `criterion` is given, its values replace the information of questions.
    `snapshot` uses the model to train, and `answers` come from all listeners, oldest first. A question is not asked
    twice, except for intended repetitions or if nearly all questions have been answered. `form` is "odd" or "like";
    `n_songs` is 3 or 4, including the reference song of "like". Raises ModelError if too few songs can be compared.

    The most informative of 300 questions about 1000 sampled songs is selected, based on the listener's last 500
    comparisons. The information of a question is divided by 1 + the mean number of earlier questions about its songs.
    With a million songs and 100 dimensions, this takes 3 ms before the first answer, and 25 to 60 ms after 5000
    answers.
    """
    if form not in FORMS:
        raise ValueError(f"form={form!r} must be one of {', '.join(FORMS)}.")
    if n_songs not in _N_SONGS:
        raise ValueError(f"n_songs={n_songs!r} must be 3 or 4.")
    pool, vectors = _pool(snapshot, n_songs, rng)
    name = listener_name(listener)
    history = _History(snapshot, answers, name, form, n_songs)
    kind = rng.choice(_KINDS, p=SHARES)
    question = None
    if kind == "repeat":
        question = history.repeat_one(rng)
    elif kind == "random" and rng.random() < _SHARED:
        question = history.share_one(rng)
    if question:
        return question
    places = _candidates(len(pool), n_songs, rng)
    if kind != "random":
        mine = [a for a in answers if a.listener == name]
        if criterion is not None:
            values = criterion(snapshot, mine, form, snapshot.row_ids[pool[places]])
        else:
            apart = pairs_apart(vectors, places)
            scale = softness(apart)
            gaps, of_answer = _gaps(snapshot, mine)
            tastes = sample_tastes(gaps / scale, of_answer, rng)
            values = information(apart, n_songs, form, tastes, scale)
        places = places[np.argsort(-values / (1 + history.count_of(pool)[places].mean(axis=1)), kind="stable")]
    for rows in pool[places]:
        if question_key(form, rows.tolist()) not in history.keys:
            ids = snapshot.row_ids[rows].tolist()  # in random order
            return Question(form, tuple(ids), is_random=kind == "random", is_repeat=False, listener=name)
    return history.repeat_one(rng, min_between=0) or history.repeat_any(rng)


def _pool(snapshot: Snapshot, n_songs: int, rng: np.random.Generator) -> tuple[Int64Array, Float64Array]:
    """Return a sample of rows to ask about, and their vectors (n_pool, n_dimensions)."""
    if snapshot.n_indexed >= n_songs:
        rows = rng.choice(snapshot.n_indexed, min(snapshot.n_indexed, _N_POOL), replace=False)
        vectors = snapshot.vectors_at(rows).astype(np.float64)
        is_finite = np.isfinite(vectors).all(axis=1)
        if is_finite.sum() >= n_songs:
            return rows[is_finite], vectors[is_finite]
    raise ModelError(
        f"{snapshot.library.name}: fewer than {n_songs} songs can be compared. Add songs, or use a different model."
    )


def _candidates(n_pool: int, n_songs: int, rng: np.random.Generator) -> Int64Array:
    """Return random questions about different songs, as positions in the pool, (n_candidates, n_songs)."""
    places = rng.integers(n_pool, size=(_N_CANDIDATES, n_songs))
    ordered = np.sort(places, axis=1)
    places = places[(ordered[:, 1:] > ordered[:, :-1]).all(axis=1)]
    return places if len(places) else rng.permutation(n_pool)[None, :n_songs]


def _gaps(snapshot: Snapshot, answers: Sequence[Judgment]) -> tuple[Float64Array, Int64Array]:
    """Return the unscaled arguments of :func:`sample_tastes` for the last answers."""
    last = answers[-_MAX_COMPARISONS:]
    compared = [(c, at) for at, answer in enumerate(last) for c in comparisons(answer)][-_MAX_COMPARISONS:]
    rows = snapshot.rows_of([i for c, _ in compared for i in c]).reshape(-1, 4)
    known = (rows >= 0).all(axis=1)
    of_answer = np.array([at for _, at in compared], dtype=np.int64)[known]
    songs, places = np.unique(rows[known], return_inverse=True)
    i, j, k, m = snapshot.vectors_at(songs).astype(np.float64)[places.reshape(-1, 4)].transpose(1, 0, 2)
    gaps = (k - m) ** 2 - (i - j) ** 2
    finite = np.isfinite(gaps).all(axis=1)
    return gaps[finite], np.unique(of_answer[finite], return_inverse=True)[1]


class _History:
    """Answered questions of one form and size. Songs are compared by row, because duplicates share a row."""

    def __init__(self, snapshot: Snapshot, answers: Sequence[Judgment], listener: str, form: str, n_songs: int) -> None:
        self._snapshot, self._form, self._listener = snapshot, form, listener
        same_form = [a for a in answers if a.kind == form and len(a.song_ids) == n_songs]
        rows = snapshot.rows_of([i for a in same_form for i in a.song_ids]).reshape(-1, n_songs)
        self._mine: list[tuple[QuestionKey, Judgment]] = []
        self._others: list[tuple[QuestionKey, Judgment]] = []
        self._n_asked: Counter[int] = Counter()
        for answer, answer_rows in zip(same_form, rows.tolist(), strict=True):
            if min(answer_rows) < 0 or len(set(answer_rows)) < n_songs:
                continue  # skip questions about songs without a vector, or about duplicates
            if answer.listener == listener:
                self._mine.append((question_key(form, answer_rows), answer))
                self._n_asked.update(answer_rows)
            elif answer.is_random:
                self._others.append((question_key(form, answer_rows), answer))
        self.keys = {key for key, _ in self._mine}

    def count_of(self, rows: Int64Array) -> Int64Array:
        """Return how many questions about each song the listener has been asked, (n_rows,)."""
        return np.array([self._n_asked[row] for row in rows.tolist()], dtype=np.int64)

    def repeat_one(self, rng: np.random.Generator, min_between: int = _MIN_BETWEEN) -> Question | None:
        """Return a question that the listener has answered only once, with certainty, and not recently."""
        counts = Counter(key for key, _ in self._mine)
        earlier = self._mine[: max(0, len(self._mine) - min_between)]
        return self._draw(
            [answer for key, answer in earlier if answer.chosen is not None and counts[key] == 1], rng, is_repeat=True
        )

    def share_one(self, rng: np.random.Generator) -> Question | None:
        """Return a random question that another listener has answered and this listener has not."""
        new = {key: answer for key, answer in self._others if key not in self.keys}
        return self._draw(list(new.values()), rng, is_repeat=False)

    def repeat_any(self, rng: np.random.Generator) -> Question:
        """Return any answered question, if all questions have been answered."""
        question = self._draw([answer for _, answer in self._mine], rng, is_repeat=True)
        assert question is not None, "otherwise there would be an unanswered question"
        return question

    def _draw(self, answers: list[Judgment], rng: np.random.Generator, *, is_repeat: bool) -> Question | None:
        for at in rng.permutation(len(answers)).tolist():
            ids = answers[at].song_ids
            if np.isfinite(self._snapshot.vectors_at(self._snapshot.rows_of(ids))).all():
                first = ids[:1] if self._form == "like" else ()
                shown = (*first, *rng.permutation(ids[len(first) :]).tolist())
                return Question(
                    self._form, shown, is_random=not is_repeat, is_repeat=is_repeat, listener=self._listener
                )
        return None


def is_predicted(snapshot: Snapshot, question: Question, chosen: int) -> bool:
    """Return whether the model predicts the listener's answer; False for a tie.

    `chosen` is an index in ``question.song_ids``. For "odd", the model chooses the song without which the mean squared
    distance between the others is smallest; for "like", the song nearest to the first.

    Raises NotFoundError if a song has no vector in the model; ValueError if `chosen` is not a valid index.
    """
    first = 1 if question.form == "like" else 0
    if not first <= chosen < len(question.song_ids):
        raise ValueError(f"chosen={chosen} must be from {first} to {len(question.song_ids) - 1}.")
    rows = snapshot.rows_of(question.song_ids)
    if (rows < 0).any():
        gone = [i for i, row in zip(question.song_ids, rows.tolist(), strict=True) if row < 0]
        raise NotFoundError(f"{snapshot.library.name}: song {gone[0]} has no vector in the model. Try again.")
    vectors = snapshot.vectors_at(rows).astype(np.float64)
    apart = pairs_apart(vectors, np.arange(len(rows))[None, :]).sum(axis=2)
    choice_costs = answer_costs(apart, len(rows), question.form)[0]
    return bool((np.delete(choice_costs, chosen - first) > choice_costs[chosen - first]).all())


def summarize_answers(answers: Sequence[Judgment], listener: str | None = None) -> AnswerSummary:
    """Summarize the answers of all listeners, oldest first.

    If `listener` is given, only this listener's answers and agreement with others count, but `n_listeners` counts all
    listeners. Unsure answers only count in `n_answers` and `n_unsure`.

    Intervals assume independent cases. If many listeners answer the same questions, the interval of `agreement` is too
    narrow.
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
                repeated += [_compare_answers(a, b) for a, b in pairwise(theirs)]
        for one, other in combinations(by_listener, 2):
            if listener in (None, one, other):
                shared.append(_compare_answers(by_listener[one][0], by_listener[other][0]))
    return AnswerSummary(
        n_answers=len(counted),
        n_unsure=sum(a.chosen is None for a in counted),
        n_listeners=len({a.listener for a in answers}),
        consistency=measure_rate(repeated),
        agreement=measure_rate(shared),
        predicted=measure_rate((a.foreseen, _guess(a)) for a in counted if a.is_random and a.foreseen is not None),
    )


def _guess(answer: Judgment) -> float:
    return 1 / (len(answer.song_ids) - (answer.kind == "like"))


def _compare_answers(a: Judgment, b: Judgment) -> tuple[bool, float]:
    """Return whether two answers to the same question are equal, and the probability that they are equal by chance."""
    assert a.chosen is not None
    assert b.chosen is not None
    return a.song_ids[a.chosen] == b.song_ids[b.chosen], _guess(a)
