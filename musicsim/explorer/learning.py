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
from musicsim.explorer.fitting import new_record
from musicsim.explorer.learning_answers import Answered, learn_from_answers, shares_in_order
from musicsim.explorer.placing import SEED, follow_owner, save_clusters_and_map
from musicsim.explorer.snapshot import Snapshot, take_snapshot
from musicsim.explorer.supervision import ANSWERS, Supervision
from musicsim.explorer.verdict import Lead, changed_queries, compare, is_better, space_hubness
from musicsim.explorer.walk_fit import fit_walk
from musicsim.library import Library
from musicsim.relevance import Relevance

__all__ = [
    "CS",
    "LEARNED_KIND",
    "LOSSES",
    "ORDER",
    "LearningSettings",
    "Watcher",
    "learn",
    "learn_unlocked",
]

LEARNED_KIND = "learned"
ORDER = "order"
LOSSES = {
    "auc": "AUC: the whole ranking",
    "map": "MAP: the order, from the top",
    "ndcg": "NDCG: the first few, the top counts most",
    "mrr": "MRR: the first right song",
    "precision": "P@k: how many of the first few are right",
    ORDER: "the order of pairs, as answers give it",
}
"""What a ranking is judged by while learning, in words; the last is of answers only."""
CS = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)
_TOLERANCE, _MOST_CUTS = 1e-2, 150
_MOST_SONGS = 4_000  # of a fit: a cut takes half a second then
_MOST_VALIDATED = 300  # queries of the live line
_MOST_TESTED = 2_000
_FEWEST_ARTISTS = 5
_PATIENCE = 2  # values of C in a row that do not help

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LearningSettings:
    """How a metric is learned.

    Attributes
    ----------
    supervision : str
        One of :data:`musicsim.explorer.supervision.KINDS`.
    on : str
        Name of the model whose vectors are taken; empty for the native one.
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
    on: str = ""
    loss: str = "auc"
    C: float | None = None
    k: int = 10
    threshold: int = 10
    structure: str = "full"
    regularizer: str = "trace"
    random_state: int = 0
    listener: str = ""

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise ValueError(f"loss={self.loss!r} should be one of {', '.join(LOSSES)}.")
        if self.loss == ORDER and self.supervision != ANSWERS:
            raise ValueError(
                f"loss={self.loss!r} is for answers; {self.supervision} say who is similar, not in which order."
            )
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

    @classmethod
    def of(cls, snapshot: Snapshot, settings: LearningSettings) -> "_Task":
        options = {"k": settings.k, "threshold": settings.threshold}
        supervision = Supervision(snapshot, settings.supervision, **options)
        split = _Split.by_artist(supervision.groups, settings.random_state)
        rng = np.random.default_rng(settings.random_state)
        return cls(
            np.asarray(snapshot.X, dtype=np.float64), supervision, split, settings,
            supervision.relevance(split.train), rng,
        )  # fmt: skip

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
        if step["C"] != self._C:
            self._next_fit(step["C"])
        self._latest = step["components"]
        # a tenth of the time may go into watching
        if time.perf_counter() - self._scored > 9 * self._cost:
            self._score()
        names = ("C", "cut", "objective", "dual_bound", "gap", "seconds")
        self._watcher.trace(
            {**{n: step[n] for n in names}, "quality": self._quality, "untrained": self.plain}
        )
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
    Of more than 4 000 songs a seeded sample is learned from. Memory: 8 bytes times songs times dimensions, twice,
    and what :class:`~musicsim.metric.MLR` says of 4 000 songs.
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
    base = library.models.named(settings.on) if settings.on else library.models.native()
    if base is None:
        raise ModelError("this library has no songs to learn from yet: add a folder first.")
    if base.kind == LEARNED_KIND:
        raise ModelError(f"{base.name!r} has been learned itself: learn on the model it was learned on.")
    snapshot = take_snapshot(library, base.id)
    assert snapshot.model is not None
    if settings.supervision == ANSWERS:
        L, report = _from_answers(snapshot, settings, watcher)
    else:
        L, report = _from_relevance(snapshot, settings, watcher)
    model = snapshot.model.with_metric(L, np.asarray(snapshot.X, dtype=np.float64))
    report |= {"name": name, "base": base.name, "created_at": started, "seconds": time.time() - started}
    n_songs = len(library.models.features(base.id).song_ids)
    record = new_record(LEARNED_KIND, name, model, n_songs, base_id=base.features_of, **asdict(settings))
    model.save(library.models.path(record.id))
    save_report(library.models.path(record.id), report)
    library.models.register(record)
    follow_owner(library, record)
    save_clusters_and_map(library, record, watcher.tell)
    fit_walk(library, record.id, watcher.tell)
    library.models.finish(record.id)
    return record.id


def _from_relevance(
    snapshot: Snapshot, settings: LearningSettings, watcher: Watcher
) -> tuple[FloatArray, dict[str, Any]]:
    """L, and the report, of a ranking that follows who is similar to whom."""
    task = _Task.of(snapshot, settings)
    chosen, path, finished = _chosen(task, watcher)
    L = _final(task, chosen, watcher) if finished else chosen["components"]
    report = _report(task, snapshot, L, chosen, path, watcher)
    return L, report | {"stopped_early": not finished or watcher.is_enough()}


def _from_answers(
    snapshot: Snapshot, settings: LearningSettings, watcher: Watcher
) -> tuple[FloatArray, dict[str, Any]]:
    """L, and the report, of a metric that keeps to answers."""
    X = np.asarray(snapshot.X, dtype=np.float64)
    answered = Answered.of(snapshot, settings.listener)
    plain = float(np.mean(shares_in_order(X, answered))) if len(answered) else float("nan")

    def told(message: str, C: float, share: float, step: dict[str, Any]) -> bool:
        names = ("objective", "dual_bound", "gap", "seconds")
        point = {n: step[n] for n in names} | {"C": C, "cut": step["iteration"], "untrained": plain}
        watcher.trace(point if np.isnan(share) else point | {"quality": share})
        watcher.tell(message)
        return watcher.is_enough()

    judged = learn_from_answers(
        X, answered, Cs=CS if settings.C is None else (settings.C,), loss=settings.loss,
        structure=settings.structure, random_state=settings.random_state, told=told,
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
    return rows if len(rows) <= _MOST_SONGS else np.sort(task.rng.permutation(rows)[:_MOST_SONGS])


def _template(settings: LearningSettings) -> Any:
    from musicsim.metric import MLR

    return MLR(
        loss=settings.loss, k=settings.k if settings.loss in ("ndcg", "precision") else 10,
        structure=settings.structure, regularizer=settings.regularizer, tol=_TOLERANCE, max_cuts=_MOST_CUTS,
        random_state=SEED,
    )  # fmt: skip


def _chosen(task: _Task, watcher: Watcher) -> tuple[dict[str, Any], list[dict[str, Any]], bool]:
    """The best entry of the path of C, the whole path, and whether it ran to its end."""
    train = _sampled(task, task.split.train)
    relevance = task.supervision.relevance(train).restrict(train, train)
    if not any(len(relevance.relevant(i)) and len(relevance.irrelevant(i)) for i in range(len(relevance))):
        raise ModelError(
            f"among the {len(train)} songs to learn from, no two are alike by {task.settings.supervision} while others "
            f"are not. Add music, or take another supervision."
        )
    Cs = CS if task.settings.C is None else (task.settings.C,)
    queries, database = task.queries(task.split.validation, _MOST_TESTED)
    watch = _Watch(task, watcher, len(Cs) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of open gaps, which the report tells
        fitted = _template(task.settings).fit_path(task.X[train], relevance, Cs, watch)
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
        mlr = _template(task.settings).set_params(C=chosen["C"])
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
    groups = np.asarray(task.supervision.groups)
    return {
        "detail": task.supervision.detail,
        "n_artists": len(np.unique(groups)),
        "split": {
            part: {"songs": len(rows), "artists": len(np.unique(groups[rows]))}
            for part, rows in (
                ("train", task.split.train), ("validation", task.split.validation), ("test", task.split.test),
            )
        },
        "C": chosen["C"],
        "untrained": task.score(None, *task.queries(task.split.validation, _MOST_TESTED)),
        "path": [{n: v for n, v in entry.items() if n != "components"} for entry in path],
        **_verdict(snapshot, task.settings, task.X, L, leads),
    }  # fmt: skip
