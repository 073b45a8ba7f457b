"""Learning in closed form: one geometric mean metric, or one per region of songs (SIGIR 2017).

Several settings are tried, and the one that works best on held-out artists is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from musicsim import metric, relevance
from musicsim._arrays import Float64Array, Int64Array
from musicsim.explorer.learning.search_ranking import score_search
from musicsim.explorer.learning.task import (
    MAX_VALIDATED,
    Task,
    TrainingProgress,
    choose_training_songs,
    choose_validation_queries,
    describe_task,
    sample_songs,
    what_changed,
)
from musicsim.explorer.learning.verdict import leads_of
from musicsim.explorer.models.similarity_model import LocalMetrics, SimilarityModel
from musicsim.explorer.requests.training import LOCAL, MEAN, LearningSettings
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.wording import count

_TS, _REGS = (0.0, 0.1, 0.3, 0.5, 0.7), (0.01, 0.1, 1.0)
_REGIONS, _LOCAL_TS, _LOCAL_REGS = (2, 5, 10, 20), (0.1, 0.5), (0.1, 1.0)
_SONGS_PER_REGION = 10  # with fewer songs, LGMMLByExample would use fewer regions, and trials would repeat
_SEED = 0
_MAX_TESTED = 1_000  # maximum number of queries; lower than elsewhere, because each query may have its own metric


def trials(method: str, n_songs: int) -> dict[str, metric.GMML | metric.LGMMLByExample]:
    """Return unfitted learners, keyed by a description of their settings; regions average at least ten songs."""
    if method == MEAN:
        return {f"t {t:g}, reg {reg:g}": metric.GMML(t=t, reg=reg) for t, reg in product(_TS, _REGS)}
    regions = sorted({min(m, max(1, n_songs // _SONGS_PER_REGION)) for m in _REGIONS})
    return {
        f"{count(m, 'region')}, t {t:g}, reg {reg:g}": metric.LGMMLByExample(m, t=t, reg=reg, random_state=_SEED)
        for m, t, reg in product(regions, _LOCAL_TS, _LOCAL_REGS)
    }


def score_queries(
    learner: metric.GMML | metric.LGMMLByExample,
    X: Float64Array,
    relevance: relevance.Relevance,
    queries: Int64Array,
    database: Int64Array,
    *,
    reduce_hubs: bool,
) -> dict[str, Float64Array]:
    """Score queries as search would rank the database under a metric, which may depend on the query.

    X (n_songs, d) and `relevance` cover all songs; `queries` and `database` are row numbers.
    """
    distances = (lambda rows: learner.distances(X[rows], X[database])) if hasattr(learner, "distances") else None
    return score_search(
        learner.transform(X), queries, database, relevance.restrict(queries, database),
        reduce_hubs=reduce_hubs, distances=distances,
    )  # fmt: skip


def learn_means(
    snapshot: Snapshot, settings: LearningSettings, blocks: Sequence[slice], watcher: TrainingProgress
) -> tuple[SimilarityModel, Float64Array, dict[str, Any]]:
    """Learn one metric, or one per region of songs, and return the model, L and the report."""
    from sklearn.base import clone

    task = Task.from_settings(snapshot, settings, blocks)
    train, relevance = choose_training_songs(task)
    queries, database, untrained = choose_validation_queries(task, MAX_VALIDATED)
    path: list[dict[str, Any]] = []
    best: tuple[float, str, Any] | None = None
    grid = trials(settings.method, len(train))
    for number, (words, unfitted) in enumerate(grid.items()):
        watcher(f"trying {words}", number, len(grid) + 1)
        learner = clone(unfitted).fit(task.X[train], relevance)
        scores = score_queries(learner, task.X, task.relevance, queries, database, reduce_hubs=task.reduces_hubs)[
            settings.loss
        ]
        quality = float(np.nanmean(scores))
        path.append({"setting": words, "quality": quality})
        watcher.trace(path[-1] | {"untrained": untrained})
        if best is None or quality > best[0]:
            best = quality, words, learner
        if watcher.is_enough():
            break
    assert best is not None
    _, chosen, held_out = best
    watcher("learning from all songs", len(grid), len(grid) + 1)
    rows = sample_songs(task, np.arange(len(task.X)))
    relevance = task.supervision.relevance_among(rows)
    learner = clone(held_out).fit(task.X[rows], relevance)
    assert snapshot.model is not None
    model = snapshot.model.add_metric(learner.components_, snapshot.X)
    assert model.metric_ is not None
    if settings.method == LOCAL:
        model.local_ = LocalMetrics.from_fit(learner, model.metric_)
    watcher("checking the result on held-out artists")
    queries, database = task.queries(task.split.test, _MAX_TESTED)
    relevance = task.relevance.restrict(queries, database)
    before = task.score_queries(None, queries, database, relevance)
    after = score_queries(held_out, task.X, task.relevance, queries, database, reduce_hubs=task.reduces_hubs)
    leads = leads_of(before, after, [task.supervision.groups[q] for q in queries])
    report = describe_task(task) | {"setting": chosen, "C": None, "path": path, "untrained": untrained}
    report["stopped_early"] = len(path) < len(grid)
    L: Float64Array = learner.components_
    return model, L, report | what_changed(snapshot, settings, task.X, task.X @ L.T, leads)
