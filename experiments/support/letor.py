"""Document rankers on one fold: for experiments.letor."""

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from experiments.support.letor_files import RankingRows
from musicsim._arrays import Float64Array, Int64Array
from musicsim.evaluation.graded import score_groups
from musicsim.metric import GMML, LGMML, MLR
from musicsim.relevance import Relevance

__all__ = [
    "BEYOND",
    "DOCUMENT",
    "EITHER",
    "KS",
    "Fitted",
    "Fold",
    "as_they_are",
    "best_of",
    "euclid",
    "fits_of",
    "global_gmml",
    "halves",
    "judged",
    "lgmml",
    "mlr",
    "ndcg",
    "pair_differences",
    "ranknet",
    "scores_of_known",
    "within_queries",
]

Score = Callable[[RankingRows], Float64Array]

KS = (1, 3, 5, 10)
DOCUMENT, BEYOND, EITHER = "a document", "beyond the mean", "either"
"""What may be the anchor of one metric: a relevant training document, or a point beyond the mean of these."""
_MAX_ANCHORS = 300
_STEPS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)  # steps from the mean of the others, as for the ideal anchors of L-GMML


@dataclass(frozen=True, slots=True)
class Fold:
    """Documents of training, validation and test; no query is in two parts."""

    name: str
    train: RankingRows
    validation: RankingRows
    test: RankingRows


@dataclass(frozen=True, slots=True)
class Fitted:
    """A ranker, its setting with the place in the grid, and CPU seconds of its fit and of all fits in validation."""

    score: Score
    chosen: str
    place: int
    seconds: float
    choosing_s: float


def ndcg(scores: Float64Array, rows: RankingRows) -> float:
    """Return the mean NDCG@10, the criterion of validation."""
    return float(score_groups(scores, rows.y, rows.group, (10,))["ndcg@10"].mean())


def best_of(fits: Iterator[tuple[str, Callable[[], Score]]], fold: Fold) -> Fitted:
    """Fit every setting and keep the one with the best NDCG@10 in validation; ties go to the first."""
    best: tuple[float, Score, str, int, float] | None = None
    total = 0.0
    for place, (setting, fit) in enumerate(fits):
        started = time.process_time()
        score = fit()
        spent = time.process_time() - started
        total += spent
        found = ndcg(score(fold.validation), fold.validation)
        if best is None or found > best[0]:
            best = found, score, setting, place, spent
    assert best is not None
    return Fitted(*best[1:], total)


def fits_of(
    grid: list[dict[str, Any]], fit: Callable[[dict[str, Any]], Score]
) -> Iterator[tuple[str, Callable[[], Score]]]:
    """Yield a fit for each setting of a grid, with the setting as text."""
    for parameters in grid:
        yield ", ".join(f"{name} {value}" for name, value in parameters.items()), partial(fit, parameters)


def within_queries(rows: RankingRows) -> Float64Array:
    """Z-score features within each query; features that are constant in a query become 0."""
    starts = np.concatenate([[0], np.cumsum(rows.group)[:-1]])
    sizes = rows.group[:, None]
    X = rows.X.astype(np.float64)
    away = X - np.repeat(np.add.reduceat(X, starts) / sizes, rows.group, axis=0)
    deviation = np.sqrt(np.add.reduceat(away * away, starts) / sizes)
    return away / np.repeat(np.where(deviation > 1e-9, deviation, 1.0), rows.group, axis=0)


def as_they_are(rows: RankingRows) -> Float64Array:
    """Return the features of the file."""
    return rows.X.astype(np.float64)


# --- local metrics -------------------------------------------------------------------------------------------------


def lgmml(fold: Fold, grid: list[dict[str, Any]], seed: int, **fixed: Any) -> Fitted:
    """Fit L-GMML with shared phi."""

    def fit(parameters: dict[str, Any]) -> Score:
        ranker = LGMML(random_state=seed, **fixed | parameters).fit(*fold.train)
        return lambda rows: ranker.predict(rows.X, rows.group)

    return best_of(fits_of(grid, fit), fold)


def halves(rows: RankingRows, seed: int) -> tuple[RankingRows, RankingRows]:
    """Split the documents of each query at random in two; skip queries with a single document."""
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(len(rows.y)), np.repeat(np.arange(len(rows.group)), rows.group)))
    sizes = rows.group
    place = np.arange(len(rows.y)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = np.repeat(sizes >= 2, sizes)
    parts = []
    for first in (0, 1):
        chosen = order[kept & (place % 2 == first)]
        group = (sizes[sizes >= 2] + 1 - first) // 2
        parts.append(RankingRows(rows.X[chosen], rows.y[chosen], group, (), ()))
    return parts[0], parts[1]


def scores_of_known(
    learned: RankingRows, ranked: RankingRows, seed: int, n_seeds: int, ks: tuple[int, ...], **parameters: Any
) -> dict[str, dict[str, Float64Array]]:
    """Score other documents of the same queries, by the shared phi and by each query's own; means over seeds."""
    queries = np.arange(len(ranked.group))
    each: dict[str, list[dict[str, Float64Array]]] = {"shared phi": [], "phi of the query": []}
    for i in range(n_seeds):
        ranker = LGMML(per_query=True, random_state=seed + i, **parameters).fit(*learned)
        for name, asked in (("shared phi", None), ("phi of the query", queries)):
            f = ranker.predict(ranked.X, ranked.group, queries=asked)
            each[name].append(score_groups(f, ranked.y, ranked.group, ks))
    return {
        name: {measure: np.mean([one[measure] for one in found], axis=0) for measure in found[0]}
        for name, found in each.items()
    }


# --- one metric, one anchor ----------------------------------------------------------------------------------------


def _anchored(fold: Fold, components: Float64Array, anchors: str, seed: int) -> Score:
    """Rank by the distance to the anchor that best ranks the training queries; validation chooses its kind."""

    def songs(rows: RankingRows) -> Float64Array:
        return within_queries(rows) @ components.T

    def near(anchor: Float64Array, X: Float64Array) -> Float64Array:
        return -np.sum((X - anchor) ** 2, axis=1)

    train, learned = fold.train, songs(fold.train)
    relevant = np.flatnonzero(train.y > 0)
    if len(relevant) > _MAX_ANCHORS:
        relevant = np.random.default_rng(seed).choice(relevant, _MAX_ANCHORS, replace=False)
    middle = learned[train.y > 0].mean(axis=0)
    kinds = {
        DOCUMENT: learned[relevant],
        BEYOND: middle + np.outer(_STEPS, middle - learned[train.y == 0].mean(axis=0)),
    }
    best = [
        max(points, key=lambda point: ndcg(near(point, learned), train))
        for kind, points in kinds.items()
        if anchors in (kind, EITHER)
    ]
    held_out = songs(fold.validation)
    anchor = max(best, key=lambda point: ndcg(near(point, held_out), fold.validation))
    return lambda rows: near(anchor, songs(rows))


def euclid(fold: Fold, anchors: str, seed: int) -> Fitted:
    """Rank by Euclidean distance."""
    plain = np.eye(fold.train.X.shape[1])
    return best_of(iter([("", lambda: _anchored(fold, plain, anchors, seed))]), fold)


def judged(rows: RankingRows) -> Relevance:
    """Return a relevance whose queries are the relevant documents.

    The other relevant documents of the same query are relevant, and its documents with label 0 are irrelevant.
    """
    starts = np.concatenate([[0], np.cumsum(rows.group)])
    near: list[Int64Array] = [np.empty(0, np.int64)] * len(rows.y)
    far = list(near)
    for first, last in pairwise(starts):
        here = np.arange(first, last)
        up, down = here[rows.y[here] > 0], here[rows.y[here] == 0]
        for row in up:
            near[row], far[row] = up[up != row], down
    return Relevance.from_lists(near, len(rows.y), irrelevant=far)


def global_gmml(fold: Fold, regs: tuple[float, ...], anchors: str, seed: int) -> Fitted:
    """Fit one geometric mean metric on all training documents."""
    X, relevance = within_queries(fold.train), judged(fold.train)

    def fits() -> Iterator[tuple[str, Callable[[], Score]]]:
        for reg in regs:
            yield (
                f"reg {reg:g}",
                lambda reg=reg: _anchored(fold, GMML(reg=reg).fit(X, relevance).components_, anchors, seed),
            )

    return best_of(fits(), fold)


def mlr(fold: Fold, Cs: tuple[float, ...], regularizer: str, n_queries: int, max_cuts: int, seed: int) -> Fitted:
    """Fit metric learning to rank on the documents of some training queries, with AUC as its loss."""
    from sklearn.exceptions import ConvergenceWarning

    rng = np.random.default_rng(seed)
    whole = judged(fold.train)
    query = np.repeat(np.arange(len(fold.train.group)), fold.train.group)
    drawn = rng.choice(len(fold.train.group), min(n_queries, len(fold.train.group)), replace=False)
    rows = np.flatnonzero(np.isin(query, drawn))
    X, relevance = within_queries(fold.train)[rows], whole.restrict(rows, rows)

    def fits() -> Iterator[tuple[str, Callable[[], Score]]]:
        for C in Cs:

            def fit(C: float = C) -> Score:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)  # the last digits do not change rankings
                    learner = MLR(C=C, regularizer=regularizer, tol=1e-2, max_cuts=max_cuts).fit(X, relevance)
                return _anchored(fold, learner.components_, EITHER, seed)

            yield f"C {C:g}", fit

    return best_of(fits(), fold)


# --- others --------------------------------------------------------------------------------------------------------


def pair_differences(X: Float64Array, y: Float64Array, group: Int64Array) -> Float64Array:
    """Return more relevant minus less relevant documents, for all pairs of a query, (n_pairs, d)."""
    starts = np.concatenate([[0], np.cumsum(group)])
    rows = []
    for first, last in pairwise(starts):
        up, down = np.nonzero(y[first:last, None] > y[None, first:last])
        rows.append(np.column_stack([first + up, first + down]))
    pairs = np.concatenate(rows)
    return X[pairs[:, 0]] - X[pairs[:, 1]]


def ranknet(
    fold: Fold, Cs: tuple[float, ...], features: Callable[[RankingRows], Float64Array] = within_queries
) -> Fitted:
    """Fit linear RankNet: a logistic loss on the differences of all pairs."""
    from sklearn.linear_model import LogisticRegression

    differences = pair_differences(features(fold.train), fold.train.y, fold.train.group)
    sign = np.where(np.arange(len(differences)) % 2 == 0, 1, -1)

    def fits() -> Iterator[tuple[str, Callable[[], Score]]]:
        for C in Cs:

            def fit(C: float = C) -> Score:
                learner = LogisticRegression(C=C, fit_intercept=False, max_iter=500)
                weights = learner.fit(differences * sign[:, None], sign).coef_[0]
                return lambda rows: features(rows) @ weights

            yield f"C {C:g}", fit

    return best_of(fits(), fold)
