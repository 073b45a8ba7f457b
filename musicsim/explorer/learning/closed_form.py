"""Learning in closed form: a geometric mean metric for all songs, or one for every region of them (SIGIR 2017).

There are no steps to watch: some settings are tried, and the one that is best on held-out artists is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from musicsim import evaluation, metric, relevance
from musicsim.explorer.learning.task import (
    MAX_VALIDATED,
    FloatArray,
    Rows,
    Task,
    TrainingProgress,
    about,
    sampled,
    to_choose_on,
    to_learn_from,
    what_changed,
)
from musicsim.explorer.learning.verdict import leads_of
from musicsim.explorer.models.local_metrics import LocalMetrics
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.requests.training import LOCAL, MEAN, LearningSettings
from musicsim.explorer.snapshot.snapshot import Snapshot

_TS, _REGS = (0.0, 0.1, 0.3, 0.5, 0.7), (0.01, 0.1, 1.0)
_REGIONS, _LOCAL_TS, _LOCAL_REGS = (2, 5, 10, 20), (0.1, 0.5), (0.1, 1.0)
_SONGS_A_REGION = 10  # LGMMLByExample would make fewer regions of less, and a trial twice what it is once
_SEED = 0
_QUERIES_AT_ONCE = 256
_MAX_TESTED = 1_000  # where each may have a metric of its own


@dataclass(frozen=True, slots=True)
class Trial:
    """Settings of a fit, and how to call them."""

    options: dict[str, Any]
    words: str


def trials(method: str, n_songs: int) -> list[Trial]:
    """What is tried: of one metric, where on the geodesic, how near to plain distance; of many, how many, too.

    Of `n_songs` that are learned from, a region has ten at least.
    """
    if method == MEAN:
        return [Trial({"t": t, "reg": reg}, f"t {t:g}, reg {reg:g}") for t, reg in product(_TS, _REGS)]
    most = max(1, n_songs // _SONGS_A_REGION)
    regions = sorted({min(m, most) for m in _REGIONS})
    return [
        Trial({"n_metrics": m, "t": t, "reg": reg}, f"{m} {'region' if m == 1 else 'regions'}, t {t:g}, reg {reg:g}")
        for m, t, reg in product(regions, _LOCAL_TS, _LOCAL_REGS)
    ]


def fitted(
    X: FloatArray, relevance: relevance.Relevance, method: str, options: dict[str, Any]
) -> metric.GMML | metric.LGMMLByExample:
    """One metric, or local ones, of songs and who is similar to whom among them.

    Raises ValueError if no song has both a similar and a dissimilar one.
    """

    learner = metric.GMML(**options) if method == MEAN else metric.LGMMLByExample(**options, random_state=_SEED)
    return learner.fit(X, relevance)


def held_out_scores(
    learner: metric.GMML | metric.LGMMLByExample,
    X: FloatArray,
    relevance: relevance.Relevance,
    queries: Rows,
    database: Rows,
) -> dict[str, FloatArray]:
    """Scores of queries, each by the metric of its own place where metrics are local.

    By measure, as :func:`musicsim.evaluation.query_scores` gives them. X (n_songs, d) and `relevance` are of all
    songs, `queries` and `database` are rows of theirs. Memory: 2 kB a song of the database.
    """
    songs = X[database]
    parts = []
    for start in range(0, len(queries), _QUERIES_AT_ONCE):
        some = queries[start : start + _QUERIES_AT_ONCE]
        if hasattr(learner, "distances"):
            distances = learner.distances(X[some], songs)
        else:
            distances = _plain_distances(learner.transform(X[some]), learner.transform(songs))
        parts.append(evaluation.distance_scores(distances, relevance.restrict(some, database), k=10))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _plain_distances(Q: FloatArray, Y: FloatArray) -> FloatArray:
    from scipy.spatial.distance import cdist

    distances: FloatArray = cdist(Q, Y)
    return distances


def learn_means(
    snapshot: Snapshot, settings: LearningSettings, blocks: Sequence[slice], watcher: TrainingProgress
) -> tuple[SimilarityModel, FloatArray, dict[str, Any]]:
    """The model, L and the report, of a metric in closed form, or of one for each region of songs."""
    task = Task.of(snapshot, settings, blocks)
    train, relevance = to_learn_from(task)
    queries, database, untrained = to_choose_on(task, MAX_VALIDATED)
    path: list[dict[str, Any]] = []
    best: tuple[float, Trial, Any] | None = None
    tried = trials(settings.method, len(train))
    for number, trial in enumerate(tried):
        watcher(f"trying {trial.words}", number, len(tried) + 1)
        learner = fitted(task.X[train], relevance, settings.method, trial.options)
        scores = held_out_scores(learner, task.X, task.relevance, queries, database)[settings.loss]
        quality = float(np.nanmean(scores))
        path.append({"setting": trial.words, "quality": quality})
        watcher.trace({"quality": quality, "untrained": untrained, "setting": trial.words})
        if best is None or quality > best[0]:
            best = quality, trial, learner
        if watcher.is_enough():
            break
    assert best is not None
    _, trial, held_out = best
    watcher("learning from all songs", len(tried), len(tried) + 1)
    rows = sampled(task, np.arange(len(task.X)))
    everyone = task.supervision.relevance(rows).restrict(rows, rows)
    learner = fitted(task.X[rows], everyone, settings.method, trial.options)
    assert snapshot.model is not None
    model = snapshot.model.with_metric(learner.components_, snapshot.X)
    assert model.metric_ is not None
    if settings.method == LOCAL:
        model = model.with_local(LocalMetrics.of(learner, model.metric_))
    watcher("evaluating on held-out artists")
    queries, database = task.queries(task.split.test, _MAX_TESTED)
    among = task.relevance.restrict(queries, database)
    before = evaluation.query_scores(task.X[queries], task.X[database], among, k=10)
    after = held_out_scores(held_out, task.X, task.relevance, queries, database)
    leads = leads_of(before, after, [task.supervision.groups[q] for q in queries])
    report = about(task) | {"setting": trial.words, "C": None, "path": path, "untrained": untrained}
    report["stopped_early"] = len(path) < len(tried)
    L: FloatArray = learner.components_
    return model, L, report | what_changed(snapshot, settings, task.X, task.X @ L.T, leads)
