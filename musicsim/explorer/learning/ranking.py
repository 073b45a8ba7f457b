"""Learning a metric on the vectors of a model by ranking (thesis 5.4.2), and from answers to comparisons.

Metrics with increasing C are learned from 40% of the artists. C is chosen on 30% and evaluated on the other 30%. The
final metric is then learned from all artists.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from musicsim import metric
from musicsim._arrays import Float64Array, Int64Array
from musicsim.errors import ModelError
from musicsim.explorer.learning.from_answers import Answered, learn_from_answers, shares_in_order
from musicsim.explorer.learning.judging import N_SHUFFLES, Steps, judge
from musicsim.explorer.learning.multi_kernel import SourceLearner
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.learning.task import (
    CS,
    MAX_TESTED,
    MAX_VALIDATED,
    LearningTask,
    TrainingProgress,
    choose_training_songs,
    choose_validation_queries,
    describe_task,
    mean_score,
    sample_songs,
    what_changed,
)
from musicsim.explorer.learning.two_way import Space
from musicsim.explorer.learning.verdict import first_within_error, render_lead
from musicsim.explorer.requests.training import ORDER_LOSS, LearningSettings
from musicsim.explorer.snapshot.snapshot import Snapshot

_TOLERANCE, _MAX_CUTS = 1e-2, 150
_SEED = 0
_PATIENCE = 2  # stop after this many consecutive values of C without improvement


class _Watch:
    """Plots the steps of the fits, and stops a path that no longer improves."""

    def __init__(self, task: LearningTask, watcher: TrainingProgress, n_fits: int) -> None:
        self._task, self._watcher, self._n_fits = task, watcher, n_fits
        self._queries = task.queries(task.split.validation, MAX_VALIDATED)
        self.plain = task.score(None, *self._queries)
        self._fit, self._C = -1, float("nan")
        self._quality, self._best, self._n_without_gain = self.plain, -np.inf, 0
        self._scored_at, self._cost_s = -np.inf, 0.0
        self._latest: Callable[[], Float64Array] | None = None
        self._has_learned = False

    def __call__(self, step: dict[str, Any]) -> bool:
        if step["C"] != self._C:
            self._next_fit(step["C"])
        self._latest = step["components"]
        # spend at most a tenth of the time on scoring
        if time.perf_counter() - self._scored_at > 9 * self._cost_s:
            self._score()
        names = ("C", "cut", "objective", "dual_bound", "gap", "seconds")
        self._watcher.trace({**{n: step[n] for n in names}, "quality": self._quality, "untrained": self.plain})
        self._watcher(f"trying C = {self._C:g}", self._fit, self._n_fits)
        # the first metrics are 0 and not worth keeping
        if self._watcher.is_enough() and not self._has_learned:
            self._score()
        return (self._watcher.is_enough() and self._has_learned) or self._n_without_gain >= _PATIENCE

    def _next_fit(self, C: float) -> None:
        """Score the last fit, and note whether its C improved the quality."""
        self._C, self._fit = C, self._fit + 1
        if self._latest is not None:
            self._score()
            self._n_without_gain = 0 if self._quality > self._best + 1e-4 else self._n_without_gain + 1
            self._best = max(self._best, self._quality)

    def _score(self) -> None:
        assert self._latest is not None
        started = time.perf_counter()
        L = self._latest()
        self._has_learned = self._has_learned or bool(L.any())
        self._quality = self._task.score(L, *self._queries)
        self._scored_at = time.perf_counter()
        self._cost_s = self._scored_at - started


def learn_from_relevance(
    snapshot: Snapshot, settings: LearningSettings, blocks: Sequence[slice], watcher: TrainingProgress
) -> tuple[Float64Array, dict[str, Any]]:
    """Learn L by ranking, and return L and the report."""
    task = LearningTask.from_settings(snapshot, settings, blocks)
    Cs = CS if settings.C is None else (settings.C,)
    n_steps = len(Cs) + N_SHUFFLES + 1
    chosen, train, path, is_finished = _fit_path(task, Cs, watcher, n_steps)
    watcher("checking the result on held-out artists")
    queries, database = task.queries(task.split.test, MAX_TESTED)

    def train_again(supervision: Supervision) -> Space:
        learner = _create_learner(task, C=chosen["C"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            learner.fit(task.X[train], supervision.relevance_among(train), lambda _: watcher.is_enough())
        if not learner.components_.any():
            raise ValueError("nothing was learned: the metric is 0.")
        return Space(task.X @ learner.components_.T)

    steps = Steps(watcher, task.evidence, len(Cs), n_steps)
    held_out = Space(task.X @ chosen["components"].T)  # without the test artists
    leads, compared = judge(task, queries, database, Space(task.X), held_out, train_again, steps)
    L = _fit_all(task, chosen, watcher, n_steps) if is_finished else chosen["components"]
    return L, {
        **describe_task(task),
        **compared,
        "C": chosen["C"],
        "untrained": task.score(None, *task.queries(task.split.validation, MAX_TESTED)),
        "path": [
            {name: value for name, value in entry.items() if name not in ("components", "scores")} for entry in path
        ],
        **what_changed(snapshot, settings, task.X, task.X @ L.T, leads, compared["n_shuffled"]),
        "stopped_early": not is_finished or watcher.is_enough(),
    }


def _create_learner(task: LearningTask, **options: Any) -> Any:
    settings = task.settings
    k = settings.k if settings.loss in ("ndcg", "precision") else 10
    options |= {"loss": settings.loss, "k": k, "tol": _TOLERANCE, "max_cuts": _MAX_CUTS, "random_state": _SEED}
    if task.has_kernels:
        return SourceLearner(task.blocks, metric.MultipleKernelMLR(**options))
    return metric.MLR(structure=settings.structure, regularizer=settings.regularizer, **options)


def _fit_path(
    task: LearningTask, Cs: Sequence[float], watcher: TrainingProgress, n_steps: int
) -> tuple[dict[str, Any], Int64Array, list[dict[str, Any]], bool]:
    """Return the chosen entry of the path over C, its songs, the whole path, and False if the user stopped it early."""
    train, relevance = choose_training_songs(task)
    if len(Cs) > 1:
        queries, database, _ = choose_validation_queries(task, MAX_TESTED)
    else:
        queries, database = task.queries(task.split.validation, MAX_TESTED)
    watch = _Watch(task, watcher, n_steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report contains the remaining duality gaps
        fitted = _create_learner(task).fit_path(task.X[train], relevance, Cs, watch)
    judgments = task.relevance.restrict(queries, database)
    path = [
        {
            "C": float(mlr.C),
            "scores": (scores := task.score_queries(mlr.components_, queries, database, judgments)[task.settings.loss]),
            "quality": mean_score(scores),
            "gap": mlr.history_[-1]["gap"],
            "n_cuts": mlr.n_cuts_,
            "rank": len(mlr.components_),
            "components": mlr.components_,
        }
        for mlr in fitted
        if mlr.components_.any()
    ]
    if not path:
        raise ModelError("nothing was learned: the metric is 0 for every C tried. Choose a different ground truth.")
    chosen = choose_entry(path, [task.supervision.groups[row] for row in queries], task.settings.regularizer)
    return chosen, train, path, not watcher.is_enough()


def choose_entry(path: Sequence[dict[str, Any]], groups: Sequence[str], regularizer: str) -> dict[str, Any]:
    """Return the best entry of a path with ascending C.

    Near the plain metric, it is the first entry that is not worse by more than a standard error over the groups of the
    queries.
    """
    if regularizer == "plain":
        return path[first_within_error([entry["scores"] for entry in path], groups)]
    return max(path, key=lambda entry: -np.inf if np.isnan(entry["quality"]) else entry["quality"])


def _fit_all(task: LearningTask, chosen: dict[str, Any], watcher: TrainingProgress, n_fits: int) -> Float64Array:
    """Learn L from all artists with the chosen C; return the chosen metric if the user stops it early."""
    rows = sample_songs(task, np.arange(len(task.X)))

    def on_step(step: dict[str, Any]) -> bool:
        watcher.trace({n: step[n] for n in ("cut", "objective", "dual_bound", "gap", "seconds")} | {"C": None})
        watcher("learning from all songs", n_fits - 1, n_fits)
        return watcher.is_enough()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlr = _create_learner(task, C=chosen["C"])
        mlr.fit(task.X[rows], task.supervision.relevance_among(rows), callback=on_step)
    is_complete = mlr.components_.any() and not watcher.is_enough()  # an incomplete fit may be worse
    return mlr.components_ if is_complete else chosen["components"]


def learn_from_survey(
    snapshot: Snapshot, settings: LearningSettings, blocks: Sequence[slice], watcher: TrainingProgress
) -> tuple[Float64Array, dict[str, Any]]:
    """Learn L from answers to comparisons, and return L and the report."""
    X = np.asarray(snapshot.X, dtype=np.float64)
    answered = Answered.collect(snapshot, settings.listener)

    def on_progress(message: str, point: dict[str, Any]) -> bool:
        watcher.trace(point)
        watcher(message, point["fit"], point["n_fits"])
        return watcher.is_enough()

    judged = learn_from_answers(
        X,
        answered,
        Cs=CS if settings.C is None else (settings.C,),
        loss=settings.loss,
        structure=settings.structure,
        blocks=blocks,
        random_state=settings.random_state,
        n_shuffles=N_SHUFFLES,
        on_progress=on_progress,
    )
    leads = {} if judged.lead is None else {ORDER_LOSS: judged.lead}
    compared = answered.all()
    n_questions, n_songs = len(set(answered.questions)), len(np.unique(compared))
    agreed = {} if judged.agreed is None else {"agreed": render_lead(judged.agreed)}
    return judged.L, {
        "answers": {
            "n": len(answered),
            "questions": n_questions,
            "comparisons": len(compared),
            "songs": n_songs,
            **agreed,
        },
        "detail": f"{len(answered):,} answers",
        "C": judged.C,
        "untrained": judged.untrained,
        "path": judged.path,
        "alone": [float(shares_in_order(X[:, block], answered).mean()) for block in blocks],
        "stopped_early": watcher.is_enough(),
        **what_changed(snapshot, settings, X, X @ judged.L.T, leads, judged.n_shuffled),
    }
