"""Choose an index and its number of probes for a given recall; thesis 6.4 measures the recall of given settings.

Recall is measured with random rows of the index as queries; each row is excluded from its own results. A result is
correct if it is not farther away than the k-th true neighbor, so ties do not matter.
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
from musicsim._checks import check_type
from musicsim.blas import one_blas_thread
from musicsim.search._rows import Neighbors, check_rows
from musicsim.search.exact import ExactIndex
from musicsim.search.forest import SpillForest
from musicsim.search.partition import PartitionIndex
from musicsim.search.tree_index import ProbedIndex

EXACT_BELOW = 5_000
"""With fewer rows, an exact index is used, because a search takes only a fraction of a millisecond."""

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
TRIAL_ROWS = 100_000
_AS_FAST = 1.1  # A setting that needs less memory is preferred if it is slower by at most this factor
# Codes distinguish near rows less well if there are more rows than in the trial, so a setting needs headroom. With this
# many times its probes, it must miss at most a third of the neighbors that the goal allows it to miss.
_PROBE_FACTOR = 16
# If an index over all rows is slower than predicted by more than this factor, the next setting is also built.
_SLOWER = 2.0
_PRECISION = 1.05  # Relative precision of the chosen number of probes


@dataclass(frozen=True, slots=True)
class Calibration:
    """Result of a calibration: the number of probes, with its recall and search time.

    Examples
    --------
    >>> from musicsim.search import Calibration
    >>> reached = Calibration(k=10, n_probes=24, goal=0.95, recall=0.957, error=0.004, seconds=0.0006)
    >>> reached.recall - 2 * reached.error > reached.goal  # the goal is within the error
    False
    """

    k: int
    n_probes: int
    goal: float  # requested recall
    # Mean recall of the check queries; it is below the goal only if every leaf is scanned. The recall of other queries
    # can be lower by about `error`.
    recall: float
    error: float  # standard error of the recall
    seconds: float  # CPU seconds per query, if queries run one at a time on one thread


@dataclass(frozen=True, slots=True)
class _Queries:
    """Rows used as queries, with the distance from each row to its k-th neighbor."""

    rows: Int64Array
    Q: Float32Array
    limits: Float32Array
    k: int

    def recalls(self, index: ProbedIndex, n_probes: int) -> Float64Array:
        """Return, for each query, the share of its true neighbors among the results."""
        distances, ids = index.query(self.Q, self.k + 1, n_probes=n_probes)
        is_correct = (distances <= self.limits[:, None]) & (ids != self.rows[:, None])
        return np.minimum(is_correct.sum(axis=1), self.k) / self.k


def _draw_queries(X: Float32Array, k: int, n: int, seed: int) -> tuple[_Queries, _Queries]:
    """Return two disjoint sets of at most n queries each, drawn from the rows of X."""
    rows = np.random.default_rng(seed).permutation(len(X))[: 2 * n]
    distances, ids = ExactIndex().fit(X).query(X[rows], k + 1)
    # a row is among its own neighbors, unless k + 1 identical rows precede it
    others = np.where(ids == rows[:, None], -np.inf, distances)
    limits = np.sort(others, axis=1)[:, -1].astype(np.float32) * np.float32(1 + 1e-6)
    halves = np.array_split(np.arange(len(rows)), 2)
    first, second = (_Queries(rows[half], np.asarray(X[rows[half]]), limits[half], k) for half in halves)
    return first, second


def _least_probes(index: ProbedIndex, queries: _Queries, recall: float) -> int:
    """Return the smallest number of probes (to 5%) at which mean recall minus its standard error reaches the goal."""

    def reaches(n_probes: int) -> bool:
        values = queries.recalls(index, n_probes)
        return bool(values.mean() - values.std() / np.sqrt(len(values)) >= min(recall, 1.0 - 1e-12))

    n_leaves = index.n_leaves_
    low, high = 0, min(index.fewest_probes_, n_leaves)
    while high < n_leaves and not reaches(high):
        low, high = high, min(2 * high, n_leaves)
    while high > max(low + 1, round(low * _PRECISION)):
        middle = (low + high) // 2
        if reaches(middle):
            high = middle
        else:
            low = middle
    return high


def _measure_seconds(search: Callable[[Float32Array], Neighbors], queries: _Queries) -> float:
    """Return the CPU seconds per query, if queries run one at a time on one thread."""
    best = np.inf
    with one_blas_thread():
        for _ in range(3):
            started = time.thread_time()
            for query in queries.Q[:100]:
                search(query[None, :])
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
    """Find the number of leaves or cells that an index must scan to reach a given recall, and set its ``n_probes``.

    Parameters
    ----------
    index : SpillForest or PartitionIndex, fitted
    X : float32 array of shape (n_samples, n_features)
        The rows of the index; none of them may have been removed from it.
    k : int >= 1
    recall : float in (0, 1]
        Mean share of the `k` true neighbors among the results.
    n_queries : int >= 2
        Number of random rows for choosing the number of probes, and of other rows for checking it. The calibration
        runs ``2 * n_queries`` exact searches.
    random_state : int, numpy.random.Generator or None

    Notes
    -----
    Probes are added until the check queries also reach the recall. With fewer than ``k + 2`` rows, every leaf is
    scanned.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.search import SpillForest, calibrate
    >>> X = np.random.default_rng(0).normal(size=(2000, 8)).astype(np.float32)
    >>> forest = SpillForest(n_trees=4, random_state=0).fit(X)
    >>> result = calibrate(forest, X, recall=0.9, n_queries=100, random_state=0)
    >>> result.recall > 0.85, forest.n_probes == result.n_probes
    (True, True)
    """
    _check(k, recall, n_queries)
    check_type("index", index, ProbedIndex, "is the base class of SpillForest and PartitionIndex")
    rows = check_rows(X, "X")
    if rows.shape != (index.n_samples_, index.n_features_in_):
        raise ValueError(f"X has shape {rows.shape}, but the index has {(index.n_samples_, index.n_features_in_)}.")
    if len(rows) < k + 2:
        index.n_probes = max(1, index.n_leaves_)
        return Calibration(k, index.n_probes, recall, 1.0, 0.0, 0.0)
    seed = int(np.random.default_rng(random_state).integers(2**63))
    return _calibrate(index, _draw_queries(rows, k, n_queries, seed), recall)


def _check(k: int, recall: float, n_queries: int) -> None:
    if not 0 < recall <= 1:
        raise ValueError(f"recall={recall} must be above 0 and at most 1.")
    if k < 1 or n_queries < 2:
        raise ValueError(f"k={k} must be at least 1, and n_queries={n_queries} at least 2.")


def _calibrate(index: ProbedIndex, queries: tuple[_Queries, _Queries], recall: float) -> Calibration:
    train, check = queries
    n_probes = _least_probes(index, train, recall)
    recalls = check.recalls(index, n_probes)
    while recalls.mean() < recall - 1e-12 and n_probes < index.n_leaves_:
        n_probes = min(int(np.ceil(n_probes * _PRECISION)), index.n_leaves_)
        recalls = check.recalls(index, n_probes)
    index.n_probes = n_probes
    error = float(recalls.std() / np.sqrt(len(recalls)))
    seconds = _measure_seconds(partial(index.query, k=train.k, n_probes=n_probes), check)
    return Calibration(train.k, n_probes, recall, float(recalls.mean()), error, seconds)


def tune(
    X: npt.ArrayLike,
    k: int = 10,
    recall: float = 0.95,
    *,
    settings: Iterable[SpillForest | PartitionIndex] | None = None,
    n_queries: int = 400,
    n_jobs: int | None = -1,
    random_state: int | np.random.Generator | None = None,
) -> SpillForest | PartitionIndex | ExactIndex:
    """Build the fastest index that reaches a given recall.

    Partitions and forests are tried on at most 100,000 rows. Among the settings within 10% of the fastest, the one that
    needs the least memory is built over all rows and calibrated. If this index does not reach the recall, or takes
    twice the expected time, the next setting is also built.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    settings : iterable of SpillForest and PartitionIndex, optional
        Indexes to try; they are not changed. By default, eight settings that suit most data.
    k, recall, n_queries, random_state : as in :func:`calibrate`
    n_jobs : as in :class:`SpillTree`

    Returns
    -------
    SpillForest, PartitionIndex or ExactIndex, fitted
        An exact index if there are fewer than 5,000 rows, or if comparing with every row is as fast. Other indexes have
        ``calibration_``, a :class:`Calibration`, and ``trials_``, a list with one dict per setting. Each dict contains
        the parameters, the unfitted ``index``, the chosen ``n_probes`` and the ``recall`` of the training queries.
        Further entries are ``ceiling`` (the recall with 16 times as many probes), ``seconds`` per query, and
        ``nbytes``.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.search import tune
    >>> X = np.random.default_rng(0).normal(size=(1000, 8))
    >>> tune(X, recall=0.9)  # comparing with all rows is fast enough for so few
    ExactIndex(n_jobs=None)
    """
    _check(k, recall, n_queries)
    rows = check_rows(X, "X")
    if len(rows) < max(EXACT_BELOW, k + 2):
        return ExactIndex().fit(rows)
    rng = np.random.default_rng(random_state)
    seed, tree_seed = (int(number) for number in rng.integers(2**63, size=2))

    def build(setting: SpillForest | PartitionIndex, X: Float32Array) -> Any:
        return clone(setting).set_params(n_jobs=n_jobs, random_state=tree_seed).fit(X)

    sample = rows
    if len(rows) > TRIAL_ROWS:
        sample = rows[np.sort(rng.permutation(len(rows))[:TRIAL_ROWS])]
    queries = _draw_queries(sample, k, n_queries, seed)
    trials: list[dict[str, Any]] = []
    # the time to compare with every row is proportional to the number of rows
    exact_seconds = _measure_seconds(partial(ExactIndex().fit(sample).query, k=k), queries[1])
    exact_seconds = exact_seconds * len(rows) / len(sample)
    for setting in _SETTINGS if settings is None else settings:
        index = build(setting, sample)
        n_probes = _least_probes(index, queries[0], recall)
        more_probes = min(_PROBE_FACTOR * n_probes, index.n_leaves_)
        trial = {
            "n_probes": n_probes,
            "recall": float(queries[0].recalls(index, n_probes).mean()),
            "ceiling": float(queries[0].recalls(index, more_probes).mean()),
            "seconds": _measure_seconds(partial(index.query, k=k, n_probes=n_probes), queries[1]),
            "nbytes": index.nbytes_,
        }
        trials.append({**setting.get_params(), "index": setting, **trial})
    if len(sample) < len(rows):
        queries = _draw_queries(rows, k, n_queries, seed)
    growth = (len(rows) / len(sample)) ** 0.5  # factor by which the number of rows per cell grows
    built: list[Any] = []
    for trial in _order_trials(trials, recall, is_complete=len(sample) == len(rows)):
        index = build(trial["index"], rows)
        index.calibration_, index.trials_ = _calibrate(index, queries, recall), trials
        built.append(index)
        if _shortfall(index) == 0.0 and index.calibration_.seconds <= _SLOWER * growth * trial["seconds"]:
            break
    best = min(built, key=lambda index: (_shortfall(index), index.calibration_.seconds))
    return best if best.calibration_.seconds < exact_seconds else ExactIndex().fit(rows)


def _shortfall(index: Any) -> float:
    """Return how far the recall falls short of the goal when all leaves are scanned."""
    calibration = index.calibration_
    return max(float(calibration.goal - 1e-12 - calibration.recall), 0.0)


def _order_trials(trials: list[dict[str, Any]], recall: float, *, is_complete: bool) -> list[dict[str, Any]]:
    """Return the trials to build, best first; if all rows were tried (`is_complete`), return only the best."""
    # more probes do not help if codes discard too many of the true neighbors
    able = [trial for trial in trials if trial["recall"] >= recall - 1e-12]
    safe = [trial for trial in able if is_complete or 1.0 - trial["ceiling"] <= (1.0 - recall) / 3]
    ordered = sorted(safe or able or trials, key=itemgetter("seconds"))
    as_fast = [trial for trial in ordered if trial["seconds"] <= _AS_FAST * ordered[0]["seconds"]]
    best = min(as_fast, key=itemgetter("nbytes"))
    return [best] if is_complete else [best, *(trial for trial in ordered if trial is not best)]
