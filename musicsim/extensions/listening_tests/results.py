"""Results of a listening test, from listeners who graded every pair and passed the attention checks.

Models are compared per query, because the results of one query are not independent.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

import numpy as np

from musicsim import evaluation
from musicsim._arrays import Float64Array
from musicsim.extensions.listening_tests.frozen import ListeningTest
from musicsim.extensions.listening_tests.store import CATEGORIES, Grade, InvitedListener, ListeningTestStore
from musicsim.extensions.listening_tests.taking_part import test_of
from musicsim.library import Library, as_csv

_VERY = len(CATEGORIES) - 1
_LEVEL = 0.05
_SEED = 0  # random seed for intervals


@dataclass(frozen=True, slots=True)
class Participation:
    listener: InvitedListener
    n_graded: int
    n_pairs: int
    n_failed_checks: int
    counts: bool  # whether the listener has finished and passed the checks


@dataclass(frozen=True, slots=True)
class ModelGrades:
    name: str
    mean_fine: float  # mean fine score over queries; nan without grades
    shares: tuple[float, ...]  # share of grades in each category


@dataclass(frozen=True, slots=True)
class PairOfModels:
    """Two models; `better` has the better mean rank."""

    better: str
    worse: str
    difference: float  # difference between the mean fine scores
    # 95% interval over queries; nan with fewer than two queries
    low: float
    high: float
    p_value: float  # p-value of Tukey's honestly significant difference test on ranks

    @property
    def is_sure(self) -> bool:
        return self.p_value < _LEVEL and self.low > 0

    @property
    def summary(self) -> str:
        if self.is_sure:
            verdict = f"“{self.better}” is better than “{self.worse}”"
        else:
            verdict = f"No significant difference between “{self.better}” and “{self.worse}”"
        p = "p < .001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}".replace("0.", ".", 1)
        return (
            f"{verdict}: the fine scores differ by {self.difference:+.1f} on average "
            f"(95% interval {self.low:+.1f} to {self.high:+.1f}; {p})."
        )


@dataclass(frozen=True, slots=True)
class TestResults:
    progress: tuple[Participation, ...]
    models: tuple[ModelGrades, ...]
    n_queries: int  # number of queries with scores for every model
    ranks: "evaluation.RankComparison | None"  # None if there are fewer than two such queries
    pairs: tuple[PairOfModels, ...]  # all pairs of models; empty without ranks
    by_category: "evaluation.Agreement"  # listeners' agreement on categories (ordinal)
    by_fine: "evaluation.Agreement"  # listeners' agreement on fine scores (interval)


Grades = Mapping[int, Sequence[Grade]]  # maps each listener's id to grades


def results_of(library: Library, test_id: int) -> TestResults:
    """Return a test's current results. Raises NotFoundError if there is no test with this id."""
    tests = ListeningTestStore(library)
    return results(test_of(library, test_id), tests.listeners(test_id), tests.grades(test_id))


def results(test: ListeningTest, listeners: Sequence[InvitedListener], grades: Grades) -> TestResults:
    progress = tuple(_progress(test, listener, grades.get(listener.id, ())) for listener in listeners)
    counted = [one.listener for one in progress if one.counts]
    graded = [i for i, pair in enumerate(test.pairs) if not pair.is_check]
    category, fine = (_matrix(counted, grades, len(test.pairs), name)[:, graded] for name in ("category", "fine"))
    queries = sorted({test.pairs[i].query for i in graded})
    query = np.array([queries.index(test.pairs[i].query) for i in graded])
    is_result = np.array([[m in test.pairs[i].models for m in range(len(test.models))] for i in graded])
    scores = evaluation.scores_by_query(fine, query, is_result)
    scores = scores[np.isfinite(scores).all(axis=1)]
    ranks = evaluation.compare_ranks(scores) if len(scores) > 1 else None
    models = (_summarize(name, scores[:, m], category[:, is_result[:, m]]) for m, name in enumerate(test.models))
    return TestResults(
        progress, tuple(models), len(scores), ranks, tuple(_compare(test.models, scores, ranks)) if ranks else (),
        evaluation.krippendorff_alpha(category, "ordinal", random_state=_SEED),
        evaluation.krippendorff_alpha(fine, "interval", random_state=_SEED),
    )  # fmt: skip


def _progress(test: ListeningTest, listener: InvitedListener, grades: Sequence[Grade]) -> Participation:
    by_pair = {grade.pair: grade for grade in grades}
    checks = [grade.category for pair, grade in by_pair.items() if test.pairs[pair].is_check]
    n_failed = sum(category is not None and category < _VERY for category in checks)
    counts = len(by_pair) == len(test.pairs) and n_failed <= test.max_failed_checks
    return Participation(listener, len(by_pair), len(test.pairs), n_failed, counts)


def _matrix(listeners: Sequence[InvitedListener], grades: Grades, n_pairs: int, name: str) -> Float64Array:
    """Return the categories or fine scores, (n_listeners, n_pairs); nan for pairs that could not be played."""
    matrix = np.full((len(listeners), n_pairs), np.nan)
    for row, listener in zip(matrix, listeners, strict=True):
        for grade in grades[listener.id]:
            value = getattr(grade, name)
            row[grade.pair] = np.nan if value is None else value
    return matrix


def _summarize(name: str, scores: np.ndarray, categories: np.ndarray) -> ModelGrades:
    n = np.isfinite(categories).sum()
    shares = tuple(float((categories == i).sum() / n) if n else math.nan for i in range(len(CATEGORIES)))
    return ModelGrades(name, float(scores.mean()) if len(scores) else math.nan, shares)


def _compare(names: Sequence[str], scores: np.ndarray, ranks: "evaluation.RankComparison") -> list[PairOfModels]:
    pairs = []
    for a, b in combinations(range(len(names)), 2):
        better, worse = (a, b) if ranks.mean_ranks[a] >= ranks.mean_ranks[b] else (b, a)
        mean, low, high = evaluation.bootstrap_pairs(scores[:, better], scores[:, worse], random_state=_SEED)
        p_value = float(ranks.pair_p_values[a, b])
        pairs.append(PairOfModels(names[better], names[worse], mean, low, high, p_value))
    return pairs


_COLUMNS = (
    "test", "listener", "name", "pair", "query", "query_artist", "query_hash", "result", "result_artist",
    "result_hash", "models", "is_check", "category", "fine", "graded_at",
)  # fmt: skip


def grades_csv(library: Library, test_id: int) -> bytes:
    """Return every grade of a test, one per row, as CSV in UTF-8."""
    test, tests = test_of(library, test_id), ListeningTestStore(library)
    digest, grades = test.digest, tests.grades(test_id)
    rows = []
    for listener in tests.listeners(test_id):
        for grade in grades[listener.id]:
            pair = test.pairs[grade.pair]
            query, result = test.songs[pair.query], test.songs[pair.result]
            rows.append((
                digest, listener.number, listener.name, grade.pair, query.title, query.artist, query.content_hash,
                result.title, result.artist, result.content_hash, "; ".join(test.models[m] for m in pair.models),
                int(pair.is_check), None if grade.category is None else CATEGORIES[grade.category], grade.fine,
                datetime.fromtimestamp(grade.graded_at, UTC).isoformat(timespec="seconds"),
            ))  # fmt: skip
    return as_csv(_COLUMNS, rows)


def results_json(library: Library, test_id: int) -> bytes:
    """Return the test, every grade and the results as JSON, without links; nan becomes null."""
    test, tests = test_of(library, test_id), ListeningTestStore(library)
    listeners, grades = tests.listeners(test_id), tests.grades(test_id)
    result = asdict(results(test, listeners, grades))
    result.pop("progress")
    people: list[dict[str, Any]] = []
    for one in listeners:
        facts = {name: getattr(one, name) for name in ("number", "name", "consented_at")}
        people.append({**facts, "grades": [asdict(grade) for grade in grades[one.id]]})
    document = {"file": json.loads(test.to_json()), "listeners": people, "results": _to_json(result)}
    return json.dumps(document, allow_nan=False, indent=1).encode()


def _to_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _to_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_to_json(one) for one in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value
