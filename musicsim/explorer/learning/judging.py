"""The verdict on a training: its gain for held-out artists, above the gain of the same training on shuffled evidence.

Much of a gain may have nothing to do with the sound. If a few popular artists are relevant to most queries, a metric
that moves them to the middle ranks them higher for queries by new artists, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from musicsim import evaluation
from musicsim._arrays import Int64Array
from musicsim.explorer.learning.search_ranking import join_scores
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.learning.task import LearningTask, TrainingProgress, mean_score
from musicsim.explorer.learning.two_way import RESAMPLED, ResampledScores, Space, TwoWay
from musicsim.explorer.learning.verdict import Lead, leads_above

N_SHUFFLES = 5

Train = Callable[[Supervision], Space]
"""Trains with the chosen settings on supervision; raises ValueError if it contains nothing to learn from."""


class Steps:
    """Progress of the trainings on shuffled evidence, after `n_before` of `n_total` steps of the whole training."""

    def __init__(self, watcher: TrainingProgress, evidence: str, n_before: int, n_total: int) -> None:
        self._watcher, self._message = watcher, f"training on shuffled {evidence}"
        self._n_before, self._n_total, self._n_begun = n_before, n_total, 0
        self._started = time.perf_counter()

    @property
    def is_stopped(self) -> bool:
        """Whether the user stopped the training."""
        return self._watcher.is_enough()

    def begin(self) -> bool:
        """Report the next step, and return False if the user stopped the training."""
        spent_s, done = time.perf_counter() - self._started, self._n_before + self._n_begun
        left_s = spent_s / self._n_begun * (self._n_total - done) if self._n_begun else None
        self._watcher(self._message, done, self._n_total, seconds_left=left_s)
        self._n_begun += 1
        return not self.is_stopped


def judge(
    task: LearningTask,
    queries: Int64Array,
    database: Int64Array,
    plain: Space,
    learned: Space,
    train: Train | None,
    steps: Steps,
) -> tuple[dict[str, Lead], dict[str, Any]]:
    """Compare a trained metric with the plain vectors on held-out queries, and with metrics from shuffled evidence.

    Returns the leads and the part of the report about the comparison: the number of shuffled copies, and the scores of
    a ranking by popularity alone. There are fewer copies if the user stops, and none without `train`.
    """
    split = task.split
    two_way = TwoWay(queries, database, task.supervision.groups, reduce_hubs=task.reduces_hubs)

    def score(space: Space, supervision: Supervision) -> ResampledScores:
        return two_way.score(space, supervision.relevance(database), supervision.groups)

    before, after = score(plain, task.supervision), score(learned, task.supervision)
    shuffled: list[tuple[ResampledScores, ResampledScores]] = []
    for number in range(N_SHUFFLES):
        if train is None or not steps.begin():
            break
        parts = (split.train, split.validation, split.test)
        supervision = task.supervision.shuffle(parts, np.random.default_rng([task.settings.random_state, number]))
        try:
            space = train(supervision)
        except ValueError:  # nothing was learned, so nothing was gained
            space = plain
        if steps.is_stopped:  # the fit may be incomplete
            break
        shuffled.append((score(plain, supervision), score(space, supervision)))
    facts = {"n_shuffled": len(shuffled), "popularity": _score_popularity(task.supervision, queries, database)}
    return leads_above(before, after, shuffled), facts


def _score_popularity(supervision: Supervision, queries: Int64Array, database: Int64Array) -> dict[str, float]:
    """Return the mean scores if each query gets the most popular songs first; empty if nothing tells the popularity."""
    if supervision.popularity is None:
        return {}
    relevance = supervision.relevance(database).restrict(queries, database)
    order = -supervision.popularity[database]
    each = join_scores(evaluation.distance_scores(order[None], relevance.restrict([q])) for q in range(len(queries)))
    means = {name: mean_score(each[name]) for name in RESAMPLED}
    return {name: mean for name, mean in means.items() if np.isfinite(mean)}
