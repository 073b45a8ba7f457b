"""Learning what a library's listeners mean by similar: a metric on the vectors of a model (thesis 5.4.2).

Artists are parted into 40 % of training, 30 % of validation and 30 % of test. Metrics of rising C are learned
on the first, the C is chosen on the second, the third says whether the metric is better than none. The model that
is kept is then learned with this C on all of them.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from musicsim import metric
from musicsim.errors import ModelError
from musicsim.explorer.learning.multi_kernel import SourceMLR
from musicsim.explorer.learning.task import (
    CS,
    MAX_TESTED,
    MAX_VALIDATED,
    FloatArray,
    Task,
    TrainingProgress,
    about,
    sampled,
    to_choose_on,
    to_learn_from,
    what_changed,
)
from musicsim.explorer.learning.verdict import compare
from musicsim.explorer.requests.training import LearningSettings
from musicsim.explorer.snapshot.snapshot import Snapshot

_TOLERANCE, _MAX_CUTS = 1e-2, 150
_SEED = 0
_PATIENCE = 2  # values of C in a row that do not help


class _Watch:
    """Turns the steps of the fits into live lines, and ends a path that no longer helps."""

    def __init__(self, task: Task, watcher: TrainingProgress, n_fits: int) -> None:
        self._task, self._watcher, self._n_fits = task, watcher, n_fits
        self._queries = task.queries(task.split.validation, MAX_VALIDATED)
        self.plain = task.score(None, *self._queries)
        self._fit, self._C = -1, float("nan")
        self._quality, self._best, self._unhelped = self.plain, -np.inf, 0
        self._scored, self._cost = -np.inf, 0.0
        self._latest: Callable[[], FloatArray] | None = None
        self._has_learned = False

    def __call__(self, step: dict[str, Any]) -> bool:
        if step["C"] != self._C:
            self._next_fit(step["C"])
        self._latest = step["components"]
        # a tenth of the time may go into watching
        if time.perf_counter() - self._scored > 9 * self._cost:
            self._score()
        names = ("C", "cut", "objective", "dual_bound", "gap", "seconds")
        self._watcher.trace({**{n: step[n] for n in names}, "quality": self._quality, "untrained": self.plain})
        self._watcher(f"trying C = {self._C:g}", self._fit, self._n_fits)
        return self._is_enough() or self._unhelped >= _PATIENCE

    def _is_enough(self) -> bool:
        """Whether to stop here: asked for, and there is something to keep, as the first metrics are 0."""
        if self._watcher.is_enough() and not self._has_learned:
            self._score()
        return self._watcher.is_enough() and self._has_learned

    def _next_fit(self, C: float) -> None:
        """Judge the fit that has just ended: did its C help?"""
        self._C, self._fit = C, self._fit + 1
        if self._latest is not None:
            self._score()
            self._unhelped = 0 if self._quality > self._best + 1e-4 else self._unhelped + 1
            self._best = max(self._best, self._quality)

    def _score(self) -> None:
        assert self._latest is not None
        started = time.perf_counter()
        L = self._latest()
        self._has_learned = self._has_learned or bool(L.any())
        self._quality = self._task.score(L, *self._queries)
        self._scored = time.perf_counter()
        self._cost = self._scored - started


def learn_from_relevance(
    snapshot: Snapshot, settings: LearningSettings, blocks: Sequence[slice], watcher: TrainingProgress
) -> tuple[FloatArray, dict[str, Any]]:
    """Learn L by ranking from who is similar to whom; return it and the report."""
    task = Task.of(snapshot, settings, blocks)
    chosen, path, finished = _chosen(task, watcher)
    L = _final(task, chosen, watcher) if finished else chosen["components"]
    report = _report(task, snapshot, L, chosen, path, watcher)
    return L, report | {"stopped_early": not finished or watcher.is_enough()}


def _template(task: Task, **options: Any) -> Any:
    settings = task.settings
    options |= {
        "loss": settings.loss, "k": settings.k if settings.loss in ("ndcg", "precision") else 10,
        "tol": _TOLERANCE, "max_cuts": _MAX_CUTS, "random_state": _SEED,
    }  # fmt: skip
    if task.has_kernels:
        return SourceMLR(task.blocks, **options)
    return metric.MLR(structure=settings.structure, regularizer=settings.regularizer, **options)


def _chosen(task: Task, watcher: TrainingProgress) -> tuple[dict[str, Any], list[dict[str, Any]], bool]:
    """The best entry of the path of C, the whole path, and whether it ran to its end."""
    train, relevance = to_learn_from(task)
    if task.settings.C is None:
        Cs: tuple[float, ...] = CS
        queries, database, _ = to_choose_on(task, MAX_TESTED)
    else:
        Cs = (task.settings.C,)
        queries, database = task.queries(task.split.validation, MAX_TESTED)
    watch = _Watch(task, watcher, len(Cs) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of open gaps, which the report tells
        fitted = _template(task).fit_path(task.X[train], relevance, Cs, watch)
    path = [
        {
            "C": float(mlr.C),
            "quality": task.score(mlr.components_, queries, database),
            "gap": mlr.history_[-1]["gap"],
            "n_cuts": mlr.n_cuts_,
            "rank": len(mlr.components_),
            "components": mlr.components_,
        }
        for mlr in fitted
        if mlr.components_.any()
    ]
    if not path:
        raise ModelError("nothing was learned: the metric is 0 for every C tried. Choose another ground truth.")
    best = max(path, key=lambda entry: -np.inf if np.isnan(entry["quality"]) else entry["quality"])
    return best, path, not watcher.is_enough()


def _final(task: Task, chosen: dict[str, Any], watcher: TrainingProgress) -> FloatArray:
    """L of the metric learned with the chosen C on songs of all artists; the best so far when that is enough."""
    rows = sampled(task, np.arange(len(task.X)))

    def on_step(step: dict[str, Any]) -> bool:
        watcher.trace({n: step[n] for n in ("cut", "objective", "dual_bound", "gap", "seconds")} | {"C": None})
        watcher(f"learning from all songs, C = {chosen['C']:g}: gap {step['gap']:.1%}", 1, 1)
        return watcher.is_enough()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlr = _template(task, C=chosen["C"])
        mlr.fit(task.X[rows], task.supervision.relevance(rows).restrict(rows, rows), callback=on_step)
    # one that was cut short may be worse than the one it was to follow
    is_whole = mlr.components_.any() and not watcher.is_enough()
    return mlr.components_ if is_whole else chosen["components"]


def _report(
    task: Task,
    snapshot: Snapshot,
    L: FloatArray,
    chosen: dict[str, Any],
    path: list[dict[str, Any]],
    watcher: TrainingProgress,
) -> dict[str, Any]:
    """All that the model's card says, as JSON values."""
    watcher("evaluating on held-out artists")
    queries, database = task.queries(task.split.test, MAX_TESTED)
    held_out = task.X @ chosen["components"].T  # what is kept was learned from the test artists too
    leads = compare(task.X, held_out, task.relevance, queries, database, task.supervision.groups)
    return {
        **about(task),
        "C": chosen["C"],
        "untrained": task.score(None, *task.queries(task.split.validation, MAX_TESTED)),
        "path": [{n: v for n, v in entry.items() if n != "components"} for entry in path],
        **what_changed(snapshot, task.settings, task.X, task.X @ L.T, leads),
    }
