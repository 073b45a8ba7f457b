"""What came of a listening test: progress, agreement, which model is better; as tables for other programs, too.

Only listeners count who graded every pair and passed the attention checks, so that stopping early, or a link that was
opened for fun, moves nothing. Models are compared by query, as the results of one are not independent.
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
from musicsim.extensions.listening_tests.frozen import ListeningTest
from musicsim.extensions.listening_tests.store import CATEGORIES, Grade, InvitedListener, ListeningTestStore
from musicsim.extensions.listening_tests.taking_part import test_of
from musicsim.library import Library
from musicsim.library.disk.csv_cells import as_csv

_VERY = len(CATEGORIES) - 1
_LEVEL = 0.05
_SEED = 0  # of intervals: the same grades, the same figures


@dataclass(frozen=True, slots=True)
class Participation:
    """How far a listener has come."""

    listener: InvitedListener
    n_graded: int
    n_pairs: int
    n_failed_checks: int
    counts: bool  # whether the listener has finished and passed the checks


@dataclass(frozen=True, slots=True)
class ModelGrades:
    """What a model's results were graded."""

    name: str
    mean_fine: float  # of the fine scores, by query; nan where there are none
    shares: tuple[float, ...]  # of the categories, from "not similar" on


@dataclass(frozen=True, slots=True)
class PairOfModels:
    """Two models, the better one first by mean rank."""

    better: str
    worse: str
    difference: float  # of mean fine scores
    # 95 % interval over queries; nan where there are fewer than two
    low: float
    high: float
    p_value: float  # by Tukey's honestly significant difference on ranks

    @property
    def is_sure(self) -> bool:
        """Whether they differ at 5 % by ranks, and the interval of fine scores says the same."""
        return self.p_value < _LEVEL and self.low > 0

    @property
    def words(self) -> str:
        """In a sentence."""
        if self.is_sure:
            found = f"“{self.better}” is better than “{self.worse}”"
        else:
            found = f"No sure difference between “{self.better}” and “{self.worse}”"
        p = "p < .001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}".replace("0.", ".", 1)
        return (
            f"{found}: fine scores differ by {self.difference:+.1f} on average "
            f"(95% interval {self.low:+.1f} to {self.high:+.1f}; {p})."
        )


@dataclass(frozen=True, slots=True)
class Results:
    """Of one test."""

    progress: tuple[Participation, ...]
    models: tuple[ModelGrades, ...]
    n_queries: int  # that every model has scores for
    ranks: "evaluation.RankComparison | None"  # None with fewer than two such queries
    pairs: tuple[PairOfModels, ...]  # of models; empty where there is nothing to compare
    by_category: "evaluation.Agreement"  # of listeners, ordinal
    by_fine: "evaluation.Agreement"  # of listeners, interval


Grades = Mapping[int, Sequence[Grade]]
"""By the id of the listener."""


def results_of(library: Library, test_id: int) -> Results:
    """What has come of a test so far. Raises NotFoundError if there is none of the number."""
    tests = ListeningTestStore(library)
    return results(test_of(library, test_id), tests.listeners(test_id), tests.grades(test_id))


def results(test: ListeningTest, listeners: Sequence[InvitedListener], grades: Grades) -> Results:
    """What has come of a test: listeners and their grades as the library has them."""
    progress = tuple(_progress(test, one, grades.get(one.id, ())) for one in listeners)
    counted = [one.listener for one in progress if one.counts]
    graded = [place for place, pair in enumerate(test.pairs) if not pair.is_check]
    category, fine = (_matrix(counted, grades, len(test.pairs), of)[:, graded] for of in ("category", "fine"))
    queries = sorted({test.pairs[place].query for place in graded})
    query = np.array([queries.index(test.pairs[place].query) for place in graded])
    gave = np.array([[m in test.pairs[place].models for m in range(len(test.models))] for place in graded])
    scores = evaluation.scores_by_query(fine, query, gave)
    scores = scores[np.isfinite(scores).all(axis=1)]
    ranks = evaluation.compare_ranks(scores) if len(scores) > 1 else None
    return Results(
        progress,
        tuple(_grades_of(name, scores[:, m], category[:, gave[:, m]]) for m, name in enumerate(test.models)),
        len(scores),
        ranks,
        tuple(_pairs(test.models, scores, ranks)) if ranks else (),
        evaluation.krippendorff_alpha(category, "ordinal", random_state=_SEED),
        evaluation.krippendorff_alpha(fine, "interval", random_state=_SEED),
    )


def _progress(test: ListeningTest, listener: InvitedListener, grades: Sequence[Grade]) -> Participation:
    said = {grade.pair: grade for grade in grades}
    failed = sum(
        grade.category is not None and grade.category < _VERY
        for pair, grade in said.items()
        if test.pairs[pair].is_check
    )
    n = len(test.pairs)
    return Participation(listener, len(said), n, failed, len(said) == n and failed <= test.max_failed_checks)


def _matrix(
    listeners: Sequence[InvitedListener], grades: Grades, n_pairs: int, of: str
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Categories or fine scores, (n_listeners, n_pairs); nan where a pair could not be heard."""
    found = np.full((len(listeners), n_pairs), np.nan)
    for row, listener in zip(found, listeners, strict=True):
        for grade in grades[listener.id]:
            value = getattr(grade, of)
            row[grade.pair] = np.nan if value is None else value
    return found


def _grades_of(name: str, scores: np.ndarray, categories: np.ndarray) -> ModelGrades:
    n = np.isfinite(categories).sum()
    shares = tuple(float((categories == place).sum() / n) if n else math.nan for place in range(len(CATEGORIES)))
    return ModelGrades(name, float(scores.mean()) if len(scores) else math.nan, shares)


def _pairs(names: Sequence[str], scores: np.ndarray, ranks: "evaluation.RankComparison") -> list[PairOfModels]:
    found = []
    for a, b in combinations(range(len(names)), 2):
        better, worse = (a, b) if ranks.mean_ranks[a] >= ranks.mean_ranks[b] else (b, a)
        mean, low, high = evaluation.paired_bootstrap(scores[:, better], scores[:, worse], random_state=_SEED)
        p_value = float(ranks.pair_p_values[a, b])
        found.append(PairOfModels(names[better], names[worse], mean, low, high, p_value))
    return found


# --- for other programs ---------------------------------------------------------------------------

_COLUMNS = (
    "test", "listener", "name", "pair", "query", "query_artist", "query_hash", "result", "result_artist",
    "result_hash", "models", "is_check", "category", "fine", "graded_at",
)  # fmt: skip


def grades_csv(library: Library, test_id: int) -> bytes:
    """Every grade of a test, a row each, as CSV in UTF-8."""
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
    """The test, every grade and what came of it, as JSON; no links, and null where there is no number."""
    test, tests = test_of(library, test_id), ListeningTestStore(library)
    listeners, grades = tests.listeners(test_id), tests.grades(test_id)
    found = asdict(results(test, listeners, grades))
    found.pop("progress")
    people = [
        {
            "number": one.number, "name": one.name, "consented_at": one.consented_at,
            "grades": [asdict(grade) for grade in grades[one.id]],
        }
        for one in listeners
    ]  # fmt: skip
    said = {"file": json.loads(test.to_json()), "listeners": people, "results": _plain(found)}
    return json.dumps(said, allow_nan=False, indent=1).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(one) for one in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value
