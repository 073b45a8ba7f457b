"""What a training is asked for, and its songs: parted by artist, with who is similar to whom among them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from musicsim import __version__
from musicsim.errors import ModelError
from musicsim.evaluation import ArtistSplit, query_scores
from musicsim.explorer.learning.supervision import ANSWERS, Supervision
from musicsim.explorer.learning.verdict import ORDER, Lead, changed_queries, is_better, space_hubness
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.relevance import Relevance

__all__ = [
    "AUTOMATIC",
    "CS",
    "LOCAL",
    "LOSSES",
    "MAX_TESTED",
    "MAX_VALIDATED",
    "MEAN",
    "METHODS",
    "RANKING",
    "FloatArray",
    "LearningSettings",
    "Rows",
    "Task",
    "Watcher",
    "about",
    "sampled",
    "to_choose_on",
    "to_learn_from",
    "what_changed",
]

CS = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)
"""Values of C that are tried, from weak to strong."""

LOSSES = {
    "auc": "AUC: the whole ranking",
    "map": "MAP: the order, from the top",
    "ndcg": "NDCG: the first few, the top counts most",
    "mrr": "MRR: the first right song",
    "precision": "P@k: how many of the first few are right",
    ORDER: "the order of pairs, as answers give it",
}
"""What a ranking is judged by while learning, in words; the last is of answers only."""
AUTOMATIC, RANKING, MEAN, LOCAL = "automatic", "ranking", "mean", "local"
METHODS = {
    AUTOMATIC: "automatic: what is best on held-out artists, or nothing",
    RANKING: "a ranking, step by step (MLR)",
    MEAN: "in closed form, in seconds (GMML)",
    LOCAL: "the same by region of songs (L-GMML)",
}
"""How a metric is learned, in words."""
MAX_VALIDATED = 300  # queries, where each may have a metric of its own, or lines are watched
MAX_TESTED = 2_000
_MAX_SONGS = 4_000  # of a fit: a cut takes half a second then
_MAX_OF_KERNELS = (
    1_500  # of a fit with a kernel for each of several models: its decomposition takes a second then
)
_MIN_ARTISTS = 5

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LearningSettings:
    """How a metric is learned.

    Attributes
    ----------
    method : str
        One of :data:`METHODS`; by default automatic, but a ranking from answers, or where a C, a structure or a
        regularizer is given. What is said below of losses, C and structure is of rankings; a metric in closed form is
        judged by the measure of the loss, and has the others not.
    supervision : str
        One of :data:`musicsim.explorer.learning.supervision.KINDS`.
    on : sequence of str
        Names of the models whose vectors are taken; none for the native one. Of several a full metric has a block each:
        they are the kernels of :class:`musicsim.metric.MultipleKernelMLR` and
        :class:`musicsim.order.PartialOrderEmbedding` (:mod:`musicsim.explorer.learning.multi_kernel`).
    loss, structure, regularizer
        As of :class:`musicsim.metric.MLR`; or "order", for answers: that of
        :class:`musicsim.order.LinearPartialOrderEmbedding`.
    C : float or None
        None chooses among :data:`CS` on held-out artists.
    k, threshold, generated
        As of :class:`musicsim.explorer.learning.supervision.Supervision`.
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
    method: str = ""
    generated: bool = False

    def __post_init__(self) -> None:
        # one name is what older versions kept
        names = filter(None, (self.on,) if isinstance(self.on, str) else self.on)
        object.__setattr__(self, "on", tuple(dict.fromkeys(names)))
        if self.loss not in LOSSES:
            raise ValueError(f"loss={self.loss!r} should be one of {', '.join(LOSSES)}.")
        if self.loss == ORDER and self.supervision != ANSWERS:
            raise ValueError(
                f"loss={self.loss!r} is for answers; {self.supervision} says what is similar, not in "
                "which order."
            )
        if not self.method:
            is_ranking = self.supervision == ANSWERS or self.C is not None
            is_ranking |= (self.structure, self.regularizer) != ("full", "trace")
            object.__setattr__(self, "method", RANKING if is_ranking else AUTOMATIC)
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
class Split:
    train: Rows
    validation: Rows
    test: Rows

    @classmethod
    def by_artist(cls, groups: Sequence[str], random_state: int) -> "Split":
        """40 : 30 : 30 by artist."""
        names = np.asarray(groups)
        if len(np.unique(names)) < _MIN_ARTISTS:
            raise ModelError(
                f"{len(np.unique(names))} artists are too few to hold some out: a model is only trained where there "
                f"are at least {_MIN_ARTISTS} to judge it by."
            )
        rest, test = next(ArtistSplit(1, 0.3, random_state).split(names, groups=names))
        inner, outer = next(ArtistSplit(1, 3 / 7, random_state + 1).split(rest, groups=names[rest]))
        return cls(rest[inner], rest[outer], test)


@dataclass(slots=True)
class Task:
    """The songs, who is similar to whom, and how good a space is on held-out artists."""

    X: FloatArray
    supervision: Supervision
    split: Split
    settings: LearningSettings
    relevance: Relevance
    rng: np.random.Generator
    blocks: Sequence[slice]

    @classmethod
    def of(cls, snapshot: Snapshot, settings: LearningSettings, blocks: Sequence[slice]) -> "Task":
        supervision = Supervision(
            snapshot,
            settings.supervision,
            k=settings.k,
            threshold=settings.threshold,
            generated=settings.generated,
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
        scores = query_scores(Y[queries], Y[database], relevance, k=10)[self.settings.loss]
        return float(np.nanmean(scores)) if np.isfinite(scores).any() else float("nan")


def what_changed(
    snapshot: Snapshot,
    settings: LearningSettings,
    before: FloatArray,
    after: FloatArray,
    leads: dict[str, Lead],
) -> dict[str, Any]:
    """What every report says: the settings, whether it is better, and what it changed of the songs' vectors."""
    songs = snapshot.indexed
    return {
        "version": __version__,
        "settings": asdict(settings),
        "n_songs": len(songs),
        "leads": {measure: asdict(lead) for measure, lead in leads.items()},
        "is_better": is_better(leads, settings.loss),
        "hubness": {"before": space_hubness(before), "after": space_hubness(after)},
        "changed": [
            {"query": songs[q].id, "before": [songs[i].id for i in a], "after": [songs[i].id for i in b]}
            for q, a, b in changed_queries(before, after)
        ],
    }


def sampled(task: Task, rows: Rows) -> Rows:
    most = _MAX_OF_KERNELS if task.has_kernels else _MAX_SONGS
    return rows if len(rows) <= most else np.sort(task.rng.permutation(rows)[:most])


def to_learn_from(task: Task) -> tuple[Rows, Relevance]:
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

    Raises
    ------
    ModelError
        If none of the queries can be judged: then no setting is better than another.
    """
    queries, database = task.queries(task.split.validation, most)
    untrained = task.score(None, queries, database)
    if not np.isfinite(untrained):
        raise ModelError(
            f"no held-out song has both a similar and a dissimilar one by {task.settings.supervision} "
            "among the songs it searches, so that no setting can be chosen. Add examples or music, or "
            "choose another ground truth."
        )
    return queries, database, untrained


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
