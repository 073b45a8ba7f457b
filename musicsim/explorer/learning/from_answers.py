"""Learning a metric from answers to comparisons (thesis, chapter 2), evaluated by nested cross-validation.

Answers to the same question stay in one fold. A user who stops the job early gets the best finished fit.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from musicsim import evaluation, metric, order, relevance
from musicsim._arrays import Float64Array, Int64Array
from musicsim.errors import ModelError
from musicsim.explorer.learning.multi_kernel import SourceLearner
from musicsim.explorer.learning.verdict import Lead
from musicsim.explorer.requests.training import ORDER_LOSS
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import question_key
from musicsim.library.stores.judgments import comparisons

_MIN_ANSWERS = 6
_OUTER, _INNER = 5, 3
_TOLERANCE, _MAX_STEPS = 3e-2, 150
_TRACE_EVERY = 5
_NO_FIT = {"gap": 0.0, "n_cuts": 0, "rank": 0}


@dataclass(frozen=True, slots=True)
class Answered:
    """Answers about songs in a snapshot, each converted to comparisons of rows."""

    # per answer: int64 (m, 4), rows (i, j, k, l) for d(i, j) < d(k, l)
    comparisons: list[Int64Array]
    # one key per answer; answers about the same songs have the same key, and duplicates count as the same song
    questions: list[tuple[Any, ...]]

    @classmethod
    def collect(cls, snapshot: Snapshot, listener: str = "") -> Answered:
        """Collect answers from one or all listeners; skip unsure ones, and ones about duplicates or unknown songs."""
        answered = cls([], [])
        for answer in snapshot.library.judgments.answers(listener or None):
            rows = snapshot.rows_of(answer.song_ids).tolist()
            row_of = {song: row if row >= 0 else -1 - song for song, row in zip(answer.song_ids, rows, strict=True)}
            compared = [[row_of[song] for song in comparison] for comparison in comparisons(answer)]
            known = np.array([row for row in compared if min(row) >= 0], dtype=np.int64).reshape(-1, 4)
            if len(known) and len(set(row_of.values())) == len(row_of):
                answered.comparisons.append(known)
                answered.questions.append(question_key(answer.kind, list(row_of.values())))
        return answered

    def __len__(self) -> int:
        return len(self.comparisons)

    def some(self, indices: Int64Array) -> Answered:
        return Answered([self.comparisons[i] for i in indices], [self.questions[i] for i in indices])

    def all(self) -> Int64Array:
        """Return the comparisons of all answers, int64 (m, 4)."""
        return np.concatenate([np.empty((0, 4), np.int64), *self.comparisons])

    def flip(self, random_state: int | np.random.Generator) -> Answered:
        """Reverse the comparisons of each question with a probability of 1/2; answers to one question stay together."""
        rng = np.random.default_rng(random_state)
        is_flipped = {question: rng.random() < 0.5 for question in dict.fromkeys(self.questions)}
        pairs = zip(self.comparisons, self.questions, strict=True)
        return Answered([c[:, [2, 3, 0, 1]] if is_flipped[q] else c for c, q in pairs], self.questions)

    def folds(self, n: int, random_state: int) -> list[tuple[Int64Array, Int64Array]]:
        """Return at most `n` pairs of training and test indices; no question is in both."""
        from sklearn.model_selection import GroupKFold

        codes = {question: i for i, question in enumerate(dict.fromkeys(self.questions))}
        n = min(n, len(codes))
        if n < 2:
            return []
        groups = np.random.default_rng(random_state).permutation(len(codes))[[codes[q] for q in self.questions]]
        return list(GroupKFold(n).split(groups, groups=groups))


def relevance_of(compared: Int64Array, n_songs: int) -> relevance.Relevance:
    """Convert comparisons of one song with two others to relevance, by majority vote per pair of songs."""
    votes: Counter[tuple[int, int]] = Counter()
    for row in compared.tolist():
        near, far = row[:2], row[2:]
        for song in set(near) & set(far):
            for pair, vote in ((near, 1), (far, -1)):
                votes[song, pair[0] if pair[1] == song else pair[1]] += vote
    return count_votes(votes, n_songs)


def count_votes(votes: Mapping[tuple[int, int], int], n_songs: int) -> relevance.Relevance:
    """Return the relevance of results to queries: relevant with positive votes, irrelevant with negative votes."""
    relevant: list[list[int]] = [[] for _ in range(n_songs)]
    irrelevant: list[list[int]] = [[] for _ in range(n_songs)]
    for (query, result), n_votes in votes.items():
        if n_votes:
            (relevant if n_votes > 0 else irrelevant)[query].append(result)
    return relevance.Relevance.from_lists(relevant, irrelevant=irrelevant)


@dataclass(frozen=True, slots=True)
class LearnedMetric:
    """Result of learning from answers."""

    L: Float64Array  # (r, d): the metric learned from all answers
    C: float
    path: list[dict[str, Any]]  # one result per value of C
    lead: Lead | None = None  # share of held-out comparisons in order before and after; None if none were held out
    agreed: Lead | None = None  # share of held-out questions with the listener's answer, before and after
    untrained: float = float("nan")  # share of all comparisons in order before learning
    n_shuffled: int = 0  # number of copies of flipped answers on which the training was repeated


@dataclass(frozen=True, slots=True)
class _Learner:
    X: Float64Array
    loss: str
    structure: str
    random_state: int
    blocks: Sequence[slice] = ()

    def fit(
        self, compared: Int64Array, C: float, on_step: Callable[[dict[str, Any]], bool]
    ) -> tuple[Float64Array, dict[str, Any]]:
        """Return L and a report; in each step, the function "has_learned" returns True unless the metric is 0."""
        # no transitive reduction, because it would remove repeated evidence among contradictory answers
        cleaned, _ = order.clean_comparisons(
            compared, contradictions="majority", reduce=False, random_state=self.random_state
        )
        if not len(cleaned):
            return np.zeros((1, self.X.shape[1])), dict(_NO_FIT)
        rows, positions = np.unique(cleaned, return_inverse=True)
        local = positions.reshape(-1, 4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the report contains the remaining duality gap
            model = self._create_model(C)
            is_order = self.loss == ORDER_LOSS

            def on_fit_step(step: dict[str, Any]) -> bool:
                if is_order:  # a metric of 0 has a loss of 1 on every comparison, so its objective is C
                    return on_step(step | {"has_learned": lambda: step["objective"] < C * (1 - 1e-9)})
                return on_step(step | {"iteration": step["cut"], "has_learned": lambda: step["components"]().any()})

            model.fit(self.X[rows], local if is_order else relevance_of(local, len(rows)), callback=on_fit_step)
            n_cuts = model.n_iter_ if is_order else model.n_cuts_
        gap = max(0.0, model.objective_ - model.dual_bound_) / max(model.objective_, 1e-300)
        L: Float64Array = model.components_
        return L, {"gap": gap, "n_cuts": n_cuts, "rank": int(L.any(axis=1).sum())}

    def _create_model(self, C: float) -> Any:
        """Create the learner, with one kernel per block unless the metric is diagonal."""
        has_kernels = bool(self.blocks) and self.structure == "full"
        learner: Any
        if self.loss == ORDER_LOSS:
            of_order = order.PartialOrderEmbedding if has_kernels else order.LinearPartialOrderEmbedding
            learner = of_order(self.structure, C, tol=_TOLERANCE, max_iter=_MAX_STEPS)
        else:
            of_ranking = metric.MultipleKernelMLR if has_kernels else metric.MLR
            learner = of_ranking(self.loss, structure=self.structure, C=C, tol=_TOLERANCE, max_cuts=_MAX_STEPS)
        return SourceLearner(self.blocks, learner) if has_kernels else learner


def shares_in_order(Y: Float64Array, answered: Answered) -> Float64Array:
    """Return each answer's share of comparisons that are in the right order in a space; equal distances count half."""
    shares = []
    for compared in answered.comparisons:
        i, j, k, m = Y[compared.T]
        near, far = ((i - j) ** 2).sum(axis=1), ((k - m) ** 2).sum(axis=1)
        shares.append(np.mean(np.where(near == far, 0.5, near < far)))
    return np.array(shares)


def too_few(answered: Answered) -> str:
    """Return an explanation if there are too few answers to learn from, otherwise an empty string."""
    if len(answered) >= _MIN_ANSWERS:
        return ""
    return (
        f"learning needs at least {_MIN_ANSWERS} answers, but there are only {len(answered)}. Answer more questions "
        "in Compare."
    )


def learn_from_answers(
    X: Float64Array,
    answered: Answered,
    *,
    Cs: Sequence[float],
    loss: str = ORDER_LOSS,
    structure: str = "full",
    blocks: Sequence[slice] = (),
    random_state: int = 0,
    n_shuffles: int = 0,
    on_progress: Callable[[str, dict[str, Any]], bool],
) -> LearnedMetric:
    """Learn a metric from answers about songs X (n_songs, d), and evaluate it on held-out answers.

    `Cs` are the values of C to choose from. The loss is "order" for the comparisons themselves (algorithm 2.2), or a
    loss of :class:`musicsim.metric.MLR`, with relevance derived from the comparisons. `structure` is full or diagonal;
    a full metric has one block per element of `blocks`, the columns of each joined model. With `n_shuffles`, the
    training with the chosen C is repeated on copies of the answers, half of them flipped. `on_progress` gets a message
    and a point of the live plot every few steps. In a point, "untrained" is the share of answers in order before
    learning, and "quality" is this share for held-out answers so far. `on_progress` returns True to stop the training
    once a metric is not 0.

    If the user stops, returns the metric of the last finished outer fold, with its C and path. If no fold has finished,
    returns the fit with the best C so far. Raises ModelError if there are too few answers, or nothing is learned.
    """
    if too_few(answered):
        raise ModelError(too_few(answered))
    n_fits = (_OUTER + 1) * (1 + (_INNER * len(Cs) if len(Cs) > 1 else 0)) + _OUTER * n_shuffles
    fits = _Fits(_Learner(X, loss, structure, random_state, blocks), answered, on_progress, n_fits)
    by_chance: list[Float64Array] = []
    try:
        result = _cross_validate(fits, answered, Cs, random_state)
        fits.best = result
        rng = np.random.default_rng([random_state, n_shuffles])
        for _ in range(n_shuffles):
            by_chance.append(_gain_of_flipped(fits, answered.flip(rng), result.C, random_state))
    except _Stopped:
        assert fits.best is not None
        result = fits.best
    known = np.isfinite(fits.held_out)
    lead = agreed = None
    questions = [str(q) for q, k in zip(answered.questions, known, strict=True) if k]
    if len(set(questions)) > 1:
        after, before = fits.held_out[known], fits.plain[known]
        lead = _lead_of(after, before, questions, random_state)
        # a metric gives the listener's answer if all comparisons that follow from the answer are in order
        agreed = _lead_of((after == 1).astype(float), (before == 1).astype(float), questions, random_state)
        if by_chance:  # then all answers have been held out
            shuffled = np.mean(by_chance, axis=0)
            _, low, high = _compare(after - before, shuffled, questions, random_state)
            lead = replace(lead, shuffled=float(shuffled.mean()), above_low=low, above_high=high)
    return replace(result, lead=lead, agreed=agreed, untrained=fits.untrained, n_shuffled=len(by_chance))


def _lead_of(after: Float64Array, before: Float64Array, questions: list[str], random_state: int) -> Lead:
    interval = _compare(after, before, questions, random_state)
    return Lead(float(before.mean()), float(after.mean()), *interval)


def _compare(
    after: Float64Array, before: Float64Array, questions: list[str], random_state: int
) -> tuple[float, float, float]:
    """Return the mean difference of held-out shares and its 95% interval.

    The metrics of the folds are learned from mostly the same answers, so their shares are not independent, and a
    bootstrap over the questions is too narrow. Its variance is multiplied by 1 + k n_test / n_train for k folds, the
    correction by Nadeau and Bengio (Inference for the Generalization Error, Machine Learning 52, 2003).
    """
    mean, low, high = evaluation.bootstrap_pairs(after, before, questions, 2000, random_state)
    n_folds = min(_OUTER, len(set(questions)))
    scale = np.sqrt(1 + n_folds / (n_folds - 1))
    return mean, mean + scale * (low - mean), mean + scale * (high - mean)


def _gain_of_flipped(fits: _Fits, answered: Answered, C: float, random_state: int) -> Float64Array:
    """Return each flipped answer's gain, predicted by a metric learned from the others; raises _Stopped."""
    gain = -shares_in_order(fits.X, answered)
    for train, test in answered.folds(_OUTER, random_state):
        L, _ = fits.fit(answered.some(train), C, "training on shuffled answers")
        gain[test] += fits.shares(L, answered.some(test))
    return gain


class _Stopped(Exception):
    """The user stopped the training; the result is :attr:`_Fits.best`."""


class _Fits:
    """Runs fits, reports them, and remembers the best result in case the user stops."""

    def __init__(
        self, learner: _Learner, answered: Answered, on_progress: Callable[[str, dict[str, Any]], bool], n_fits: int
    ) -> None:
        self._learner, self._on_progress, self._is_enough = learner, on_progress, False
        self.X = learner.X
        self._n_done, self._n_fits = 0, n_fits
        self.plain = shares_in_order(learner.X, answered)
        self.untrained = float(self.plain.mean())
        self.held_out = np.full(len(answered), np.nan)
        self._priority: tuple[int, float] = (-1, 0.0)
        self.best: LearnedMetric | None = None

    def fit(self, answered: Answered, C: float, message: str) -> tuple[Float64Array, dict[str, Any]]:
        """Return L and the report; raises _Stopped if the user stopped the fit, because its metric may do harm."""
        is_cut = False

        def on_step(step: dict[str, Any]) -> bool:
            nonlocal is_cut
            if step["iteration"] % _TRACE_EVERY == 1:
                point = {name: step[name] for name in ("objective", "dual_bound", "gap", "seconds")}
                point |= {"C": C, "cut": step["iteration"], "untrained": self.untrained}
                point |= {"fit": self._n_done, "n_fits": self._n_fits}
                if np.isfinite(self.held_out).any():
                    point["quality"] = float(np.nanmean(self.held_out))
                self._is_enough = self._on_progress(message, point) or self._is_enough
            is_cut = self._is_enough and (self.best is not None or step["has_learned"]())
            return is_cut

        L, report = self._learner.fit(answered.all(), C, on_step)
        if is_cut:
            self.best = self.best or LearnedMetric(L, C, [_path_entry(C, [], report)])
            raise _Stopped
        self._n_done += 1
        return L, report

    def shares(self, L: Float64Array, answered: Answered) -> Float64Array:
        """Return the share of each answer's comparisons that are in order under a metric."""
        return shares_in_order(self._learner.X @ L.T, answered)

    def keep(self, result: LearnedMetric, priority: tuple[int, float]) -> None:
        """Remember a result in case the user stops, unless its metric is 0 or its priority is not higher."""
        if result.L.any() and priority > self._priority:
            self._priority, self.best = priority, result


def _cross_validate(fits: _Fits, answered: Answered, Cs: Sequence[float], random_state: int) -> LearnedMetric:
    """Evaluate each fold with a metric learned from the others, then learn from all answers; raises _Stopped."""
    folds = answered.folds(_OUTER, random_state)
    for n_done, (train, test) in enumerate(folds, 1):
        message = f"holding out a fifth of the answers, {n_done} of {len(folds)}"
        C, path = _choose_strength(fits, answered.some(train), Cs, random_state, message)
        L, _ = fits.fit(answered.some(train), C, message)
        fits.held_out[test] = fits.shares(L, answered.some(test))
        fits.keep(LearnedMetric(L, C, path), (2, n_done))
    C, path = _choose_strength(fits, answered, Cs, random_state, "choosing C")
    # with a C that is large enough for some of the answers, the metric learned from all of them may be 0
    for larger in sorted(other for other in Cs if other >= C):
        L, _ = fits.fit(answered, float(larger), "learning from all answers")
        if L.any():
            return LearnedMetric(L, float(larger), path)
    raise ModelError("nothing was learned: the metric is 0. Answer more questions or choose a larger C.")


def _choose_strength(
    fits: _Fits, answered: Answered, Cs: Sequence[float], random_state: int, message: str
) -> tuple[float, list[dict[str, Any]]]:
    """Return the C with the best cross-validated share, and the path; raises _Stopped."""
    folds = answered.folds(_INNER, random_state + 1) if len(Cs) > 1 else []
    path: list[dict[str, Any]] = []
    for C in Cs:
        shares: list[Float64Array] = []
        report: dict[str, Any] = _NO_FIT
        for train, test in folds:
            L, report = fits.fit(answered.some(train), C, message)
            shares.append(fits.shares(L, answered.some(test)))
            fits.keep(LearnedMetric(L, C, [*path, _path_entry(C, [], report)]), (0, 0.0))
        path.append(_path_entry(C, shares, report))
        if folds:
            fits.keep(LearnedMetric(L, C, path), (1, path[-1]["quality"]))
    # never prefer a metric of 0, even if its share is high
    best = max(path, key=lambda entry: (entry["rank"] > 0, np.nan_to_num(entry["quality"], nan=-1.0)))
    return best["C"], path


def _path_entry(C: float, shares: list[Float64Array], report: dict[str, Any]) -> dict[str, Any]:
    quality = float(np.concatenate(shares).mean()) if shares else float("nan")
    return {"C": float(C), "quality": quality, **report}
