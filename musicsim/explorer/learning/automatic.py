"""Automatic choice of a learning method: the best in cross-validation is used only if it clearly helps.

With few artists, a metric with thousands of parameters overfits. In cross-validation, a method must be significantly
better than the plain vectors and than the same method on shuffled evidence. It must not be significantly worse by any
measure on the test artists.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from musicsim import metric
from musicsim import relevance as relevances
from musicsim._arrays import Float64Array, Int64Array
from musicsim.audio import DELTA_WIDTH, HOP, SAMPLE_RATE
from musicsim.errors import ModelError
from musicsim.explorer.learning.judging import N_SHUFFLES, Steps, judge
from musicsim.explorer.learning.multi_kernel import SourceLearner
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.learning.task import (
    MAX_OF_KERNELS,
    MAX_SONGS,
    MAX_TESTED,
    Fold,
    LearningSettings,
    LearningTask,
    TrainingProgress,
    artist_folds,
    choose_training_songs,
    describe_task,
    make_no_example_error,
    what_changed,
    whole_groups,
)
from musicsim.explorer.learning.two_way import Space
from musicsim.explorer.learning.verdict import (
    RANKING_MEASURES,
    find_losses,
    finite_mean,
    first_within_error,
    gain_and_error,
    leads_of,
)
from musicsim.explorer.models.encoders import has_features
from musicsim.explorer.snapshot.snapshot import Snapshot

SOUND_ALONE = "the sound alone"
_FOLDS = 3
_MAX_CHOSEN_ON = 1_500  # maximum number of songs on which methods are compared; whole artists are sampled
_MAX_RANKED = 600  # maximum number of training songs per ranking in this comparison; a ranking then takes a second
_MAX_QUERIES = 400  # per fold
_SHRINKAGES = (0.3, 0.5, 0.8, 0.9)
_MEANS = ((0.5, 100.0), (0.5, 10.0), (0.3, 1.0), (0.0, 1.0), (0.0, 0.1))  # t and reg of GMML, from weak to strong
_CS = (10.0, 100.0, 1e3, 1e4)
_KERNEL_CS = (1.0, 10.0, 100.0, 1e3)
_RANKINGS_KEPT = 3  # number of rankings that are kept after each fold
_MARGIN = 1.64  # minimum gain, in standard errors; the best of fifty useless methods often gains more than 1 by chance
_MIN_TIMED_S = 2.0  # minimum time spent before the time left is estimated
_SEED = 0
_SOLVER: dict[str, Any] = {"tol": 1e-2, "max_cuts": 60, "random_state": _SEED}  # solver options for learning by ranking
SONGS = "songs"
_LABELS = {"genre": "genres", "artist": "artists", "folder": "folders"}
_PART = round(20 * SAMPLE_RATE / HOP)  # frames per part; songs shorter than two parts are halved
_MAX_PARTS = 6  # per song
_MAX_DIVIDED = 300  # maximum number of songs that are divided into parts

Learn = Callable[[Supervision, Int64Array, int], Float64Array]
"""Learns L (r, d) from supervision of training rows; the last argument limits the rows used to learn a ranking."""
Attempts = Mapping[str, Float64Array]
"""Scores (n_measures, n_queries) of each method on the queries of all folds, keyed by `Way.words`."""


@dataclass(slots=True)
class Way:
    """A learning method, and its scores on the folds so far."""

    words: str
    learn: Learn  # raises ValueError if the rows contain nothing to learn from
    scores: list[Float64Array] = field(default_factory=list)  # for each fold: (n_measures, n_queries)

    def all_scores(self) -> Float64Array:
        """Return the scores on all folds so far, (n_measures, n_queries)."""
        return np.concatenate(self.scores, axis=1)

    def quality(self) -> float:
        """Return the mean score, averaged over the measures."""
        return float(np.nanmean(np.nanmean(self.all_scores(), axis=1)))


@dataclass(frozen=True, slots=True)
class _Stage:
    """Methods that are tried together; only the best `n_kept` of them continue after each fold."""

    ways: Sequence[Way]
    cost: float = 0.1  # rough time of one method on one fold, relative to reading the parts of a song
    n_kept: int | None = None

    def count_runs(self, n_folds: int) -> int:
        """Return the number of runs on all folds, if no method fails."""
        n = len(self.ways)
        return n + (n_folds - 1) * min(n, self.n_kept or n)


class _Clock:
    """Estimate of the time left, from the rough costs of finished and remaining work."""

    def __init__(self) -> None:
        self.left = self._done = self._spent_s = 0.0

    @contextmanager
    def measure(self, cost: float) -> Iterator[None]:
        """Measure the time of a piece of work; pauses between two pieces do not count."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._spent_s += time.perf_counter() - started
            self._done += cost
            self.left -= cost

    @property
    def seconds_left(self) -> float | None:
        """Estimated time left; None if not known yet."""
        return self._spent_s / self._done * max(0.0, self.left) if self._spent_s > _MIN_TIMED_S else None


class _Choice:
    """Comparison of methods with the baseline, the sound alone."""

    def __init__(self, task: LearningTask, watcher: TrainingProgress, plain: Float64Array, stored: Attempts) -> None:
        self._task, self._watcher = task, watcher
        known = np.concatenate([task.split.train, task.split.validation])
        rows = whole_groups(task.supervision.groups, known, _MAX_CHOSEN_ON)
        self.folds = list(artist_folds(task.supervision, rows, _FOLDS, _MAX_QUERIES, task.rng))
        self.plain = Way(SOUND_ALONE, lambda *_: plain)
        self.tried: list[Way] = []
        self._stored: Attempts = {}
        for number in range(len(self.folds)):
            self._judge(self.plain, number)
        now = self.plain.all_scores()
        if not np.isfinite(now[0]).any():  # the first measure is AUC
            raise make_no_example_error(task)
        before = stored.get(SOUND_ALONE, np.empty(0))
        if before.shape == now.shape and np.allclose(before, now, equal_nan=True):  # the data have not changed
            self._stored = stored
        self._groups = [task.supervision.groups[q] for fold in self.folds for q in fold.queries]
        self.is_over = False
        self._n_steps = self._n_before = 0
        self.clock = _Clock()

    def expect(self, stages: Sequence[_Stage], n_later: int) -> None:
        """Count the methods and `n_later` trainings on shuffled evidence, and add up the costs of all runs."""
        self._n_steps = sum(len(stage.ways) for stage in stages) + n_later
        self.clock.left = sum(stage.cost * stage.count_runs(len(self.folds)) for stage in stages)
        self.clock.left += n_later * max(stage.cost for stage in stages)

    def try_all(self, stages: Sequence[_Stage], n_later: int) -> None:
        """Evaluate methods on all folds, and report a single count of attempts, which never decreases."""
        self.expect(stages, n_later)
        for stage in stages:
            self._try_stage(stage)
            self._n_before += len(stage.ways)

    def _try_stage(self, stage: _Stage) -> None:
        left, n_begun = list(stage.ways), 0
        for number in range(len(self.folds)):
            evaluated = []
            for way in left:
                done = self._n_before + len(stage.ways) * n_begun // stage.count_runs(len(self.folds))
                left_s = self.clock.seconds_left
                self._watcher("comparing methods on held-out artists", done, self._n_steps, seconds_left=left_s)
                self.is_over = self.is_over or (way.words not in self._stored and self._watcher.is_enough())
                if self.is_over:
                    return
                n_begun += 1
                with suppress(ValueError), self.clock.measure(stage.cost):  # a fold may contain nothing to learn from
                    self._judge(way, number)
                    evaluated.append(way)
            left = sorted(evaluated, key=self._mean_gain, reverse=True)[: stage.n_kept] if stage.n_kept else evaluated
        for way in left:
            self.tried.append(way)
            self._watcher.trace({"quality": way.quality(), "untrained": self.plain.quality(), "setting": way.words})

    def best(self) -> Way:
        """Return the method with the most significant gain and no significant loss; the baseline if there is none."""
        best, largest = self.plain, 0.0
        for way in self.tried:
            before, after = (dict(zip(RANKING_MEASURES, w.all_scores(), strict=True)) for w in (self.plain, way))
            leads = leads_of(before, after, self._groups)
            if not leads or find_losses(leads):
                continue
            certain = self._certain_gain(self._gain(way))
            if certain > largest:
                best, largest = way, certain
        return best

    def weakest(self) -> Way:
        """Return the first method that is not clearly worse than the best one; the baseline is the first of all."""
        ways = [self.plain, *self.tried]
        return ways[first_within_error([self._gain(way) for way in ways], self._groups)]

    def gains_by_chance(self, way: Way) -> bool:
        """Return whether a method gains about as much if it is trained on shuffled evidence; False if stopped."""
        steps = Steps(self._watcher, self._task.evidence, self._n_before, self._n_steps)
        self._n_before += N_SHUFFLES
        gains: list[Float64Array] = []
        for number in range(N_SHUFFLES):
            if not steps.begin():
                break
            rng = np.random.default_rng([self._task.settings.random_state, _FOLDS, number])
            supervision = self._task.supervision.shuffle([fold.database for fold in self.folds], rng)
            gains.append(np.concatenate([self._gain_from(supervision, way, fold) for fold in self.folds]))
        if not gains:
            return False
        return self._certain_gain(self._gain(way) - np.nan_to_num(finite_mean(gains))) <= 0

    def _gain_from(self, supervision: Supervision, way: Way, fold: Fold) -> Float64Array:
        """Return the gain of each query of a fold, averaged over the measures, by training on other supervision."""
        try:
            learned = way.learn(supervision, fold.train, _MAX_RANKED)
        except ValueError:  # nothing was learned, so nothing was gained
            return np.zeros(len(fold.queries))
        plain = self.plain.learn(supervision, fold.train, 0)
        before, after = (_scores(self._task, supervision, L, fold.queries, fold.database) for L in (plain, learned))
        gains: Float64Array = np.mean([after[name] - before[name] for name in RANKING_MEASURES], axis=0)
        return gains

    def last_steps(self) -> Steps:
        """Return the steps of the verdict, which are the last ones."""
        return Steps(self._watcher, self._task.evidence, self._n_steps - N_SHUFFLES, self._n_steps)

    def _certain_gain(self, gain: Float64Array) -> float:
        """Return the mean gain of the queries, minus the margin for chance."""
        mean, error = gain_and_error(gain, np.zeros(len(gain)), self._groups)
        return mean - _MARGIN * error

    def whiten(self, supervision: Supervision, rows: Int64Array, most: int) -> Float64Array:
        """Learn L with the whitening that has the largest mean gain; raises ValueError if none could be learned."""
        tried = [way for way in self.tried if way.words.startswith("whitening")]
        if not tried:
            raise ValueError("no whitening could be learned.")
        return max(tried, key=self._mean_gain).learn(supervision, rows, most)

    def _gain(self, way: Way) -> Float64Array:
        """Return each query's gain over the baseline so far, averaged over the measures."""
        after = way.all_scores()
        gains: Float64Array = np.mean(after - self.plain.all_scores()[:, : after.shape[1]], axis=0)
        return gains

    def _mean_gain(self, way: Way) -> float:
        gain = self._gain(way)
        return float(np.nanmean(gain)) if np.isfinite(gain).any() else 0.0

    def _judge(self, way: Way, number: int) -> None:
        fold = self.folds[number]
        if way.words in self._stored:
            start = sum(len(earlier.queries) for earlier in self.folds[:number])
            way.scores.append(self._stored[way.words][:, start : start + len(fold.queries)])
        else:
            supervision = self._task.supervision
            L = way.learn(supervision, fold.train, _MAX_RANKED)
            scores = _scores(self._task, supervision, L, fold.queries, fold.database)
            way.scores.append(np.stack([scores[name] for name in RANKING_MEASURES]))


def _scores(
    task: LearningTask, supervision: Supervision, L: Float64Array, queries: Int64Array, database: Int64Array
) -> dict[str, Float64Array]:
    relevance = supervision.relevance(database).restrict(queries, database)
    return task.score_queries(L, queries, database, relevance)


class WithinSongs:
    """Covariances within classes of songs."""

    def __init__(self, snapshot: Snapshot, task: LearningTask) -> None:
        self._task = task
        self._labels = {_LABELS[name]: getattr(snapshot.columns, name).texts() for name in ("artist", "folder")}
        self._snapshot = snapshot
        self._has_parts = snapshot.model is not None and snapshot.model.encoder_.uses_audio
        self._parts, self._song_of_part = np.empty((0, 0)), np.empty(0, dtype=np.int64)

    def read_parts(self, watcher: TrainingProgress, clock: _Clock) -> None:
        """Read the parts of a sample of songs, which takes seconds or minutes."""
        model, library = self._snapshot.model, self._snapshot.library
        if model is None or not self._has_parts:
            return
        stored = library.frame_files.list_stored()
        rows = np.sort(np.random.default_rng(_SEED).permutation(self._snapshot.n_indexed)[:_MAX_DIVIDED])
        songs = [song for song in self._snapshot.songs_at(rows) if song.content_hash in stored]
        vectors, song_of_part = [], []
        clock.left += len(songs)
        for number, song in enumerate(songs):
            watcher("reading parts of songs", seconds_left=clock.seconds_left)
            if watcher.is_enough():
                break
            with clock.measure(1.0):
                frames = library.frame_files.frames(song.content_hash)
                length = min(_PART, len(frames) // 2)
                if length < DELTA_WIDTH:
                    continue
                starts = np.linspace(0, len(frames) - length, min(_MAX_PARTS, len(frames) // length)).astype(int)
                features = model.features([frames.part(start, start + length) for start in starts.tolist()])
                if has_features(features).all():  # False if the frames are from an older version
                    vectors.append(model.vectors(features))
                    song_of_part += [number] * len(starts)
        self._has_parts = bool(vectors)
        if vectors:
            self._parts, self._song_of_part = np.concatenate(vectors).astype(np.float64), np.array(song_of_part)

    @property
    def kinds(self) -> list[tuple[str, ...]]:
        """Combinations of different classes, starting with the one closest to the supervision."""
        own = _LABELS.get(self._task.supervision.kind, "similar songs")
        parts = (SONGS,) if self._has_parts else ()
        artists, folders = (relevances.label_codes(labels) for labels in self._labels.values())
        others: tuple[str, ...] = ("artists", "folders")
        if np.array_equal(artists, folders):  # each artist has one folder: the same whitenings would be tried twice
            others = (own,) if own in others else ("artists",)
        every = (*(() if own in others else (own,)), *others, *parts)
        return list(filter(None, dict.fromkeys([(own,), others[-1:], parts, (own, *parts), others, every])))

    def covariance(self, supervision: Supervision, space: Float64Array, kind: str, rows: Int64Array) -> Float64Array:
        """Return the within-class covariance of rows in a space (r, d); raises ValueError if no class has two rows."""
        if kind == SONGS:
            return metric.compute_within_covariance(self._parts @ space.T, self._song_of_part)
        is_own = kind == _LABELS.get(supervision.kind)
        labels = supervision.labels if is_own else self._labels.get(kind)
        X = self._task.X[rows] @ space.T
        if labels is not None:
            return metric.compute_within_covariance(X, [labels[row] for row in rows])
        return metric.compute_within_covariance(X, supervision.relevance_among(rows))


class Ways:
    """Learning methods for the vectors of one model, or of several joined models."""

    def __init__(self, task: LearningTask, space: Float64Array, suffix: str = "") -> None:
        self._task, self._space, self._suffix = task, space, suffix

    def whitenings(self, within: WithinSongs) -> list[Way]:
        """Return WCCN for each kind of class, with several shrinkages."""
        return [
            Way(
                f"whitening within {' and '.join(kinds)}, shrinkage {shrinkage:g}{self._suffix}",
                partial(self._whiten, within, kinds, shrinkage),
            )
            for kinds, shrinkage in product(within.kinds, _SHRINKAGES)
        ]

    def means(self) -> list[Way]:
        """Return geometric means with several values of t and reg."""
        return [
            Way(f"geometric mean, t {t:g}, reg {reg:g}{self._suffix}", partial(self._fit_mean, t, reg))
            for t, reg in _MEANS
        ]

    def rankings(self, first: Way | None) -> list[Way]:
        """Return MLR near the original distance and near a whitening."""
        starts = [(None, ""), *([(first, " after whitening")] if first is not None else [])]
        return [
            Way(f"ranking, C {C:g}{words}{self._suffix}", partial(self._fit_ranking, C, way))
            for C, (way, words) in product(_CS, starts)
        ]

    def kernel_rankings(self) -> list[Way]:
        """Return MLR with one kernel per joined model."""
        return [
            Way(f"ranking with a kernel for each model, C {C:g}", partial(self._fit_kernels, C)) for C in _KERNEL_CS
        ]

    def _whiten(
        self,
        within: WithinSongs,
        kinds: tuple[str, ...],
        shrinkage: float,
        supervision: Supervision,
        rows: Int64Array,
        _most: int,
    ) -> Float64Array:
        covariances = [within.covariance(supervision, self._space, kind, rows) for kind in kinds]
        return metric.WCCN(shrinkage).fit_covariances(covariances).components_ @ self._space

    def _fit_mean(self, t: float, reg: float, supervision: Supervision, rows: Int64Array, _most: int) -> Float64Array:
        X = self._task.X[rows] @ self._space.T
        return metric.GMML(t=t, reg=reg).fit(X, supervision.relevance_among(rows)).components_ @ self._space

    def _fit_ranking(
        self, C: float, first: Way | None, supervision: Supervision, rows: Int64Array, most: int
    ) -> Float64Array:
        before = self._space if first is None else first.learn(supervision, rows, most)
        sample = whole_groups(supervision.groups, rows, most)
        X = self._task.X[sample] @ before.T
        mlr = metric.MLR(self._task.settings.loss, C=C, regularizer="plain", **_SOLVER)
        return fit_ranking(mlr, X, supervision.relevance_among(sample)) @ before

    def _fit_kernels(self, C: float, supervision: Supervision, rows: Int64Array, most: int) -> Float64Array:
        sample = whole_groups(supervision.groups, rows, min(most, MAX_OF_KERNELS))
        mlr = SourceLearner(self._task.blocks, metric.MultipleKernelMLR(self._task.settings.loss, C=C, **_SOLVER))
        return fit_ranking(mlr, self._task.X[sample], supervision.relevance_among(sample))


class NothingLearnedError(ValueError):
    """The metric learned from these songs is 0. With the same C, other songs may yield a metric that is not 0."""


def fit_ranking(mlr: metric.MLR | SourceLearner, X: Float64Array, relevance: relevances.Relevance) -> Float64Array:
    """Fit MLR and return its components; raises NothingLearnedError if they are 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # duality gaps may remain, but the metric is evaluated anyway
        L: Float64Array = mlr.fit(X, relevance).components_
    if not L.any():
        raise NothingLearnedError("C is too small: nothing was learned. Try a larger value.")
    return L


def learn_automatically(
    snapshot: Snapshot, settings: LearningSettings, blocks: Sequence[slice], watcher: TrainingProgress, stored: Attempts
) -> tuple[Float64Array, dict[str, Any]]:
    """Choose a learning method, or none; return L and the report. The first model is the baseline.

    With `settings.quick`, only geometric means are tried, and the weakest that is not clearly worse than the best one
    is used. The report contains their scores; a later training without `quick` gets them as `stored`, so that it does
    not repeat the work.
    """
    task = LearningTask.from_settings(snapshot, settings, blocks)
    choose_training_songs(task)  # raises ModelError if there is too little data
    identity = np.eye(task.X.shape[1])
    plain = identity[blocks[0]] if blocks else identity
    choice = _Choice(task, watcher, plain, stored)
    within = WithinSongs(snapshot, task)
    stages = _plan(choice, task, within, plain)
    if not settings.quick:
        choice.expect(stages, 2 * N_SHUFFLES)
        within.read_parts(watcher, choice.clock)
        stages = _plan(choice, task, within, plain)  # plan again, because songs may have no parts
    n_ways = sum(len(stage.ways) for stage in stages)
    if settings.quick:
        choice.try_all(stages[:1], N_SHUFFLES)
        chosen = choice.weakest()
    else:
        choice.try_all(stages, 2 * N_SHUFFLES)
        chosen = choice.best()
    by_chance = ""
    if not settings.quick and chosen is not choice.plain and choice.gains_by_chance(chosen):
        chosen, by_chance = choice.plain, chosen.words
    L, report = _learn_chosen(task, choice, chosen, plain, watcher)
    report |= {"by_chance": by_chance}
    if settings.quick and choice.tried:
        n_left = n_ways - len(choice.tried)
        report |= {
            "untried": n_left,
            "attempts": {way.words: way.all_scores() for way in (choice.plain, *choice.tried)},
        }
    changed = what_changed(snapshot, settings, task.X @ plain.T, task.X @ L.T, report["leads"], report["n_shuffled"])
    return L, report | changed


def _plan(choice: _Choice, task: LearningTask, within: WithinSongs, plain: Float64Array) -> list[_Stage]:
    """Return all methods: means for the first result, then whitenings, then rankings, which take longer."""
    identity, ways = np.eye(task.X.shape[1]), Ways(task, plain)
    stages = [_Stage(ways.means()), _Stage(ways.whitenings(within))]
    if task.blocks:
        joined = Ways(task, identity, ", all models")
        equal = Way("all models, equal weights", lambda *_: identity)
        stages.append(_Stage([equal, *joined.whitenings(within), *joined.means()], 1.0))
    stages.append(_Stage(ways.rankings(Way("whitening", choice.whiten)), 5.0, _RANKINGS_KEPT))
    if task.blocks:
        stages.append(_Stage(ways.kernel_rankings(), 7.0, _RANKINGS_KEPT))
    return stages


def _learn_chosen(
    task: LearningTask, choice: _Choice, chosen: Way, plain: Float64Array, watcher: TrainingProgress
) -> tuple[Float64Array, dict[str, Any]]:
    """Evaluate a method on the test artists, then learn from all songs; use the baseline if a measure is worse."""
    known = np.concatenate([task.split.train, task.split.validation])
    queries, database = task.queries(task.split.test, MAX_TESTED)
    if not task.supervision.searches_itself:
        database = np.sort(known)

    def learn_known(supervision: Supervision) -> Float64Array:
        return chosen.learn(supervision, whole_groups(supervision.groups, known, MAX_SONGS), MAX_SONGS)

    try:
        L_of_known = learn_known(task.supervision)
    except NothingLearnedError:
        chosen, L_of_known = choice.plain, plain
    train = None if chosen is choice.plain else lambda shuffled: Space(task.X @ learn_known(shuffled).T)
    before, after = (Space(task.X @ L.T) for L in (plain, L_of_known))
    leads, compared = judge(task, queries, database, before, after, train, choice.last_steps())
    rejected = chosen.words if chosen is not choice.plain and (not leads or find_losses(leads)) else ""
    used = choice.plain if rejected else chosen
    watcher("learning from all songs")
    try:
        rows = whole_groups(task.supervision.groups, np.arange(len(task.X)), MAX_SONGS)
        L = used.learn(task.supervision, rows, MAX_SONGS)
    except NothingLearnedError:
        L = L_of_known
    report = (
        describe_task(task)
        | compared
        | {
            "setting": used.words,
            "rejected": rejected,
            "C": None,
            "path": [{"setting": way.words, "quality": way.quality()} for way in (choice.plain, *choice.tried)],
            "untrained": choice.plain.quality(),
            "stopped_early": choice.is_over,
            "leads": leads,
        }
    )
    groups = np.asarray(task.supervision.groups)[known]
    report["split"]["train"] = {"songs": len(known), "artists": len(np.unique(groups))}
    return L, report


def learn_ranking(task: LearningTask, watcher: TrainingProgress) -> Float64Array | None:
    """Return L of the best ranking, or None if none is significantly better on held-out training artists."""
    plain = np.eye(task.X.shape[1])
    try:
        choice = _Choice(task, watcher, plain, {})
    except ModelError:  # no query can be evaluated
        return None
    choice.try_all([_Stage(Ways(task, plain).rankings(None), n_kept=_RANKINGS_KEPT)], 0)
    chosen = choice.best()
    if chosen is choice.plain:
        return None
    known = np.concatenate([task.split.train, task.split.validation])
    try:
        rows = whole_groups(task.supervision.groups, known, _MAX_CHOSEN_ON)
        return chosen.learn(task.supervision, rows, _MAX_CHOSEN_ON)
    except NothingLearnedError:
        return None
