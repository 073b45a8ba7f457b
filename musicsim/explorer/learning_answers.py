"""Learning from answers: a metric that keeps to what people said when they compared songs (thesis 2).

Answers are parted into five. On each part the metric is judged that was learned from the others, its C chosen within
these; the model that is kept is learned with the C that is best on all. Questions that were asked more than once stay
in one part.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim.errors import ModelError
from musicsim.evaluation import paired_bootstrap
from musicsim.explorer.learning_sources import SourceEmbedding, SourceMLR
from musicsim.explorer.snapshot import Snapshot
from musicsim.explorer.verdict import ORDER, Lead
from musicsim.library.answers import comparisons, question_key
from musicsim.relevance import Relevance

__all__ = ["Answered", "Judged", "learn_from_answers", "relevance_of", "shares_in_order", "too_few"]

_FEWEST = 6
_OUTER, _INNER = 5, 3
_TOLERANCE, _MOST_STEPS = 3e-2, 150
_TRACE_EVERY = 5

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Told = Callable[[dict[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class Answered:
    """Answers about the songs of a snapshot, each as its comparisons of rows.

    Attributes
    ----------
    comparisons : list of int64 ndarrays of shape (m, 4)
        One array an answer, (i, j, k, l) for d(i, j) < d(k, l).
    questions : list of tuple
        What tells questions apart: the same songs in any order are one.
    """

    comparisons: list[IntArray]
    questions: list[tuple[Any, ...]]

    @classmethod
    def of(cls, snapshot: Snapshot, listener: str = "") -> "Answered":
        """Those of a listener, or of all; unsure ones and those about songs without vectors are left out."""
        row_of = snapshot.row_of
        found = cls([], [])
        for answer in snapshot.library.answers.all(listener or None):
            rows = [[row_of.get(song, -1) for song in c] for c in comparisons(answer)]
            known = np.array([row for row in rows if min(row) >= 0], dtype=np.int64).reshape(-1, 4)
            if len(known):
                found.comparisons.append(known)
                found.questions.append(question_key(answer.form, answer.song_ids))
        return found

    def __len__(self) -> int:
        return len(self.comparisons)

    def some(self, places: IntArray) -> "Answered":
        return Answered([self.comparisons[i] for i in places], [self.questions[i] for i in places])

    def all(self) -> IntArray:
        """Comparisons of all answers, (m, 4)."""
        return np.concatenate([np.empty((0, 4), np.int64), *self.comparisons])

    def folds(self, n: int, random_state: int) -> list[tuple[IntArray, IntArray]]:
        """Places to learn from and to judge on; as many parts as there are different questions, at most n."""
        from sklearn.model_selection import GroupKFold

        codes = {question: i for i, question in enumerate(dict.fromkeys(self.questions))}
        n = min(n, len(codes))
        if n < 2:
            return []
        groups = np.random.default_rng(random_state).permutation(len(codes))[
            [codes[q] for q in self.questions]
        ]
        return list(GroupKFold(n).split(groups, groups=groups))


def relevance_of(asked: IntArray, n_songs: int) -> Relevance:
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
    return Relevance.from_lists(relevant, irrelevant=irrelevant)


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of learning from answers.

    Attributes
    ----------
    L : ndarray of shape (r, d)
        The metric learned from all answers.
    C : float
    path : list of dict
        What came of every C.
    lead : Lead or None
        Share of comparisons in order on answers that were held out, before and after; None where none could be.
    untrained : float
        Share of all comparisons that are in order without learning.
    """

    L: FloatArray
    C: float
    path: list[dict[str, Any]]
    lead: Lead | None
    untrained: float


@dataclass(frozen=True, slots=True)
class _Learner:
    """Learns from comparisons of rows of X."""

    X: FloatArray
    loss: str
    structure: str
    random_state: int
    blocks: Sequence[slice] = ()

    def fit(self, asked: IntArray, C: float, told: Told) -> tuple[FloatArray, dict[str, Any]]:
        """L, and what is told of the fit."""
        from musicsim.order import clean_comparisons

        # without the transitive reduction, which loses what answers with errors in them say twice
        kept, _ = clean_comparisons(
            asked, contradictions="majority", reduce=False, random_state=self.random_state
        )
        rows, places = np.unique(kept, return_inverse=True)
        if not len(kept):
            return np.zeros((1, self.X.shape[1])), {"gap": 0.0, "n_cuts": 0}
        here = places.reshape(-1, 4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of open gaps, which the report tells
            model = self._model(C)
            if self.loss == ORDER:
                model.fit(self.X[rows], here, callback=told)
                n_cuts = model.n_iter_
            else:
                relevance = relevance_of(here, len(rows))
                model.fit(
                    self.X[rows], relevance, callback=lambda step: told(step | {"iteration": step["cut"]})
                )
                n_cuts = model.n_cuts_
        gap = max(0.0, model.objective_ - model.dual_bound_) / max(model.objective_, 1e-300)
        return model.components_, {"gap": gap, "n_cuts": n_cuts}

    def _model(self, C: float) -> Any:
        """The learner; with a kernel a block where there are several, unless the metric is of single dimensions."""
        from musicsim.metric import MLR
        from musicsim.order import LinearPartialOrderEmbedding

        has_kernels = bool(self.blocks) and self.structure == "full"
        if self.loss == ORDER:
            steps: dict[str, Any] = {"tol": _TOLERANCE, "max_iter": _MOST_STEPS}
            if has_kernels:
                return SourceEmbedding(self.blocks, C, **steps)
            return LinearPartialOrderEmbedding(self.structure, C, **steps)
        cuts: dict[str, Any] = {"C": C, "tol": _TOLERANCE, "max_cuts": _MOST_STEPS}
        if has_kernels:
            return SourceMLR(self.blocks, self.loss, **cuts)
        return MLR(self.loss, structure=self.structure, **cuts)


def shares_in_order(Y: FloatArray, answered: Answered) -> FloatArray:
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
    X: FloatArray,
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
    answered : Answered
    Cs : sequence of float
        Strengths to choose from.
    loss : str
        "order" for the comparisons themselves (algorithm 2.2), or a loss of :class:`musicsim.metric.MLR`, for which
        they say what is relevant.
    structure : str
        Full or diagonal.
    blocks : sequence of slice
        The columns of each of several models, which have a block of a full metric each.
    random_state : int
    told : callable of (message, point)
        Told every few steps of a fit: the point of the live lines, with "untrained", the share of the answers that
        are in order without learning, and once some are held out "quality". True ends it, and goes on with what
        there is.

    Returns
    -------
    Judged

    Raises
    ------
    ModelError
        If there are too few answers, or nothing is learned.
    """
    if too_few(answered):
        raise ModelError(too_few(answered))
    learner = _Learner(X, loss, structure, random_state, blocks)
    plain = shares_in_order(X, answered)
    untrained = float(plain.mean())
    held_out = np.full(len(answered), np.nan)
    folds = answered.folds(_OUTER, random_state)
    is_over = False

    def teller(message: str, C: float) -> Told:
        def tell(step: dict[str, Any]) -> bool:
            nonlocal is_over
            if step["iteration"] % _TRACE_EVERY == 1:
                point = {name: step[name] for name in ("objective", "dual_bound", "gap", "seconds")}
                point |= {"C": C, "cut": step["iteration"], "untrained": untrained}
                if np.isfinite(held_out).any():
                    point["quality"] = float(np.nanmean(held_out))
                is_over = told(message, point) or is_over
            return is_over

        return tell

    for n_done, (rest, judged) in enumerate(folds, 1):
        message = f"holding out a fifth of the answers, {n_done} of {len(folds)}"
        C, _ = _chosen(learner, answered.some(rest), Cs, random_state, partial(teller, message))
        L, _ = learner.fit(answered.some(rest).all(), C, teller(message, C))
        held_out[judged] = shares_in_order(learner.X @ L.T, answered.some(judged))
        if is_over:
            break
    is_over = False
    C, path = _chosen(learner, answered, Cs, random_state, partial(teller, "choosing how strongly to learn"))
    # what some answers could be learned from with may be too small for all
    for larger in sorted(other for other in Cs if other >= C):
        C = float(larger)
        L, _ = learner.fit(answered.all(), C, teller("learning from all answers", C))
        if L.any():
            break
    else:
        raise ModelError("nothing was learned: the metric is 0. Answer more questions, or take a larger C.")
    known = np.isfinite(held_out)
    lead = None
    if known.sum() >= 2:
        after, before = held_out[known], plain[known]
        questions = [str(q) for q, k in zip(answered.questions, known, strict=True) if k]
        if len(set(questions)) > 1:
            interval = paired_bootstrap(after, before, questions, 2000, random_state)
            lead = Lead(float(before.mean()), float(after.mean()), *interval)
    return Judged(L, C, path, lead, untrained)


def _chosen(
    learner: _Learner,
    answered: Answered,
    Cs: Sequence[float],
    random_state: int,
    teller: Callable[[float], Told],
) -> tuple[float, list[dict[str, Any]]]:
    """The C that is best on parts held out, and what came of every one."""
    folds = answered.folds(_INNER, random_state + 1)
    path = []
    for C in Cs:
        shares, fits = [], []
        for rest, judged in folds if len(Cs) > 1 else ():
            L, about = learner.fit(answered.some(rest).all(), C, teller(C))
            shares.append(shares_in_order(learner.X @ L.T, answered.some(judged)))
            fits.append(about | {"rank": int(L.any(axis=1).sum())})
        quality = float(np.concatenate(shares).mean()) if shares else float("nan")
        about = fits[-1] if fits else {"gap": 0.0, "n_cuts": 0, "rank": 0}
        path.append({"C": float(C), "quality": quality, **about})
    # a metric of 0 tells nothing apart, however seldom it is wrong
    best = max(path, key=lambda entry: (entry["rank"] > 0, np.nan_to_num(entry["quality"], nan=-1.0)))
    return best["C"], path
