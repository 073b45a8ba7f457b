"""Setting an index up for a recall: which kind, and how many leaves or cells to look into (thesis 6.4, turned round).

Recall is measured on rows that are drawn from the index itself, each without itself among its answers. An answer is
right if it is no farther than the k-th true neighbour, so that ties count for nothing and against nothing.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim._blas import one_blas_thread
from musicsim.search._probed_index import ProbedIndex
from musicsim.search._rows import Answers, checked
from musicsim.search.exact import ExactIndex
from musicsim.search.forest import SpillForest
from musicsim.search.partition import PartitionIndex

EXACT_BELOW = 5_000
"""Rows below which nothing is tried: comparing with every one takes a fraction of a millisecond."""

_SETTINGS: tuple[SpillForest | PartitionIndex, ...] = (
    PartitionIndex(),
    PartitionIndex(2.0, explained=0.98, ranked=1.0),
    PartitionIndex(1.0, explained=0.99, ranked=1.0),
    PartitionIndex(1.0, explained=0.95, ranked=1.0),
    PartitionIndex(1.0, explained=0.9, ranked=3.0),
    SpillForest(8),
    SpillForest(24),
    SpillForest(4, 128, spill=0.05),
)
_TRIAL_ROWS = 100_000
# A setting that takes less memory is chosen if it is slower by no more than this.
_AS_FAST = 1.1
# A setting is sure of a recall on more rows than it was tried on if with so many times its probes it misses at most a
# third of what may be missed: codes tell less about which row is nearer the more rows there are.
_FARTHER = 16
# An index over all rows that is slower than its trial foretold by more than this lets the next setting be built, too.
_SLOWER = 2.0
# Steps in which the number of probes is refined.
_FINENESS = 1.05


@dataclass(frozen=True, slots=True)
class Calibration:
    """Result of a calibration: the number of probes, and the recall and time it gives."""

    k: int
    n_probes: int
    goal: float  # the recall that was asked for
    # Mean recall of queries that the number was not chosen on, but raised until they reach the goal: never
    # below it unless every leaf is looked into. That of other queries may be lower by about `error`.
    recall: float
    error: float  # its standard error
    seconds: float  # CPU seconds a query, one at a time on one thread


@dataclass(frozen=True, slots=True)
class _Queries:
    """Rows that ask, and how far their k-th neighbour is."""

    rows: Int64Array
    Q: Float32Array
    limits: Float32Array
    k: int

    def recalls(self, index: ProbedIndex, n_probes: int) -> Float64Array:
        """Share of true neighbours among the answers to each query."""
        distances, ids = index.query(self.Q, self.k + 1, n_probes=n_probes)
        right = (distances <= self.limits[:, None]) & (ids != self.rows[:, None])
        return np.minimum(right.sum(axis=1), self.k) / self.k


def _queries(X: Float32Array, k: int, n: int, seed: int) -> tuple[_Queries, _Queries]:
    """Two sets of at most n rows that have no row in common."""
    rows = np.random.default_rng(seed).permutation(len(X))[: 2 * n]
    distances, ids = ExactIndex().fit(X).query(X[rows], k + 1)
    # the row itself stands among its neighbours, unless k + 1 copies have a lower number
    others = np.where(ids == rows[:, None], -np.inf, distances)
    limits = np.sort(others, axis=1)[:, -1].astype(np.float32) * np.float32(1 + 1e-6)
    halves = np.array_split(np.arange(len(rows)), 2)
    first, second = (_Queries(rows[half], np.asarray(X[rows[half]]), limits[half], k) for half in halves)
    return first, second


def _least_probes(index: ProbedIndex, queries: _Queries, recall: float) -> int:
    """The least number of leaves or cells, to 5 %, with which mean recall less its standard error reaches the goal."""

    def reaches(n_probes: int) -> bool:
        values = queries.recalls(index, n_probes)
        return bool(values.mean() - values.std() / np.sqrt(len(values)) >= min(recall, 1.0 - 1e-12))

    most = index.n_leaves_
    low, high = 0, min(index.fewest_probes_, most)
    while high < most and not reaches(high):
        low, high = high, min(2 * high, most)
    while high > max(low + 1, round(low * _FINENESS)):
        middle = (low + high) // 2
        if reaches(middle):
            high = middle
        else:
            low = middle
    return high


def _seconds(ask: Callable[[Float32Array], Answers], queries: _Queries) -> float:
    """CPU seconds of one query, asked one at a time on one thread."""
    best = np.inf
    with one_blas_thread():
        for _ in range(3):
            started = time.thread_time()
            for query in queries.Q[:100]:
                ask(query[None, :])
            best = min(best, (time.thread_time() - started) / len(queries.Q[:100]))
    return best


def calibrate(
    index: ProbedIndex,
    X: npt.ArrayLike,
    k: int = 10,
    recall: float = 0.95,
    *,
    n_queries: int = 400,
    random_state: int | np.random.Generator | None = None,
) -> Calibration:
    """Find the number of leaves or cells an index has to look into for a recall, and set its ``n_probes`` to it.

    Parameters
    ----------
    index : SpillForest or PartitionIndex
        Fitted.
    X : float32 array of shape (n_samples, n_features)
        The rows it was fitted to, none of them removed.
    k : int >= 1
    recall : float in (0, 1]
        Mean share of the `k` true neighbours among the answers.
    n_queries : int >= 2
        Rows that the number is chosen on, and as many others that it is checked on. Their true neighbours cost
        ``2 * n_queries`` exact searches.
    random_state : int, numpy.random.Generator or None

    Raises
    ------
    ValueError
        If an argument is out of range or `X` has another shape than the index.

    Notes
    -----
    The number is raised until the queries it was not chosen on reach the recall too. Of an index with fewer than
    ``k + 2`` rows every leaf is looked into.
    """
    _check(k, recall, n_queries)
    rows = checked(X, "X")
    if rows.shape != (index.n_samples_, index.n_features_in_):
        raise ValueError(f"X has shape {rows.shape}, the index {(index.n_samples_, index.n_features_in_)}.")
    if len(rows) < k + 2:
        index.n_probes = max(1, index.n_leaves_)
        return Calibration(k, index.n_probes, recall, 1.0, 0.0, 0.0)
    seed = int(np.random.default_rng(random_state).integers(2**63))
    return _calibrated(index, _queries(rows, k, n_queries, seed), recall)


def _check(k: int, recall: float, n_queries: int) -> None:
    if not 0 < recall <= 1:
        raise ValueError(f"recall={recall} should be above 0 and at most 1.")
    if k < 1 or n_queries < 2:
        raise ValueError(f"k={k} should be at least 1, n_queries={n_queries} at least 2.")


def _calibrated(index: ProbedIndex, queries: tuple[_Queries, _Queries], recall: float) -> Calibration:
    chosen_on, checked_on = queries
    n_probes = _least_probes(index, chosen_on, recall)
    values = checked_on.recalls(index, n_probes)
    while values.mean() < recall - 1e-12 and n_probes < index.n_leaves_:
        n_probes = min(int(np.ceil(n_probes * _FINENESS)), index.n_leaves_)
        values = checked_on.recalls(index, n_probes)
    index.n_probes = n_probes
    error = float(values.std() / np.sqrt(len(values)))
    seconds = _seconds(partial(index.query, k=chosen_on.k, n_probes=n_probes), checked_on)
    return Calibration(chosen_on.k, n_probes, recall, float(values.mean()), error, seconds)


def tune(
    X: npt.ArrayLike,
    k: int = 10,
    recall: float = 0.95,
    *,
    settings: Iterable[SpillForest | PartitionIndex | dict[str, Any]] | None = None,
    n_queries: int = 400,
    n_jobs: int | None = -1,
    random_state: int | np.random.Generator | None = None,
) -> SpillForest | PartitionIndex | ExactIndex:
    """Build the index that finds a share of the true neighbours in the least time.

    Partitions and forests are tried on at most 100 000 rows; of those that are as fast as the fastest within a tenth
    the smallest is built over all rows, and the number of probes is found for it. Where that does not reach the recall,
    or takes twice the time that was to be expected, the next is built, too. An index is left where comparing with every
    row takes no longer.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    k : int >= 1
    recall : float in (0, 1]
        Mean share of the `k` true neighbours among the answers.
    settings : iterable of SpillForest, PartitionIndex or dict, optional
        Indexes to try, instead of eight that suit most data; they are copied, not fitted. A dict has parameters of a
        :class:`SpillForest`.
    n_queries, random_state : as in :func:`calibrate`
    n_jobs : int or None
        Threads of all that are tried: None is 1, -1 one a core.

    Returns
    -------
    SpillForest, PartitionIndex or ExactIndex
        Fitted; exact below 5 000 rows, and where the others are not faster. Those have ``calibration_``, see
        :class:`Calibration`, and ``trials_``, a dict for each setting: its parameters, ``index`` not fitted, the
        ``n_probes`` that were found, ``recall`` on the queries that they were found on, ``ceiling``, the recall with
        16 times as many, ``seconds`` a query and ``nbytes``.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    _check(k, recall, n_queries)
    rows = checked(X, "X")
    if len(rows) < max(EXACT_BELOW, k + 2):
        return ExactIndex().fit(rows)
    draws = np.random.default_rng(random_state)
    seed, tree_seed = (int(number) for number in draws.integers(2**63, size=2))
    tried = rows
    if len(rows) > _TRIAL_ROWS:
        tried = rows[np.sort(draws.permutation(len(rows))[:_TRIAL_ROWS])]
    queries = _queries(tried, k, n_queries, seed)
    trials: list[dict[str, Any]] = []
    # the time of comparing with every row grows as their number
    of_all = _seconds(partial(ExactIndex().fit(tried).query, k=k), queries[1]) * len(rows) / len(tried)
    for given in _SETTINGS if settings is None else settings:
        setting = SpillForest(**given) if isinstance(given, dict) else given
        index = _set_up(setting, n_jobs, tree_seed).fit(tried)
        n_probes = _least_probes(index, queries[0], recall)
        seconds = _seconds(partial(index.query, k=k, n_probes=n_probes), queries[1])
        reached, ceiling = (
            float(queries[0].recalls(index, n).mean()) for n in (n_probes, min(_FARTHER * n_probes, index.n_leaves_))
        )
        found = {"n_probes": n_probes, "recall": reached, "ceiling": ceiling, "seconds": seconds}
        trials.append({**setting.get_params(), "index": setting, **found, "nbytes": index.nbytes_})
    if len(tried) < len(rows):
        queries = _queries(rows, k, n_queries, seed)
    growth = (len(rows) / len(tried)) ** 0.5  # of the rows in as many cells for each root of their number
    built: list[Any] = []
    for trial in _in_order(trials, recall, are_all=len(tried) == len(rows)):
        index = _set_up(trial["index"], n_jobs, tree_seed).fit(rows)
        index.calibration_, index.trials_ = _calibrated(index, queries, recall), trials
        built.append(index)
        if _falls_short(index) == 0.0 and index.calibration_.seconds <= _SLOWER * growth * trial["seconds"]:
            break
    best = min(built, key=lambda index: (_falls_short(index), index.calibration_.seconds))
    return best if best.calibration_.seconds < of_all else ExactIndex().fit(rows)


def _falls_short(index: Any) -> float:
    """How much of the recall is missing though all leaves are looked into."""
    found = index.calibration_
    return max(float(found.goal - 1e-12 - found.recall), 0.0)


def _in_order(trials: list[dict[str, Any]], recall: float, *, are_all: bool) -> list[dict[str, Any]]:
    """Trials in which settings are built, the best first, then by their time; `are_all` where all rows were tried."""
    # codes that rank too few rows may keep an index from the recall, however much it looks into
    able = [trial for trial in trials if trial["recall"] >= recall - 1e-12]
    sure = [trial for trial in able if are_all or 1.0 - trial["ceiling"] <= (1.0 - recall) / 3]
    left = sorted(sure or able or trials, key=itemgetter("seconds"))
    as_fast = [trial for trial in left if trial["seconds"] <= _AS_FAST * left[0]["seconds"]]
    best = min(as_fast, key=itemgetter("nbytes"))
    # what was tried on all rows is known: there is nothing that another one would have to stand in for
    return [best] if are_all else [best, *(trial for trial in left if trial is not best)]


def _set_up(setting: SpillForest | PartitionIndex, n_jobs: int | None, seed: int) -> Any:
    return clone(setting).set_params(n_jobs=n_jobs, random_state=seed)
