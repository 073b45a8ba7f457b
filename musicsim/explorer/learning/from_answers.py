"""Learning from answers: a metric that keeps to what people said when they compared songs (thesis 2).

Answers are parted into five. On each part the metric is judged that was learned from the others, its C chosen within
these; the model that is kept is learned with the C that is best on all. Questions that were asked more than once stay
in one part. Whoever has had enough keeps the best of the fits that were not cut short.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from musicsim import evaluation, metric, order, relevance
from musicsim._arrays import Float64Array, Int64Array
from musicsim.errors import ModelError
from musicsim.explorer.learning.multi_kernel import SourceEmbedding, SourceMLR
from musicsim.explorer.learning.verdict import Lead
from musicsim.explorer.requests.training import ORDER
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.stores.judgments import comparisons, question_key

_FEWEST = 6
_OUTER, _INNER = 5, 3
_TOLERANCE, _MAX_STEPS = 3e-2, 150
_TRACE_EVERY = 5
_NO_FIT = {"gap": 0.0, "n_cuts": 0, "rank": 0}

Told = Callable[[dict[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class Answered:
    """Answers about the songs of a snapshot, each as its comparisons of rows."""

    # list of int64 ndarrays of shape (m, 4): one array an answer, (i, j, k, l) for d(i, j) < d(k, l)
    comparisons: list[Int64Array]
    # what tells questions apart: the same songs in any order are one, and a copy is the song it is a copy of
    questions: list[tuple[Any, ...]]

    @classmethod
    def of(cls, snapshot: Snapshot, listener: str = "") -> Answered:
        """Those of a listener, or of all; without unsure ones, and those about songs without vectors or two copies."""
        found = cls([], [])
        for answer in snapshot.library.judgments.answers(listener or None):
            found_rows = snapshot.rows_of(answer.song_ids).tolist()
            row_of = {
                song: row if row >= 0 else -1 - song for song, row in zip(answer.song_ids, found_rows, strict=True)
            }
            rows = [[row_of[song] for song in c] for c in comparisons(answer)]
            known = np.array([row for row in rows if min(row) >= 0], dtype=np.int64).reshape(-1, 4)
            if len(known) and len(set(row_of.values())) == len(row_of):
                found.comparisons.append(known)
                found.questions.append(question_key(answer.kind, list(row_of.values())))
        return found

    def __len__(self) -> int:
        return len(self.comparisons)

    def some(self, places: Int64Array) -> Answered:
        return Answered([self.comparisons[i] for i in places], [self.questions[i] for i in places])

    def all(self) -> Int64Array:
        """Comparisons of all answers, (m, 4)."""
        return np.concatenate([np.empty((0, 4), np.int64), *self.comparisons])

    def folds(self, n: int, random_state: int) -> list[tuple[Int64Array, Int64Array]]:
        """Places to learn from and to judge on; as many parts as there are different questions, at most n."""
        from sklearn.model_selection import GroupKFold

        codes = {question: i for i, question in enumerate(dict.fromkeys(self.questions))}
        n = min(n, len(codes))
        if n < 2:
            return []
        groups = np.random.default_rng(random_state).permutation(len(codes))[[codes[q] for q in self.questions]]
        return list(GroupKFold(n).split(groups, groups=groups))


def relevance_of(asked: Int64Array, n_songs: int) -> relevance.Relevance:
    """Comparisons of one song with two others as relevance: more often the nearer one, more often the farther one."""
    votes: dict[tuple[int, int], int] = {}
    for row in asked.tolist():
        near, far = row[:2], row[2:]
        for song in set(near) & set(far):
            for pair, vote in ((near, 1), (far, -1)):
                other = pair[0] if pair[1] == song else pair[1]
                votes[song, other] = votes.get((song, other), 0) + vote
    relevant: list[list[int]] = [[] for _ in range(n_songs)]
    irrelevant: list[list[int]] = [[] for _ in range(n_songs)]
    for (song, other), vote in votes.items():
        if vote:
            (relevant if vote > 0 else irrelevant)[song].append(other)
    return relevance.Relevance.from_lists(relevant, irrelevant=irrelevant)


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of learning from answers."""

    L: Float64Array  # (r, d): the metric learned from all answers
    C: float
    path: list[dict[str, Any]]  # what came of every C
    # share of comparisons in order on answers that were held out, before and after; None where none could be
    lead: Lead | None
    untrained: float  # share of all comparisons that are in order without learning


@dataclass(frozen=True, slots=True)
class _Learner:
    """Learns from comparisons of rows of X."""

    X: Float64Array
    loss: str
    structure: str
    random_state: int
    blocks: Sequence[slice] = ()

    def fit(self, asked: Int64Array, C: float, told: Told) -> tuple[Float64Array, dict[str, Any]]:
        """L, and the report of the fit; steps tell of "has_learned", whether the metric so far is other than 0."""

        # without the transitive reduction, which loses what answers with errors in them say twice
        kept, _ = order.clean_comparisons(
            asked, contradictions="majority", reduce=False, random_state=self.random_state
        )
        rows, places = np.unique(kept, return_inverse=True)
        if not len(kept):
            return np.zeros((1, self.X.shape[1])), dict(_NO_FIT)
        here = places.reshape(-1, 4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of open gaps, which the report tells
            model = self._model(C)
            if self.loss == ORDER:
                # a metric of 0 loses 1 on every comparison, and its objective is C
                model.fit(
                    self.X[rows], here,
                    callback=lambda step: told(step | {"has_learned": lambda: step["objective"] < C * (1 - 1e-9)}),
                )  # fmt: skip
                n_cuts = model.n_iter_
            else:

                def on_step(step: dict[str, Any]) -> bool:
                    has_learned = {"has_learned": lambda: bool(step["components"]().any())}
                    return told(step | {"iteration": step["cut"]} | has_learned)

                model.fit(self.X[rows], relevance_of(here, len(rows)), callback=on_step)
                n_cuts = model.n_cuts_
        gap = max(0.0, model.objective_ - model.dual_bound_) / max(model.objective_, 1e-300)
        L: Float64Array = model.components_
        return L, {"gap": gap, "n_cuts": n_cuts, "rank": int(L.any(axis=1).sum())}

    def _model(self, C: float) -> Any:
        """The learner; with a kernel a block where there are several, unless the metric is of single dimensions."""

        has_kernels = bool(self.blocks) and self.structure == "full"
        if self.loss == ORDER:
            steps: dict[str, Any] = {"tol": _TOLERANCE, "max_iter": _MAX_STEPS}
            if has_kernels:
                return SourceEmbedding(self.blocks, C, **steps)
            return order.LinearPartialOrderEmbedding(self.structure, C, **steps)
        cuts: dict[str, Any] = {"C": C, "tol": _TOLERANCE, "max_cuts": _MAX_STEPS}
        if has_kernels:
            return SourceMLR(self.blocks, self.loss, **cuts)
        return metric.MLR(self.loss, structure=self.structure, **cuts)


def shares_in_order(Y: Float64Array, answered: Answered) -> Float64Array:
    """Share of each answer's comparisons that are in order in a space; equal distances count half."""
    shares = []
    for asked in answered.comparisons:
        i, j, k, m = Y[asked.T]
        near, far = ((i - j) ** 2).sum(axis=1), ((k - m) ** 2).sum(axis=1)
        shares.append(np.mean(np.where(near == far, 0.5, near < far)))
    return np.array(shares)


def too_few(answered: Answered) -> str:
    """Why there are too few answers to learn from; empty where there are enough."""
    if len(answered) >= _FEWEST:
        return ""
    return (
        f"{len(answered)} answers are too few to learn from; at least {_FEWEST} are needed. Answer some more on the "
        f"Compare page."
    )


def learn_from_answers(
    X: Float64Array,
    answered: Answered,
    *,
    Cs: Sequence[float],
    loss: str = ORDER,
    structure: str = "full",
    blocks: Sequence[slice] = (),
    random_state: int = 0,
    told: Callable[[str, dict[str, Any]], bool],
) -> Judged:
    """Learn a metric from answers, and judge it on answers that were held out.

    Parameters
    ----------
    X : float64 ndarray of shape (n_songs, d)
    Cs : sequence of float
        Strengths to choose from.
    loss : str
        "order" for the comparisons themselves (algorithm 2.2), or a loss of :class:`musicsim.metric.MLR`, for which
        they say what is relevant.
    structure : str
        Full or diagonal.
    blocks : sequence of slice
        The columns of each of several models, which have a block of a full metric each.
    told : callable of (message, point)
        Told every few steps of a fit: the point of the live lines, with "untrained", the share of the answers that
        are in order without learning, and once some are held out "quality". True ends it, as soon as some metric is
        other than 0.

    Returns
    -------
    Judged
        If it was ended: of the last part that was held out and judged, its metric, C and path; if there is none, of
        the C that was best within the first; if none was tried to its end, of the first fit.

    Raises
    ------
    ModelError
        If there are too few answers, or nothing is learned.
    """
    if too_few(answered):
        raise ModelError(too_few(answered))
    fits = _Fits(_Learner(X, loss, structure, random_state, blocks), answered, told)
    try:
        kept = _learned(fits, answered, Cs, random_state)
    except _Enough as enough:
        kept = enough.kept
    known = np.isfinite(fits.held_out)
    lead = None
    if known.sum() >= 2:
        after, before = fits.held_out[known], fits.plain[known]
        questions = [str(q) for q, k in zip(answered.questions, known, strict=True) if k]
        if len(set(questions)) > 1:
            interval = evaluation.paired_bootstrap(after, before, questions, 2000, random_state)
            lead = Lead(float(before.mean()), float(after.mean()), *interval)
    return Judged(kept.L, kept.C, kept.path, lead, fits.untrained)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A metric with the C and the path that it came of."""

    L: Float64Array
    C: float
    path: list[dict[str, Any]]


class _Enough(Exception):
    """It is to end here, and there is something to keep."""

    def __init__(self, kept: _Kept) -> None:
        super().__init__()
        self.kept = kept


class _Fits:
    """Fits that are reported, until it is enough, and the best of them so far."""

    def __init__(self, learner: _Learner, answered: Answered, told: Callable[[str, dict[str, Any]], bool]) -> None:
        self._learner, self._told, self._is_enough = learner, told, False
        self.plain = shares_in_order(learner.X, answered)
        self.untrained = float(self.plain.mean())
        self.held_out = np.full(len(answered), np.nan)
        self._claim: tuple[int, float] = (-1, 0.0)
        self._kept: _Kept | None = None

    def fit(self, answered: Answered, C: float, message: str) -> tuple[Float64Array, dict[str, Any]]:
        """L, and the report of the fit.

        Raises _Enough if it was cut short: a metric of some steps may be worse than none.
        """
        is_cut = False

        def on_step(step: dict[str, Any]) -> bool:
            nonlocal is_cut
            if step["iteration"] % _TRACE_EVERY == 1:
                point = {name: step[name] for name in ("objective", "dual_bound", "gap", "seconds")}
                point |= {"C": C, "cut": step["iteration"], "untrained": self.untrained}
                if np.isfinite(self.held_out).any():
                    point["quality"] = float(np.nanmean(self.held_out))
                self._is_enough = self._told(message, point) or self._is_enough
            is_cut = self._is_enough and (self._kept is not None or step["has_learned"]())
            return is_cut

        L, about = self._learner.fit(answered.all(), C, on_step)
        if is_cut:
            raise _Enough(self._kept or _Kept(L, C, [_entry(C, [], about)]))
        return L, about

    def shares(self, L: Float64Array, answered: Answered) -> Float64Array:
        """Shares of answers' comparisons that are in order under a metric."""
        return shares_in_order(self._learner.X @ L.T, answered)

    def keep(self, kept: _Kept, claim: tuple[int, float]) -> None:
        """Keep a metric for when it is enough, unless it is 0 or another one has as good a claim."""
        if kept.L.any() and claim > self._claim:
            self._claim, self._kept = claim, kept


def _learned(fits: _Fits, answered: Answered, Cs: Sequence[float], random_state: int) -> _Kept:
    """Judge on each part what was learned from the others, then learn from all.

    Raises _Enough if there is none; ModelError if nothing is learned.
    """
    folds = answered.folds(_OUTER, random_state)
    for n_done, (rest, judged) in enumerate(folds, 1):
        message = f"holding out a fifth of the answers, {n_done} of {len(folds)}"
        C, path = _chosen(fits, answered.some(rest), Cs, random_state, message)
        L, _ = fits.fit(answered.some(rest), C, message)
        fits.held_out[judged] = fits.shares(L, answered.some(judged))
        fits.keep(_Kept(L, C, path), (2, n_done))
    C, path = _chosen(fits, answered, Cs, random_state, "choosing C")
    # what some answers could be learned from with may be too small for all
    for larger in sorted(other for other in Cs if other >= C):
        L, _ = fits.fit(answered, float(larger), "learning from all answers")
        if L.any():
            return _Kept(L, float(larger), path)
    raise ModelError("nothing was learned: the metric is 0. Answer more questions or choose a larger C.")


def _chosen(
    fits: _Fits, answered: Answered, Cs: Sequence[float], random_state: int, message: str
) -> tuple[float, list[dict[str, Any]]]:
    """The C that is best on parts held out, and what came of every one. Raises _Enough if there is none."""
    folds = answered.folds(_INNER, random_state + 1) if len(Cs) > 1 else []
    path: list[dict[str, Any]] = []
    for C in Cs:
        shares: list[Float64Array] = []
        about: dict[str, Any] = _NO_FIT
        for rest, judged in folds:
            L, about = fits.fit(answered.some(rest), C, message)
            shares.append(fits.shares(L, answered.some(judged)))
            fits.keep(_Kept(L, C, [*path, _entry(C, [], about)]), (0, 0.0))
        path.append(_entry(C, shares, about))
        if folds:
            fits.keep(_Kept(L, C, path), (1, path[-1]["quality"]))
    # a metric of 0 tells nothing apart, however seldom it is wrong
    best = max(path, key=lambda entry: (entry["rank"] > 0, np.nan_to_num(entry["quality"], nan=-1.0)))
    return best["C"], path


def _entry(C: float, shares: list[Float64Array], about: dict[str, Any]) -> dict[str, Any]:
    """What came of a C: shares of answers that were held out, and the report of the last fit."""
    quality = float(np.concatenate(shares).mean()) if shares else float("nan")
    return {"C": float(C), "quality": quality, **about}
