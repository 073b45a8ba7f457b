"""Training tasks: songs split by artist, their ground truth, and the quality of a metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from musicsim import __version__, evaluation, relevance
from musicsim._arrays import Float64Array, Int64Array
from musicsim.errors import ModelError
from musicsim.explorer.learning.search_ranking import score_search
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.learning.verdict import Lead, find_changed_queries, is_better, render_lead, space_hubness
from musicsim.explorer.requests.training import TRAINING_KINDS, LearningSettings
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.progress import Progress

if TYPE_CHECKING:
    Relevance = relevance.Relevance  # its module loads numba

CS = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5)  # values of C to try, from weak to strong
MAX_VALIDATED = 300  # maximum number of validation queries, for plots and for methods with a metric per query
MAX_TESTED = 2_000
MAX_SONGS = 4_000  # maximum number of songs per fit; a cut then takes half a second
MAX_OF_KERNELS = 1_500  # maximum number of songs per fit with several kernels; decomposing them then takes a second
MIN_ARTISTS = 5
_SEED = 0


class TrainingProgress(Progress, Protocol):
    """Progress of a training job that can also be plotted and stopped early."""

    def trace(self, point: dict[str, Any]) -> None:
        """Record a point of the live plot."""

    def is_enough(self) -> bool:
        """Return whether to stop now and keep the best result so far."""


class Quiet:
    """Progress of a training job without a plot or early stopping."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __call__(self, message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
        """Forward the progress."""
        self._progress(message, done, total, **facts)

    def trace(self, point: dict[str, Any]) -> None:
        """Ignore the point."""

    def is_enough(self) -> bool:
        """Return False."""
        return False


class Rising:
    """Progress of a training job that never decreases; a step without counts repeats the last counts."""

    def __init__(self, watcher: TrainingProgress) -> None:
        self._watcher, self._done, self._total = watcher, 0, 0
        self.trace, self.is_enough = watcher.trace, watcher.is_enough

    def __call__(self, message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
        """Forward the progress."""
        if total and (done * self._total > self._done * total or not self._total):
            self._done, self._total = done, total
        self._watcher(message, self._done, self._total, **({"seconds_left": None} | facts))

    def finish(self, message: str) -> None:
        """Report the last step, after all attempts."""
        self._done = self._total
        self(message)


@dataclass(frozen=True, slots=True)
class Split:
    """Rows for training, validation and testing; no artist is in more than one of them."""

    train: Int64Array
    validation: Int64Array
    test: Int64Array

    @classmethod
    def from_groups(cls, groups: Sequence[str], random_state: int) -> Split:
        """Split artists 40 : 30 : 30; raises ModelError if there are too few."""
        names = np.asarray(groups)
        if (n_artists := len(np.unique(names))) < MIN_ARTISTS:
            raise ModelError(
                f"training needs at least {MIN_ARTISTS} artists, because some of them are held out to evaluate the "
                f"model. There are only {n_artists}."
            )
        rest, test = next(evaluation.ArtistSplit(1, 0.3, random_state).split(names, groups=names))
        inner, outer = next(evaluation.ArtistSplit(1, 3 / 7, random_state + 1).split(rest, groups=names[rest]))
        return cls(rest[inner], rest[outer], test)


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows to train on, and queries by other artists with the database they search."""

    train: Int64Array
    queries: Int64Array
    database: Int64Array


def artist_folds(
    supervision: Supervision, rows: Int64Array, n_folds: int, most_queries: int, rng: np.random.Generator
) -> Iterator[Fold]:
    """Yield folds of whole artists; each artist is held out once, with at most `most_queries` queries per fold."""
    groups = np.asarray(supervision.groups)
    names = rng.permutation(np.unique(groups[rows]))
    for part in np.array_split(names, min(n_folds, len(names))):
        is_held_out = np.isin(groups[rows], part)
        held_out, train = rows[is_held_out], rows[~is_held_out]
        queries = whole_groups(supervision.groups, held_out, most_queries)
        yield Fold(train, queries, held_out if supervision.searches_itself else train)


def whole_groups(groups: Sequence[str], rows: Int64Array, most: int) -> Int64Array:
    """Sample at most `most` rows with a fixed seed. Keep or drop whole artists, so that similar songs stay together."""
    if len(rows) <= most:
        return np.sort(rows)
    names, number, sizes = np.unique(np.asarray(groups)[rows], return_inverse=True, return_counts=True)
    order = np.random.default_rng(_SEED).permutation(len(names))
    n_kept = max(1, int(np.searchsorted(np.cumsum(sizes[order]), most, side="right")))
    return np.sort(rows[np.isin(number, order[:n_kept])])


def mean_score(scores: Float64Array) -> float:
    """Return the mean of the scores that are not nan; nan if there are none."""
    return float(np.nanmean(scores)) if np.isfinite(scores).any() else float("nan")


@dataclass(slots=True)
class LearningTask:
    """Songs, their ground truth, and the evaluation of metrics on held-out artists."""

    X: Float64Array
    supervision: Supervision
    split: Split
    settings: LearningSettings
    relevance: Relevance
    rng: np.random.Generator
    blocks: Sequence[slice]
    reduces_hubs: bool = True  # as search does in this library

    @classmethod
    def from_settings(cls, snapshot: Snapshot, settings: LearningSettings, blocks: Sequence[slice]) -> LearningTask:
        """Set up a task; `blocks` are the columns of each joined model."""
        supervision = Supervision(
            snapshot, settings.supervision, k=settings.k, threshold=settings.threshold,
            generated=settings.generated, overlap=settings.overlap,
        )  # fmt: skip
        split = Split.from_groups(supervision.groups, settings.random_state)
        rng = np.random.default_rng(settings.random_state)
        X = np.asarray(snapshot.X, dtype=np.float64)
        reduces_hubs = snapshot.library.settings["hub_reduction"]
        return cls(X, supervision, split, settings, supervision.relevance(split.train), rng, blocks, reduces_hubs)

    @property
    def has_kernels(self) -> bool:
        """True if the metric has one block per joined model; a diagonal metric does not need blocks."""
        return bool(self.blocks) and (self.settings.structure, self.settings.regularizer) == ("full", "trace")

    @property
    def evidence(self) -> str:
        """Plural noun for the supervision, such as "plays"."""
        return TRAINING_KINDS[self.supervision.kind].evidence

    def queries(self, rows: Int64Array, most: int) -> tuple[Int64Array, Int64Array]:
        """Return at most `most` held-out queries, sampled from the queries with a relevant song, and their database."""
        queries = rows
        if len(rows) > most:
            shuffled = self.rng.permutation(rows)
            useful = list(islice((row for row in shuffled if len(self.relevance.relevant(row))), most))
            queries = np.sort(useful or shuffled[:most])
        return queries, (rows if self.supervision.searches_itself else self.split.train)

    def score(self, L: Float64Array | None, queries: Int64Array, database: Int64Array) -> float:
        """Return the mean score by the measure in `loss`, under the metric L or under plain distance."""
        relevance = self.relevance.restrict(queries, database)
        return mean_score(self.score_queries(L, queries, database, relevance)[self.settings.loss])

    def score_queries(
        self, L: Float64Array | None, queries: Int64Array, database: Int64Array, judgments: Relevance
    ) -> dict[str, Float64Array]:
        """Return the scores of queries as search would rank the database under the metric L, or plain distance."""
        Y = self.X if L is None else self.X @ L.T
        return score_search(Y, queries, database, judgments, reduce_hubs=self.reduces_hubs)


def what_changed(
    snapshot: Snapshot,
    settings: LearningSettings,
    before: Float64Array,
    after: Float64Array,
    leads: dict[str, Lead],
    n_shuffled: int,
) -> dict[str, Any]:
    """Return the common part of all reports: settings, verdict and changes in the vectors.

    A model is not better if its gain was not compared with that of a training on shuffled evidence.
    """
    ids = snapshot.row_ids.tolist()
    return {
        "version": __version__,
        "settings": asdict(settings),
        "n_songs": len(ids),
        "leads": {measure: render_lead(lead) for measure, lead in leads.items()},
        "n_shuffled": n_shuffled,
        "is_better": n_shuffled > 0 and is_better(leads),
        "hubness": {"before": space_hubness(before), "after": space_hubness(after)},
        "changed": [
            {"query": ids[q], "before": [ids[i] for i in a], "after": [ids[i] for i in b]}
            for q, a, b in find_changed_queries(before, after)
        ],
    }


def sample_songs(task: LearningTask, rows: Int64Array) -> Int64Array:
    """Return the rows, or a sample of them if there are too many for a fit."""
    most = MAX_OF_KERNELS if task.has_kernels else MAX_SONGS
    return rows if len(rows) <= most else np.sort(task.rng.permutation(rows)[:most])


def choose_training_songs(task: LearningTask) -> tuple[Int64Array, Relevance]:
    """Return the training songs and their ground truth; raises ModelError if there is too little data."""
    train = sample_songs(task, task.split.train)
    relevance = task.supervision.relevance_among(train)
    if not any(len(relevance.relevant(i)) and len(relevance.irrelevant(i)) for i in range(len(relevance))):
        raise ModelError(
            f"none of the {len(train)} training songs has both a similar and a dissimilar song according to "
            f"{task.settings.supervision}. Add music, or choose a different ground truth."
        )
    return train, relevance


def choose_validation_queries(task: LearningTask, most: int) -> tuple[Int64Array, Int64Array, float]:
    """Return validation queries, their database and the score of plain distance; raises ModelError if that is NaN."""
    queries, database = task.queries(task.split.validation, most)
    untrained = task.score(None, queries, database)
    if not np.isfinite(untrained):
        raise make_no_example_error(task)
    return queries, database, untrained


def make_no_example_error(task: LearningTask) -> ModelError:
    """Return the error for a task in which no held-out query can be evaluated."""
    return ModelError(
        f"according to {task.settings.supervision}, no held-out song has both a similar and a dissimilar song among "
        "the songs it is compared with, so no setting can be chosen. Add examples or music, or change the ground truth."
    )


def describe_task(task: LearningTask) -> dict[str, Any]:
    """Return the part of the report about the ground truth, the split, and each joined model on its own."""
    groups = np.asarray(task.supervision.groups)
    queries, database = task.queries(task.split.test, MAX_TESTED)
    parts = {name: getattr(task.split, name) for name in ("train", "validation", "test")}
    return {
        "detail": task.supervision.detail,
        "n_artists": len(np.unique(groups)),
        "split": {n: {"songs": len(rows), "artists": len(np.unique(groups[rows]))} for n, rows in parts.items()},
        "alone": [task.score(np.eye(task.X.shape[1])[block], queries, database) for block in task.blocks],
    }
