"""What a training is asked for, and its songs: parted by artist, with who is similar to whom among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np

from musicsim import __version__, evaluation, relevance
from musicsim._arrays import Float64Array, Int64Array
from musicsim.errors import ModelError
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.learning.verdict import Lead, changed_queries, is_better, space_hubness
from musicsim.explorer.requests.training import LearningSettings
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.progress import Progress

CS = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)
"""Values of C that are tried, from weak to strong."""

MAX_VALIDATED = 300  # queries, where each may have a metric of its own, or lines are watched
MAX_TESTED = 2_000
MAX_SONGS = 4_000  # of a fit: a cut takes half a second then
MAX_OF_KERNELS = 1_500  # of a fit with a kernel for each of several models: its decomposition takes a second then
MIN_ARTISTS = 5
_SEED = 0

FloatArray = Float64Array
Rows = Int64Array


class TrainingProgress(Progress, Protocol):
    """The progress of a training, which can also be drawn as lines and ended early."""

    def trace(self, point: dict[str, Any]) -> None:
        """Keep a point of the live lines."""

    def is_enough(self) -> bool:
        """Whether to stop here and keep the best so far."""


class Quiet:
    """A training progress without lines and without an early end."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __call__(self, message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
        """Pass the progress on."""
        self._progress(message, done, total, **facts)

    def trace(self, point: dict[str, Any]) -> None:
        """Ignore the point."""

    def is_enough(self) -> bool:
        """Return False."""
        return False


@dataclass(frozen=True, slots=True)
class Split:
    train: Rows
    validation: Rows
    test: Rows

    @classmethod
    def by_artist(cls, groups: Sequence[str], random_state: int) -> Split:
        """40 : 30 : 30 by artist."""
        names = np.asarray(groups)
        if len(np.unique(names)) < MIN_ARTISTS:
            raise ModelError(
                f"{len(np.unique(names))} artists are too few to hold some out: a model is only trained where there "
                f"are at least {MIN_ARTISTS} to judge it by."
            )
        rest, test = next(evaluation.ArtistSplit(1, 0.3, random_state).split(names, groups=names))
        inner, outer = next(evaluation.ArtistSplit(1, 3 / 7, random_state + 1).split(rest, groups=names[rest]))
        return cls(rest[inner], rest[outer], test)


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows to learn from, and queries of other artists with the database they search."""

    train: Rows
    queries: Rows
    database: Rows


def artist_folds(
    supervision: Supervision, rows: Rows, n_folds: int, most_queries: int, rng: np.random.Generator
) -> Iterator[Fold]:
    """Rows in so many parts of whole artists, each held out in its turn, with at most so many queries of it."""
    groups = np.asarray(supervision.groups)
    names = rng.permutation(np.unique(groups[rows]))
    for part in np.array_split(names, min(n_folds, len(names))):
        is_out = np.isin(groups[rows], part)
        held_out, train = rows[is_out], rows[~is_out]
        queries = whole_groups(supervision.groups, held_out, most_queries)
        yield Fold(train, queries, held_out if supervision.searches_itself else train)


def whole_groups(groups: Sequence[str], rows: Rows, most: int) -> Rows:
    """Rows of as many artists as come to so many songs, drawn with a fixed seed; a song alone teaches nothing."""
    if len(rows) <= most:
        return np.sort(rows)
    names, number, sizes = np.unique(np.asarray(groups)[rows], return_inverse=True, return_counts=True)
    order = np.random.default_rng(_SEED).permutation(len(names))
    n_kept = max(1, int(np.searchsorted(np.cumsum(sizes[order]), most, side="right")))
    return np.sort(rows[np.isin(number, order[:n_kept])])


@dataclass(slots=True)
class Task:
    """The songs, who is similar to whom, and how good a space is on held-out artists."""

    X: FloatArray
    supervision: Supervision
    split: Split
    settings: LearningSettings
    relevance: relevance.Relevance
    rng: np.random.Generator
    blocks: Sequence[slice]

    @classmethod
    def of(cls, snapshot: Snapshot, settings: LearningSettings, blocks: Sequence[slice]) -> Task:
        supervision = Supervision(
            snapshot, settings.supervision, k=settings.k, threshold=settings.threshold, generated=settings.generated
        )
        split = Split.by_artist(supervision.groups, settings.random_state)
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
        """Held-out queries, at most so many, and the database they search.

        Of more, a sample of those that have a similar song, as thumbs speak of few.
        """
        some = rows
        if len(rows) > most:
            drawn = self.rng.permutation(rows)
            judged = list(islice((row for row in drawn if len(self.relevance.relevant(row))), most))
            some = np.sort(judged or drawn[:most])
        return some, (rows if self.supervision.searches_itself else self.split.train)

    def score(self, L: FloatArray | None, queries: Rows, database: Rows) -> float:
        """Mean of the loss's own measure, of the space under L or of plain distance."""
        Y = self.X if L is None else self.X @ L.T
        relevance = self.relevance.restrict(queries, database)
        scores = evaluation.query_scores(Y[queries], Y[database], relevance, k=10)[self.settings.loss]
        return float(np.nanmean(scores)) if np.isfinite(scores).any() else float("nan")


def what_changed(
    snapshot: Snapshot, settings: LearningSettings, before: FloatArray, after: FloatArray, leads: dict[str, Lead]
) -> dict[str, Any]:
    """What every report says: the settings, whether it is better, and what it changed of the songs' vectors."""
    ids = snapshot.row_ids.tolist()
    return {
        "version": __version__,
        "settings": asdict(settings),
        "n_songs": len(ids),
        "leads": {measure: asdict(lead) for measure, lead in leads.items()},
        "is_better": is_better(leads, settings.loss),
        "hubness": {"before": space_hubness(before), "after": space_hubness(after)},
        "changed": [
            {"query": ids[q], "before": [ids[i] for i in a], "after": [ids[i] for i in b]}
            for q, a, b in changed_queries(before, after)
        ],
    }


def sampled(task: Task, rows: Rows) -> Rows:
    most = MAX_OF_KERNELS if task.has_kernels else MAX_SONGS
    return rows if len(rows) <= most else np.sort(task.rng.permutation(rows)[:most])


def to_learn_from(task: Task) -> tuple[Rows, relevance.Relevance]:
    """The songs to learn from, and who is similar to whom among them."""
    train = sampled(task, task.split.train)
    relevance = task.supervision.relevance(train).restrict(train, train)
    if not any(len(relevance.relevant(i)) and len(relevance.irrelevant(i)) for i in range(len(relevance))):
        raise ModelError(
            f"among the {len(train)} songs to learn from, no two are similar by "
            f"{task.settings.supervision} while others are not. Add music, or choose another ground truth."
        )
    return train, relevance


def to_choose_on(task: Task, most: int) -> tuple[Rows, Rows, float]:
    """Queries by held-out artists that settings are chosen on, their database, and what plain distance comes to there.

    Raises ModelError if none of the queries can be judged: then no setting is better than another.
    """
    queries, database = task.queries(task.split.validation, most)
    untrained = task.score(None, queries, database)
    if not np.isfinite(untrained):
        raise no_example(task)
    return queries, database, untrained


def no_example(task: Task) -> ModelError:
    """What to raise where no held-out query can be judged."""
    return ModelError(
        f"no held-out song has both a similar and a dissimilar one by {task.settings.supervision} "
        "among the songs it searches, so that no setting can be chosen. Add examples or music, or "
        "choose another ground truth."
    )


def about(task: Task) -> dict[str, Any]:
    """What the report says of the supervision and the split, and how good each of several models is alone."""
    groups = np.asarray(task.supervision.groups)
    queries, database = task.queries(task.split.test, MAX_TESTED)
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
