"""Learning in closed form: one geometric mean metric, or one per region of songs (SIGIR 2017).

Several settings are tried on held-out artists. The first one that is not clearly worse than the best one is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from musicsim import metric
from musicsim._arrays import Float64Array, Int64Array
from musicsim.explorer.learning.judging import N_SHUFFLES, Steps, judge
from musicsim.explorer.learning.search_ranking import score_search
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.learning.task import (
    MAX_VALIDATED,
    LearningTask,
    TrainingProgress,
    choose_training_songs,
    choose_validation_queries,
    describe_task,
    sample_songs,
    what_changed,
)
from musicsim.explorer.learning.two_way import Space
from musicsim.explorer.learning.verdict import first_within_error
from musicsim.explorer.models.similarity_model import ModelMetrics, SimilarityModel
from musicsim.explorer.requests.training import LOCAL, MEAN, LearningSettings
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.wording import count

# settings of one metric and of one per region; those that change the distances least are first
_REGS, _TS = (100.0, 10.0, 1.0, 0.1), (0.5, 0.3, 0.1, 0.0)
_LOCAL_REGS_TS, _REGIONS = ((10.0, 0.5), (1.0, 0.5), (1.0, 0.1), (0.1, 0.1)), (2, 5, 10, 20)
_SONGS_PER_REGION = 10  # with fewer songs, LGMMLByExample would use fewer regions, and trials would repeat
_SEED = 0
_MAX_TESTED = 1_000  # maximum number of queries; lower than elsewhere, because each query may have its own metric


def trials(method: str, n_songs: int) -> dict[str, metric.GMML | metric.LGMMLByExample]:
    """Return unfitted learners, keyed by a description of their settings; regions average at least ten songs."""
    if method == MEAN:
        return {f"t {t:g}, reg {reg:g}": metric.GMML(t=t, reg=reg) for reg, t in product(_REGS, _TS)}
    regions = sorted({min(m, max(1, n_songs // _SONGS_PER_REGION)) for m in _REGIONS})
    return {
        f"{count(m, 'region')}, t {t:g}, reg {reg:g}": metric.LGMMLByExample(m, t=t, reg=reg, random_state=_SEED)
        for (reg, t), m in product(_LOCAL_REGS_TS, regions)
    }


def space_of(learner: metric.GMML | metric.LGMMLByExample, X: Float64Array, database: Int64Array) -> Space:
    """Return the space of songs X (n_songs, d) under a metric, which may depend on the query."""
    distances = (lambda rows: learner.distances(X[rows], X[database])) if hasattr(learner, "distances") else None
    return Space(learner.transform(X), distances)


def learn_means(
    snapshot: Snapshot, settings: LearningSettings, blocks: Sequence[slice], watcher: TrainingProgress
) -> tuple[SimilarityModel, Float64Array, dict[str, Any]]:
    """Learn one metric, or one per region of songs, and return the model, L and the report."""
    from sklearn.base import clone

    task = LearningTask.from_settings(snapshot, settings, blocks)
    train, relevance = choose_training_songs(task)
    queries, database, untrained = choose_validation_queries(task, MAX_VALIDATED)
    path: list[dict[str, Any]] = []
    tried: dict[str, Float64Array] = {}  # scores by setting; a fitted learner can take hundreds of megabytes
    grid = trials(settings.method, len(train))
    n_steps = len(grid) + N_SHUFFLES + 1
    judgments = task.relevance.restrict(queries, database)
    for number, (words, unfitted) in enumerate(grid.items()):
        watcher(f"trying {words}", number, n_steps)
        learner = clone(unfitted).fit(task.X[train], relevance)
        space = space_of(learner, task.X, database)
        scores = score_search(
            space.X, queries, database, judgments, reduce_hubs=task.reduces_hubs, distances=space.distances
        )[settings.loss]
        tried[words] = scores
        path.append({"setting": words, "quality": float(np.nanmean(scores))})
        watcher.trace(path[-1] | {"untrained": untrained})
        if watcher.is_enough():
            break
    groups = [task.supervision.groups[query] for query in queries]
    chosen = list(tried)[first_within_error(list(tried.values()), groups)]
    held_out = clone(grid[chosen]).fit(task.X[train], relevance)
    watcher("checking the result on held-out artists")
    queries, database = task.queries(task.split.test, _MAX_TESTED)

    def train_again(supervision: Supervision) -> Space:
        learner = clone(held_out).fit(task.X[train], supervision.relevance_among(train))
        return space_of(learner, task.X, database)

    steps = Steps(watcher, task.evidence, len(grid), n_steps)
    leads, compared = judge(
        task, queries, database, Space(task.X), space_of(held_out, task.X, database), train_again, steps
    )
    watcher("learning from all songs", n_steps - 1, n_steps)
    rows = sample_songs(task, np.arange(len(task.X)))
    relevance = task.supervision.relevance_among(rows)
    learner = clone(held_out).fit(task.X[rows], relevance)
    assert snapshot.model is not None
    model = snapshot.model.add_metric(learner.components_, snapshot.X)
    assert model.metric_ is not None
    if settings.method == LOCAL:
        model.local_ = ModelMetrics.from_fit(learner, model.metric_)
    report = describe_task(task) | compared | {"setting": chosen, "C": None, "path": path, "untrained": untrained}
    report["stopped_early"] = len(path) < len(grid)
    L: Float64Array = learner.components_
    return model, L, report | what_changed(snapshot, settings, task.X, task.X @ L.T, leads, compared["n_shuffled"])
