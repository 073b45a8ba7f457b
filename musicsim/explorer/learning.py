"""Learning what a library's listeners mean by similar: a metric on the vectors of a model (thesis 5.4.2).

Artists are parted into 40 % of training, 30 % of validation and 30 % of test. Metrics of rising C are learned
on the first, the C is chosen on the second, the third says whether the metric is better than none. The model that
is kept is then learned with this C on all of them.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from musicsim import __version__
from musicsim.errors import ModelError
from musicsim.evaluation import ArtistSplit, query_scores
from musicsim.explorer.artifacts import save_report
from musicsim.explorer.combination import COMBINED_KIND, combine, hide
from musicsim.explorer.fitting import new_record
from musicsim.explorer.learning_answers import Answered, learn_from_answers, shares_in_order
from musicsim.explorer.learning_means import LOCAL, MEAN, Trial, fitted, held_out_scores, trials
from musicsim.explorer.learning_sources import SourceMLR, source_shares
from musicsim.explorer.local_metrics import LocalMetrics
from musicsim.explorer.placing import SEED, follow_owner, save_clusters_and_map
from musicsim.explorer.similarity_model import SimilarityModel
from musicsim.explorer.snapshot import Snapshot, take_snapshot
from musicsim.explorer.sources import Sources
from musicsim.explorer.supervision import ANSWERS, Supervision
from musicsim.explorer.verdict import (
    ORDER,
    Lead,
    changed_queries,
    compare,
    is_better,
    leads_of,
    space_hubness,
)
from musicsim.explorer.walk_fit import fit_walk
from musicsim.library import Library
from musicsim.library.model_store import ModelRecord
from musicsim.relevance import Relevance

__all__ = [
    "CS",
    "LEARNED_KIND",
    "LOSSES",
    "METHODS",
    "ORDER",
    "RANKING",
    "LearningSettings",
    "Watcher",
    "learn",
    "learn_unlocked",
]

LEARNED_KIND = "learned"
LOSSES = {
    "auc": "AUC: the whole ranking",
    "map": "MAP: the order, from the top",
    "ndcg": "NDCG: the first few, the top counts most",
    "mrr": "MRR: the first right song",
    "precision": "P@k: how many of the first few are right",
    ORDER: "the order of pairs, as answers give it",
}
"""What a ranking is judged by while learning, in words; the last is of answers only."""
RANKING = "ranking"
METHODS = {
    RANKING: "a ranking, step by step (MLR)",
    MEAN: "in closed form, in seconds (GMML)",
    LOCAL: "the same by region of songs (L-GMML)",
}
"""How a metric is learned, in words."""
CS = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)
_TOLERANCE, _MOST_CUTS = 1e-2, 150
_MOST_SONGS = 4_000  # of a fit: a cut takes half a second then
_MOST_OF_KERNELS = (
    1_500  # of a fit with a kernel for each of several models: its decomposition takes a second then
)
_MOST_VALIDATED = 300  # queries of the live line
_MOST_TESTED = 2_000
_MOST_MEANS_TESTED = 1_000  # where each may have a metric of its own
_FEWEST_ARTISTS = 5
_PATIENCE = 2  # values of C in a row that do not help

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LearningSettings:
    """How a metric is learned.

    Attributes
    ----------
    method : str
        One of :data:`METHODS`. What is said below of losses, C and structure is of rankings; a metric in closed form is
        judged by the measure of the loss, and has the others not.
    supervision : str
        One of :data:`musicsim.explorer.supervision.KINDS`.
    on : sequence of str
        Names of the models whose vectors are taken; none for the native one. Of several a full metric has a block each:
        they are the kernels of :class:`musicsim.metric.MultipleKernelMLR` and
        :class:`musicsim.order.PartialOrderEmbedding` (:mod:`musicsim.explorer.learning_sources`).
    loss, structure, regularizer
        As of :class:`musicsim.metric.MLR`; or "order", for answers: that of
        :class:`musicsim.order.LinearPartialOrderEmbedding`.
    C : float or None
        None chooses among :data:`CS` on held-out artists.
    k, threshold
        As of :class:`musicsim.explorer.supervision.Supervision`.
    random_state : int
        Of the split.
    listener : str
        Whose answers are learned from; empty for everybody's.
    """

    supervision: str = "plays"
    on: Sequence[str] = ()
    loss: str = "auc"
    C: float | None = None
    k: int = 10
    threshold: int = 10
    structure: str = "full"
    regularizer: str = "trace"
    random_state: int = 0
    listener: str = ""
    method: str = RANKING

    def __post_init__(self) -> None:
        # one name is what older versions kept
        names = filter(None, (self.on,) if isinstance(self.on, str) else self.on)
        object.__setattr__(self, "on", tuple(dict.fromkeys(names)))
        if self.loss not in LOSSES:
            raise ValueError(f"loss={self.loss!r} should be one of {', '.join(LOSSES)}.")
        if self.loss == ORDER and self.supervision != ANSWERS:
            raise ValueError(
                f"loss={self.loss!r} is for answers; {self.supervision} say who is similar, not in which order."
            )
        if self.method not in METHODS:
            raise ValueError(f"method={self.method!r} should be one of {', '.join(METHODS)}.")
        if self.method != RANKING and self.supervision == ANSWERS:
            raise ValueError(f"method={self.method!r} is not for answers, of which there are few.")
        if self.C is not None and not 0 < self.C < float("inf"):
            raise ValueError(f"C={self.C!r} should be a number greater than 0, or None to have it chosen.")


class Watcher(Protocol):
    """Whoever started the training."""

    def tell(self, message: str, done: int = 0, total: int = 0) -> None:
        """Hear of progress; raises :class:`musicsim.explorer.progress.Stopped` to leave everything as it was."""

    def trace(self, point: dict[str, Any]) -> None:
        """Keep a point of the live lines."""

    def is_enough(self) -> bool:
        """Whether to stop here and keep the best so far."""


@dataclass(frozen=True, slots=True)
class _Split:
    train: Rows
    validation: Rows
    test: Rows

    @classmethod
    def by_artist(cls, groups: Sequence[str], random_state: int) -> "_Split":
        """40 : 30 : 30 by artist."""
        names = np.asarray(groups)
        if len(np.unique(names)) < _FEWEST_ARTISTS:
            raise ModelError(
                f"{len(np.unique(names))} artists are too few to hold some out: a model is only trained where there "
                f"are at least {_FEWEST_ARTISTS} to judge it by."
            )
        rest, test = next(ArtistSplit(1, 0.3, random_state).split(names, groups=names))
        inner, outer = next(ArtistSplit(1, 3 / 7, random_state + 1).split(rest, groups=names[rest]))
        return cls(rest[inner], rest[outer], test)


@dataclass(slots=True)
class _Task:
    """The songs, who is similar to whom, and how good a space is on held-out artists."""

    X: FloatArray
    supervision: Supervision
    split: _Split
    settings: LearningSettings
    relevance: Relevance
    rng: np.random.Generator
    blocks: Sequence[slice]

    @classmethod
    def of(cls, snapshot: Snapshot, settings: LearningSettings, blocks: Sequence[slice]) -> "_Task":
        options = {"k": settings.k, "threshold": settings.threshold}
        supervision = Supervision(snapshot, settings.supervision, **options)
        split = _Split.by_artist(supervision.groups, settings.random_state)
        rng = np.random.default_rng(settings.random_state)
        return cls(
            np.asarray(snapshot.X, dtype=np.float64), supervision, split, settings,
            supervision.relevance(split.train), rng, blocks,
        )  # fmt: skip

    @property
    def has_kernels(self) -> bool:
        """Whether the metric has a block for each of several models; one of single dimensions needs no blocks."""
        return bool(self.blocks) and (self.settings.structure, self.settings.regularizer) == ("full", "trace")

    def queries(self, rows: Rows, most: int) -> tuple[Rows, Rows]:
        """Held-out queries, at most so many, and the database they search."""
        some = rows if len(rows) <= most else np.sort(self.rng.permutation(rows)[:most])
        return some, (rows if self.supervision.searches_itself else self.split.train)

    def score(self, L: FloatArray | None, queries: Rows, database: Rows) -> float:
        """Mean of the loss's own measure, of the space under L or of plain distance."""
        Y = self.X if L is None else self.X @ L.T
        relevance = self.relevance.restrict(queries, database)
        scores = query_scores(Y[queries], Y[database], relevance, k=10)[self.settings.loss]
        return float(np.nanmean(scores)) if np.isfinite(scores).any() else float("nan")


class _Watch:
    """Turns the steps of the fits into live lines, and ends a path that no longer helps."""

    def __init__(self, task: _Task, watcher: Watcher, n_fits: int) -> None:
        self._task, self._watcher, self._n_fits = task, watcher, n_fits
        self._queries = task.queries(task.split.validation, _MOST_VALIDATED)
        self.plain = task.score(None, *self._queries)
        self._fit, self._C = -1, float("nan")
        self._quality, self._best, self._unhelped = self.plain, -np.inf, 0
        self._scored, self._cost = -np.inf, 0.0
        self._latest: Callable[[], FloatArray] | None = None
        self._has_learned = False

    def __call__(self, step: dict[str, Any]) -> bool:
        latest = step.get(
            "components"
        )  # of several models, of the last fit that has ended: at first there is none
        if step["C"] != self._C:
            self._latest = self._latest or latest
            self._next_fit(step["C"])
        self._latest = latest
        # a tenth of the time may go into watching
        if time.perf_counter() - self._scored > 9 * self._cost:
            self._score()
        names = ("C", "cut", "objective", "dual_bound", "gap", "seconds")
        point = {**{n: step[n] for n in names}, "untrained": self.plain}
        self._watcher.trace(point | ({"quality": self._quality} if self._latest is not None else {}))
        self._watcher.tell(f"choosing how strongly to learn: C = {self._C:g}", self._fit, self._n_fits)
        return self._is_enough() or self._unhelped >= _PATIENCE

    def _is_enough(self) -> bool:
        """Whether to stop here: asked for, and there is something to keep, as the first metrics are 0."""
        if self._watcher.is_enough() and not self._has_learned:
            self._score()
        return self._watcher.is_enough() and self._has_learned

    def _next_fit(self, C: float) -> None:
        """Judge the fit that has just ended: did its C help?"""
        self._C, self._fit = C, self._fit + 1
        if self._fit > 0:
            self._score()
            self._unhelped = 0 if self._quality > self._best + 1e-4 else self._unhelped + 1
            self._best = max(self._best, self._quality)

    def _score(self) -> None:
        if self._latest is None:
            return
        started = time.perf_counter()
        L = self._latest()
        self._has_learned = self._has_learned or bool(L.any())
        self._quality = self._task.score(L, *self._queries)
        self._scored = time.perf_counter()
        self._cost = self._scored - started


def learn(library: Library, settings: LearningSettings, name: str, watcher: Watcher) -> str:
    """Learn a metric on the vectors of a model and keep it as a model of its own.

    Parameters
    ----------
    library : Library
    settings : LearningSettings
    name : str
        A model of this name is replaced.
    watcher : Watcher

    Returns
    -------
    str
        The id of the model. It is not put into use, unless it replaces the one that is.

    Raises
    ------
    ModelError
        If there is nothing to learn from, too few artists, or nothing is learned.
    NotFoundError
        If there is no model of the name in `settings`.
    StoreLockedError
        If another process is adding to this library.

    Notes
    -----
    Of more than 4 000 songs, or 1 500 where several models are kernels, a seeded sample is learned from. Memory:
    8 bytes times songs times dimensions, twice, and what :class:`~musicsim.metric.MLR` says of 4 000 songs, or 18 MB
    a kernel.
    """
    with library.exclusive():
        try:
            return learn_unlocked(library, settings, name, watcher)
        finally:
            library.models.discard_unfinished()


def learn_unlocked(library: Library, settings: LearningSettings, name: str, watcher: Watcher) -> str:
    """:func:`learn` for a caller that is the one process that changes the library already."""
    started = time.time()
    watcher.tell("reading what listeners said")
    chosen = _chosen_models(library, settings)
    base = chosen[0] if len(chosen) == 1 else combine(library, chosen, watcher.tell)
    snapshot = take_snapshot(library, base.id)
    model = snapshot.model
    assert model is not None
    blocks = model.front_.blocks if len(chosen) > 1 and isinstance(model.front_, Sources) else []
    if settings.method != RANKING:
        model, L, report = _from_means(snapshot, settings, blocks, watcher)
    else:
        learn_from = _from_answers if settings.supervision == ANSWERS else _from_relevance
        L, report = learn_from(snapshot, settings, blocks, watcher)
        model = model.with_metric(L, snapshot.X)
    names = " + ".join(record.name for record in chosen)
    report |= {"name": name, "base": names, "created_at": started, "seconds": time.time() - started}
    alone = report.pop("alone")
    if blocks:
        shares = source_shares(np.asarray(snapshot.X, dtype=np.float64), L, blocks)
        report["sources"] = [
            {"name": record.name, "dimensions": record.n_dimensions, "share": share, "alone": by_itself}
            for record, share, by_itself in zip(chosen, shares, alone, strict=True)
        ]
    n_songs = len(library.models.features(base.id).song_ids)
    record = new_record(LEARNED_KIND, name, model, n_songs, base_id=base.features_of, **asdict(settings))
    model.save(library.models.path(record.id))
    save_report(library.models.path(record.id), report)
    library.models.register(record)
    follow_owner(library, record)
    save_clusters_and_map(library, record, watcher.tell)
    fit_walk(library, record.id, watcher.tell)
    if base.kind == COMBINED_KIND:
        hide(library, base)
    library.models.finish(record.id)
    return record.id


def _chosen_models(library: Library, settings: LearningSettings) -> list[ModelRecord]:
    native = library.models.native()
    if native is None:
        raise ModelError("this library has no songs to learn from yet: add a folder first.")
    chosen = [library.models.named(name) for name in settings.on] or [native]
    for record in chosen:
        if record.kind == LEARNED_KIND:
            raise ModelError(
                f"{record.name!r} has been learned itself: learn on the model it was learned on."
            )
    return chosen


def _from_relevance(
    snapshot: Snapshot, settings: LearningSettings, blocks: Sequence[slice], watcher: Watcher
) -> tuple[FloatArray, dict[str, Any]]:
    """L, and the report, of a ranking that follows who is similar to whom."""
    task = _Task.of(snapshot, settings, blocks)
    chosen, path, finished = _chosen(task, watcher)
    L = _final(task, chosen, watcher) if finished else chosen["components"]
    report = _report(task, snapshot, L, chosen, path, watcher)
    return L, report | {"stopped_early": not finished or watcher.is_enough()}


def _from_means(
    snapshot: Snapshot, settings: LearningSettings, blocks: Sequence[slice], watcher: Watcher
) -> tuple[SimilarityModel, FloatArray, dict[str, Any]]:
    """The model, L and the report, of a metric in closed form, or of one for each region of songs."""
    task = _Task.of(snapshot, settings, blocks)
    train, relevance = _to_learn_from(task)
    queries, database = task.queries(task.split.validation, _MOST_VALIDATED)
    untrained = task.score(None, queries, database)
    path: list[dict[str, Any]] = []
    best: tuple[float, Trial, Any] | None = None
    tried = trials(settings.method)
    for number, trial in enumerate(tried):
        watcher.tell(f"trying {trial.words}", number, len(tried) + 1)
        learner = fitted(task.X[train], relevance, settings.method, trial.options)
        scores = held_out_scores(learner, task.X, task.relevance, queries, database)[settings.loss]
        quality = float(np.nanmean(scores)) if np.isfinite(scores).any() else float("nan")
        path.append({"setting": trial.words, "quality": quality})
        watcher.trace({"quality": quality, "untrained": untrained, "setting": trial.words})
        if best is None or quality > best[0]:
            best = quality, trial, learner
        if watcher.is_enough():
            break
    assert best is not None
    _, trial, held_out = best
    watcher.tell("learning from all songs", len(tried), len(tried) + 1)
    rows = _sampled(task, np.arange(len(task.X)))
    everyone = task.supervision.relevance(rows).restrict(rows, rows)
    learner = fitted(task.X[rows], everyone, settings.method, trial.options)
    assert snapshot.model is not None
    model = snapshot.model.with_metric(learner.components_, snapshot.X)
    assert model.metric_ is not None
    if settings.method == LOCAL:
        model = model.with_local(LocalMetrics.of(learner, model.metric_))
    watcher.tell("asking artists it has not heard")
    queries, database = task.queries(task.split.test, _MOST_MEANS_TESTED)
    before = query_scores(task.X[queries], task.X[database], task.relevance.restrict(queries, database), k=10)
    after = held_out_scores(held_out, task.X, task.relevance, queries, database)
    leads = leads_of(before, after, [task.supervision.groups[q] for q in queries])
    report = _about(task) | {"setting": trial.words, "C": None, "path": path, "untrained": untrained}
    report["stopped_early"] = len(path) < len(tried)
    L: FloatArray = learner.components_
    return model, L, report | _verdict(snapshot, settings, task.X, L, leads)


def _from_answers(
    snapshot: Snapshot, settings: LearningSettings, blocks: Sequence[slice], watcher: Watcher
) -> tuple[FloatArray, dict[str, Any]]:
    """L, and the report, of a metric that keeps to answers."""
    X = np.asarray(snapshot.X, dtype=np.float64)
    answered = Answered.of(snapshot, settings.listener)

    def told(message: str, point: dict[str, Any]) -> bool:
        watcher.trace(point)
        watcher.tell(message)
        return watcher.is_enough()

    judged = learn_from_answers(
        X, answered, Cs=CS if settings.C is None else (settings.C,), loss=settings.loss,
        structure=settings.structure, blocks=blocks, random_state=settings.random_state, told=told,
    )  # fmt: skip
    leads = {} if judged.lead is None else {ORDER: judged.lead}
    rows = np.unique(answered.all())
    return judged.L, {
        "answers": {
            "n": len(answered), "questions": len(set(answered.questions)), "comparisons": len(answered.all()),
            "songs": len(rows),
        },
        "detail": f"{len(answered):,} answers",
        "C": judged.C,
        "untrained": judged.untrained,
        "path": judged.path,
        "alone": [float(shares_in_order(X[:, block], answered).mean()) for block in blocks],
        "stopped_early": watcher.is_enough(),
        **_verdict(snapshot, settings, X, judged.L, leads),
    }  # fmt: skip


def _verdict(
    snapshot: Snapshot, settings: LearningSettings, X: FloatArray, L: FloatArray, leads: dict[str, Lead]
) -> dict[str, Any]:
    """What every report says: the settings, whether it is better, and what it changed."""
    after = X @ L.T
    songs = snapshot.indexed
    return {
        "version": __version__,
        "settings": asdict(settings),
        "n_songs": len(songs),
        "leads": {measure: asdict(lead) for measure, lead in leads.items()},
        "is_better": is_better(leads, settings.loss),
        "hubness": {"before": space_hubness(X), "after": space_hubness(after)},
        "changed": [
            {"query": songs[q].id, "before": [songs[i].id for i in a], "after": [songs[i].id for i in b]}
            for q, a, b in changed_queries(X, after)
        ],
    }


def _sampled(task: _Task, rows: Rows) -> Rows:
    most = _MOST_OF_KERNELS if task.has_kernels else _MOST_SONGS
    return rows if len(rows) <= most else np.sort(task.rng.permutation(rows)[:most])


def _to_learn_from(task: _Task) -> tuple[Rows, Relevance]:
    """The songs to learn from, and who is similar to whom among them."""
    train = _sampled(task, task.split.train)
    relevance = task.supervision.relevance(train).restrict(train, train)
    if not any(len(relevance.relevant(i)) and len(relevance.irrelevant(i)) for i in range(len(relevance))):
        raise ModelError(
            f"among the {len(train)} songs to learn from, no two are alike by {task.settings.supervision} while others "
            f"are not. Add music, or take another supervision."
        )
    return train, relevance


def _template(task: _Task) -> Any:
    from musicsim.metric import MLR

    settings = task.settings
    options: dict[str, Any] = {
        "loss": settings.loss, "k": settings.k if settings.loss in ("ndcg", "precision") else 10,
        "tol": _TOLERANCE, "max_cuts": _MOST_CUTS, "random_state": SEED,
    }  # fmt: skip
    if task.has_kernels:
        return SourceMLR(task.blocks, **options)
    return MLR(structure=settings.structure, regularizer=settings.regularizer, **options)


def _chosen(task: _Task, watcher: Watcher) -> tuple[dict[str, Any], list[dict[str, Any]], bool]:
    """The best entry of the path of C, the whole path, and whether it ran to its end."""
    train, relevance = _to_learn_from(task)
    Cs = CS if task.settings.C is None else (task.settings.C,)
    queries, database = task.queries(task.split.validation, _MOST_TESTED)
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
        raise ModelError(
            "nothing was learned: with every C that was tried the metric is 0. Take another supervision."
        )
    best = max(path, key=lambda entry: -np.inf if np.isnan(entry["quality"]) else entry["quality"])
    return best, path, not watcher.is_enough()


def _final(task: _Task, chosen: dict[str, Any], watcher: Watcher) -> FloatArray:
    """L of the metric learned with the chosen C on songs of all artists; the best so far when that is enough."""
    rows = _sampled(task, np.arange(len(task.X)))

    def tell(step: dict[str, Any]) -> bool:
        watcher.trace(
            {n: step[n] for n in ("cut", "objective", "dual_bound", "gap", "seconds")} | {"C": None}
        )
        watcher.tell(f"learning from all songs, C = {chosen['C']:g}: gap {step['gap']:.1%}", 1, 1)
        return watcher.is_enough()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlr = _template(task).set_params(C=chosen["C"])
        mlr.fit(task.X[rows], task.supervision.relevance(rows).restrict(rows, rows), callback=tell)
    # one that was cut short may be worse than the one it was to follow
    is_whole = mlr.components_.any() and not watcher.is_enough()
    return mlr.components_ if is_whole else chosen["components"]


def _report(
    task: _Task,
    snapshot: Snapshot,
    L: FloatArray,
    chosen: dict[str, Any],
    path: list[dict[str, Any]],
    watcher: Watcher,
) -> dict[str, Any]:
    """All that the model's card says, as JSON values."""
    watcher.tell("asking artists it has not heard")
    queries, database = task.queries(task.split.test, _MOST_TESTED)
    held_out = task.X @ chosen["components"].T  # what is kept was learned from the test artists too
    leads = compare(task.X, held_out, task.relevance, queries, database, task.supervision.groups)
    return {
        **_about(task),
        "C": chosen["C"],
        "untrained": task.score(None, *task.queries(task.split.validation, _MOST_TESTED)),
        "path": [{n: v for n, v in entry.items() if n != "components"} for entry in path],
        **_verdict(snapshot, task.settings, task.X, L, leads),
    }  # fmt: skip


def _about(task: _Task) -> dict[str, Any]:
    """What the report says of the supervision and the split, and how good each of several models is alone."""
    groups = np.asarray(task.supervision.groups)
    queries, database = task.queries(task.split.test, _MOST_TESTED)
    return {
        "detail": task.supervision.detail,
        "n_artists": len(np.unique(groups)),
        "split": {
            part: {"songs": len(rows), "artists": len(np.unique(groups[rows]))}
            for part, rows in (
                ("train", task.split.train), ("validation", task.split.validation), ("test", task.split.test),
            )
        },
        "alone": [task.score(np.eye(task.X.shape[1])[block], queries, database) for block in task.blocks],
    }  # fmt: skip
