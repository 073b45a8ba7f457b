"""Learning only where it helps: several ways are tried on folds of held-out artists, the sound alone among them.

A dozen artists with ten songs each say little: a metric with thousands of numbers fits them, and is worse on all
others. So each way of learning is compared with the plain vectors, song by song, on artists that it was not learned
from. One is chosen when its gain is surer than those of the others and no measure falls; then it has to show on the
test artists that none falls there either. Otherwise the songs stay where they were.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from musicsim import evaluation, metric
from musicsim import relevance as relevances
from musicsim.errors import ModelError
from musicsim.explorer.learning.multi_kernel import SourceMLR
from musicsim.explorer.learning.task import (
    MAX_OF_KERNELS,
    MAX_SONGS,
    MAX_TESTED,
    FloatArray,
    Fold,
    LearningSettings,
    Rows,
    Task,
    TrainingProgress,
    about,
    artist_folds,
    no_example,
    to_learn_from,
    what_changed,
    whole_groups,
)
from musicsim.explorer.learning.verdict import RANKED, fallen, leads_of
from musicsim.explorer.learning.within import WithinSongs
from musicsim.explorer.snapshot.snapshot import Snapshot

SOUND_ALONE = "the sound alone"
_FOLDS = 3
_MAX_CHOSEN_ON = 1_500  # that the choice is made on, whole artists of them
_MAX_RANKED = 600  # that a ranking is learned from while choosing: a second each
_MAX_QUERIES = 400  # a fold
_SHRINKAGES = (0.3, 0.5, 0.8, 0.9)
_MEANS = ((0.0, 0.1), (0.0, 1.0), (0.3, 1.0))  # t and reg of GMML
_CS = (1.0, 10.0, 100.0, 1e3)
_RANKINGS_KEPT = 3  # after the first fold
_TOLERANCE, _MAX_CUTS = 1e-2, 60
_MARGIN = 1.64
"""Standard errors that a gain should exceed: with one, the best of fifty ways that change nothing often does."""
_SEED = 0

Learn = Callable[[Rows, int], FloatArray]
"""From the rows that may be learned from, and how many of them a ranking takes at most, to L, (r, d)."""


@dataclass(slots=True)
class Way:
    """A way of learning, and what came of it on the folds so far."""

    words: str
    learn: Learn  # raises ValueError where the rows hold nothing to learn from
    # of the queries of each fold, by measure
    scores: list[dict[str, FloatArray]] = field(default_factory=list)


class _Choice:
    """The ways that were tried, each against the sound alone."""

    def __init__(self, task: Task, watcher: TrainingProgress, plain: FloatArray) -> None:
        self._task, self._watcher = task, watcher
        self.folds = list(_folds(task))
        self.plain = Way(SOUND_ALONE, lambda *_: plain)
        self.tried: list[Way] = []
        for number in range(len(self.folds)):
            self._judge(self.plain, number)
        if not np.isfinite(_joined(self.plain)["auc"]).any():
            raise no_example(task)
        self._groups = [task.supervision.groups[q] for fold in self.folds for q in fold.queries]
        self.is_over = False

    def try_all(self, ways: Sequence[Way], n_kept: int | None = None) -> None:
        """Judge ways on all folds; or after the first one only those that are best there."""
        left = list(ways)
        for number in range(len(self.folds)):
            judged = []
            for way in left:
                self.is_over = self.is_over or self._watcher.is_enough()
                if self.is_over:
                    return
                try:
                    self._judge(way, number)
                except ValueError:  # this fold holds nothing for it to learn from
                    continue
                judged.append(way)
            if n_kept is not None:
                judged = sorted(judged, key=self._mean_gain, reverse=True)[:n_kept]
            left = judged
        for way in left:
            self.tried.append(way)
            self._watcher.trace({"quality": _quality(way), "untrained": _quality(self.plain), "setting": way.words})

    def best(self) -> Way:
        """The way whose gain is surest, none of whose measures falls; the sound alone where there is none."""
        found, most = self.plain, 0.0
        for way in self.tried:
            leads = leads_of(_joined(self.plain), _joined(way), self._groups)
            if not leads or fallen(leads):
                continue
            gain = _gain(way, self.plain)
            mean, low, high = evaluation.paired_bootstrap(gain, np.zeros(len(gain)), self._groups, random_state=_SEED)
            sure = mean - _MARGIN * (high - low) / (2 * 1.96)
            if sure > most:
                found, most = way, sure
        return found

    def most_promising(self, words: str) -> Way | None:
        """Of the ways tried whose words begin so, that of the largest mean gain."""
        some = [way for way in self.tried if way.words.startswith(words)]
        return max(some, key=self._mean_gain, default=None)

    def _mean_gain(self, way: Way) -> float:
        gain = _gain(way, self.plain)
        return float(np.nanmean(gain)) if np.isfinite(gain).any() else 0.0

    def _judge(self, way: Way, number: int) -> None:
        fold = self.folds[number]
        self._watcher(f"trying {way.words}", number, len(self.folds))
        way.scores.append(_scores(self._task, way.learn(fold.train, _MAX_RANKED), fold.queries, fold.database))


def _folds(task: Task) -> Iterator[Fold]:
    """Artists that are neither tested nor left out for their number, in as many parts as there are folds."""
    rows = _whole_groups(task, np.concatenate([task.split.train, task.split.validation]), _MAX_CHOSEN_ON)
    return artist_folds(task.supervision, rows, _FOLDS, _MAX_QUERIES, task.rng)


def _whole_groups(task: Task, rows: Rows, most: int) -> Rows:
    return whole_groups(task.supervision.groups, rows, most)


def _scores(task: Task, L: FloatArray, queries: Rows, database: Rows) -> dict[str, FloatArray]:
    relevance = task.supervision.relevance(database).restrict(queries, database)
    return evaluation.query_scores(task.X[queries] @ L.T, task.X[database] @ L.T, relevance, k=10)


def _joined(way: Way) -> dict[str, FloatArray]:
    return {name: np.concatenate([scores[name] for scores in way.scores]) for name in RANKED}


def _gain(way: Way, plain: Way) -> FloatArray:
    """Of each query so far, the mean over the measures of what it gains over the sound alone."""
    n = len(way.scores)
    before = {name: np.concatenate([scores[name] for scores in plain.scores[:n]]) for name in RANKED}
    gains: FloatArray = np.mean([after - before[name] for name, after in _joined(way).items()], axis=0)
    return gains


def _quality(way: Way) -> float:
    return float(np.nanmean([np.nanmean(scores) for scores in _joined(way).values()]))


# --- ways of learning -----------------------------------------------------------------------------


class _Ways:
    """The ways of learning on the vectors of one model, or of several joined."""

    def __init__(self, task: Task, space: FloatArray, where: str = "") -> None:
        self._task, self._space, self._where = task, space, where
        self._X = task.X @ space.T

    def whitenings(self, within: WithinSongs) -> list[Way]:
        return [
            Way(
                f"whitening within {' and '.join(kinds)}, shrunk by {g:g}{self._where}",
                self._whitening(within, kinds, g),
            )
            for kinds in within.kinds
            for g in _SHRINKAGES
        ]

    def means(self) -> list[Way]:
        return [Way(f"geometric mean, t {t:g}, reg {reg:g}{self._where}", self._mean(t, reg)) for t, reg in _MEANS]

    def rankings(self, first: Way | None) -> list[Way]:
        """MLR on these vectors and after a whitening, alone and blended in equal parts with what it began with."""
        starts = [(None, ""), *([(first, " after whitening")] if first is not None else [])]
        return [
            Way(
                f"ranking, C {C:g}{words}{', half of it' if is_blended else ''}{self._where}",
                self._ranking(C, way, is_blended=is_blended),
            )
            for C in _CS
            for way, words in starts
            for is_blended in (False, True)
        ]

    def _whitening(self, within: WithinSongs, kinds: tuple[str, ...], shrinkage: float) -> Learn:
        def learn(rows: Rows, _: int) -> FloatArray:
            covariances = [within.covariance(self._space, kind, rows) for kind in kinds]
            return metric.WCCN(shrinkage).fit_covariances(covariances).components_ @ self._space

        return learn

    def _mean(self, t: float, reg: float) -> Learn:
        def learn(rows: Rows, _: int) -> FloatArray:
            learner = metric.GMML(t=t, reg=reg).fit(self._X[rows], _among(self._task, rows))
            return learner.components_ @ self._space

        return learn

    def _ranking(self, C: float, first: Way | None, *, is_blended: bool) -> Learn:
        def learn(rows: Rows, most: int) -> FloatArray:
            before = self._space if first is None else first.learn(rows, most)
            some = _whole_groups(self._task, rows, most)
            X = self._task.X[some] @ before.T
            mlr = metric.MLR(self._task.settings.loss, C=C, tol=_TOLERANCE, max_cuts=_MAX_CUTS, random_state=_SEED)
            L = _fitted(mlr, X, _among(self._task, some))
            return (_blended(L, X) if is_blended else L) @ before

        return learn


def _kernels(task: Task) -> list[Way]:
    """MLR with a kernel for each of several models."""

    def ranking(C: float) -> Learn:
        def learn(rows: Rows, most: int) -> FloatArray:
            some = _whole_groups(task, rows, min(most, MAX_OF_KERNELS))
            mlr = SourceMLR(
                task.blocks, task.settings.loss, C=C, tol=_TOLERANCE, max_cuts=_MAX_CUTS, random_state=_SEED
            )
            return _fitted(mlr, task.X[some], _among(task, some))

        return learn

    return [Way(f"ranking with a kernel for each model, C {C:g}", ranking(C)) for C in _CS]


def _among(task: Task, rows: Rows) -> relevances.Relevance:
    return task.supervision.relevance(rows).restrict(rows, rows)


class NothingLearnedError(ValueError):
    """The metric of these songs is zero. That of some of them, at the same C, need not be."""


def _fitted(mlr: metric.MLR | SourceMLR, X: FloatArray, relevance: relevances.Relevance) -> FloatArray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of open gaps: what is learned is judged anyway
        L: FloatArray = mlr.fit(X, relevance).components_
    if not L.any():
        raise NothingLearnedError("C: nothing is learned with so small a one.")
    return L


def _blended(L: FloatArray, X: FloatArray) -> FloatArray:
    """The map of a metric and plain distance together, each half of the mean squared distance of X."""
    plain, learned = (float(np.var(Y, axis=0).sum()) for Y in (X, X @ L.T))
    together = np.eye(X.shape[1]) + (plain / learned) * (L.T @ L)
    return metric.factor(together)


# --- the whole ------------------------------------------------------------------------------------


def learn_automatically(
    snapshot: Snapshot, settings: LearningSettings, blocks: Sequence[slice], watcher: TrainingProgress
) -> tuple[FloatArray, dict[str, Any]]:
    """Choose a way of learning, or none; return L and the report.

    Of several models the first is the sound alone; L is then 0 on the others unless they help.
    """
    task = Task.of(snapshot, settings, blocks)
    to_learn_from(task)  # says in words what is missing
    every = np.eye(task.X.shape[1])
    plain = every[blocks[0]] if blocks else every
    watcher("comparing parts of songs")
    choice = _Choice(task, watcher, plain)
    spaces = [(plain, "")]
    if blocks:
        spaces.append((every, ", all models"))
        choice.try_all([Way("all models, as equals", lambda *_: every)])
    within = WithinSongs(snapshot, task)
    for space, where in spaces:
        ways = _Ways(task, space, where)
        choice.try_all([*ways.whitenings(within), *ways.means()])
    first = choice.most_promising("whitening")
    choice.try_all(_Ways(task, plain).rankings(first), _RANKINGS_KEPT)
    if blocks:
        choice.try_all(_kernels(task), _RANKINGS_KEPT)
    chosen = choice.best()
    watcher("evaluating on held-out artists")
    known = np.concatenate([task.split.train, task.split.validation])
    queries, database = task.queries(task.split.test, MAX_TESTED)
    if not task.supervision.searches_itself:
        database = np.sort(known)
    try:
        judged = chosen.learn(_whole_groups(task, known, MAX_SONGS), MAX_SONGS)
    except NothingLearnedError:
        chosen, judged = choice.plain, plain
    leads = leads_of(
        _scores(task, plain, queries, database),
        _scores(task, judged, queries, database),
        [task.supervision.groups[q] for q in queries],
    )
    rejected = chosen.words if chosen is not choice.plain and (not leads or fallen(leads)) else ""
    kept = choice.plain if rejected else chosen
    watcher("learning from all songs")
    try:
        L = kept.learn(_whole_groups(task, np.arange(len(task.X)), MAX_SONGS), MAX_SONGS)
    except NothingLearnedError:
        L = judged
    report = about(task) | {
        "setting": kept.words,
        "rejected": rejected,
        "C": None,
        "path": [{"setting": way.words, "quality": _quality(way)} for way in (choice.plain, *choice.tried)],
        "untrained": _quality(choice.plain),
        "stopped_early": choice.is_over,
    }
    groups = np.asarray(task.supervision.groups)[known]
    report["split"]["train"] = {"songs": len(known), "artists": len(np.unique(groups))}
    return L, report | what_changed(snapshot, settings, task.X @ plain.T, task.X @ L.T, leads)


def learn_ranking(task: Task, watcher: TrainingProgress) -> FloatArray | None:
    """L by the ranking that is surely better on held-out artists of the training songs, learned from all of these.

    None where none is: then the vectors stay as they are. Test songs are not looked at.
    """
    plain = np.eye(task.X.shape[1])
    try:
        choice = _Choice(task, watcher, plain)
    except ModelError:  # no query can be judged
        return None
    choice.try_all(_Ways(task, plain).rankings(None), _RANKINGS_KEPT)
    chosen = choice.best()
    if chosen is choice.plain:
        return None
    known = np.concatenate([task.split.train, task.split.validation])
    try:
        return chosen.learn(_whole_groups(task, known, _MAX_CHOSEN_ON), _MAX_CHOSEN_ON)
    except NothingLearnedError:
        return None
