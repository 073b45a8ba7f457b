"""Comparison of the model Sound with another model, such as an embedding, each before and after training.

The artists are split into five folds. The songs in a fold are queries that search the songs by all other artists. If
the ground truth depends on the artist or folder, there are three folds, and queries search only their own fold. Metric
learning to rank is trained on the other folds, where C is chosen on held-out artists; the original vectors are kept if
no C is significantly better. All rows use the same songs, queries and ground truth. The intervals of paired
differences are computed by resampling artists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from musicsim._arrays import BoolArray, Float64Array, Int64Array
from musicsim.errors import ModelError
from musicsim.explorer import (
    MIN_ARTISTS,
    PRECISION_K,
    RANKING_MEASURES,
    VERDICT_MEASURES,
    Figure,
    Fold,
    Lead,
    LearningSettings,
    LearningTask,
    Quiet,
    Snapshot,
    Split,
    Supervision,
    artist_folds,
    figure_of,
    find_losses,
    lead_words,
    leads_of,
    learn_ranking,
    score_search,
    take_snapshot,
)
from musicsim.library import Library, ModelRecord
from musicsim.progress import Progress, no_progress
from musicsim.wording import join_words

_FOLDS, _FOLDS_OF_ITSELF = 5, 3
_MAX_QUERIES = 2_000
_SEED = 0
_NOT_LEARNED = "the original vectors were kept, because no metric was significantly better"


@dataclass(frozen=True, slots=True)
class ComparedRow:
    name: str
    figures: dict[str, Figure]  # maps each measure to a score
    note: str = ""  # a caveat


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two rows of a comparison, on the same queries."""

    name: str
    other: str
    leads: dict[str, Lead]  # maps each measure to the lead over the other row; empty if there are too few artists

    @property
    def summary(self) -> str:
        if not self.leads:
            return f"{self.name} and {self.other} cannot be compared: the ground truth covers too few artists."
        better = [name for name, lead in self.leads.items() if lead.low > 0]
        worse = find_losses(self.leads)
        if not better and not worse:
            closest = lead_words("map", self.leads["map"])
            return f"No significant difference between {self.name} and {self.other}: {closest}."
        if better and worse:
            return (
                f"{self.name} is better than {self.other} on {_list_measures(better)}, but worse on "
                f"{_list_measures(worse)}: "
                f"{join_words([lead_words(name, self.leads[name]) for name in (better[0], worse[0])])}."
            )
        verdict, shown = ("better", better) if better else ("worse", worse)
        first = "map" if "map" in shown else shown[0]
        others = [name for name in shown if name != first]
        also = f"; also on {_list_measures(others)}" if others else ""
        return f"{self.name} is {verdict} than {self.other}: {lead_words(first, self.leads[first])}{also}."


@dataclass(frozen=True, slots=True)
class Against:
    """A comparison of a model with Sound, each before and after training."""

    kind: str  # kind of ground truth
    detail: str
    rows: list[ComparedRow]
    differences: list[Difference]  # differences between rows that were not trained on the queries' artists
    n_songs: int  # number of songs with a vector in every model
    n_left_out: int  # number of songs with a vector in Sound but not in every other model
    n_queries: int
    n_artists: int  # number of artists of the queries
    n_folds: int

    @property
    def summary(self) -> str:
        left_out = f"; {self.n_left_out:,} songs without a vector are left out" if self.n_left_out else ""
        return (
            f"{self.n_queries:,} query songs by {self.n_artists:,} artists, among {self.n_songs:,} songs{left_out}. "
            f"The artists are split into {self.n_folds} folds, so training never uses a query's artist."
        )


def compare_with(library: Library, name: str, kind: str, progress: Progress = no_progress) -> Against:
    """Compare a model, such as an imported embedding, with a library's model Sound, each before and after training.

    `kind` is the kind of ground truth. A trained active model is added, although it may have been trained on the
    queries' artists. Raises ModelError if `name` is Sound or a trained model, or if there are too few songs.
    """
    progress("reading listener data", 0, 0)
    record, native = library.models.find(name), library.models.native()
    if native is None or record not in comparable(library):
        raise ModelError(
            f"{name!r} cannot be compared with Sound. Use a model that is neither Sound nor a trained model, such as "
            "your own vectors."
        )
    ours, theirs = (take_snapshot(library, one.id) for one in (native, record))
    supervision = Supervision(ours, kind)
    spaces = {native.name: _space(ours, ours), record.name: _space(ours, theirs)}
    notes, in_use = {}, library.models.active()
    if in_use is not None and "supervision" in in_use.settings:  # the active model was trained
        label = f"{in_use.name}, in use"
        spaces[label] = _space(ours, take_snapshot(library, in_use.id))
        notes[label] = "the model was trained on the same artists, so its scores are too high"
    rows = np.flatnonzero(np.logical_and.reduce([has_vector for _, has_vector in spaces.values()]))
    folds = _folds(supervision, rows)
    learned_on = (native.name, record.name)
    score = partial(_scores, supervision, reduces_hubs=library.settings["hub_reduction"])
    vectors = {own: X for own, (X, _) in spaces.items()}
    parts, n_learned = _score_folds(vectors, learned_on, supervision, folds, score, progress)
    for own, n in n_learned.items():
        if n < len(folds):
            notes[_label_learned(own)] = f"in {len(folds) - n} of {len(folds)} folds, {_NOT_LEARNED}"
    scores = {
        own: {measure: np.concatenate([part[measure] for part in own_parts]) for measure in RANKING_MEASURES}
        for own, own_parts in parts.items()
    }
    groups = [supervision.groups[q] for fold in folds for q in fold.queries]
    is_counted = np.isfinite(scores[native.name]["auc"])
    if not is_counted.any():
        raise ModelError(
            f"according to {kind}, no held-out song has both similar and dissimilar songs. Choose another ground truth."
        )
    artists = [group for group, counts in zip(groups, is_counted, strict=True) if counts]
    our, their = learned_on
    our_learned, their_learned = map(_label_learned, learned_on)
    order = (our, our_learned, their, their_learned)
    pairs = (
        (their, our), (their_learned, our_learned), (their_learned, their), (our_learned, our),
        (their, our_learned), (their_learned, our),
    )  # fmt: skip
    table = [
        ComparedRow(
            own, {m: figure_of(scores[own][m][is_counted], artists) for m in RANKING_MEASURES}, notes.get(own, "")
        )
        for own in (*order, *(own for own in scores if own not in order))
    ]
    return Against(
        kind,
        supervision.detail,
        table,
        [Difference(own, other, leads_of(scores[other], scores[own], groups, _SEED)) for own, other in pairs],
        n_songs=len(rows),
        n_left_out=ours.n_indexed - len(rows),
        n_queries=len(artists),
        n_artists=len(set(artists)),
        n_folds=len(folds),
    )


def _score_folds(
    spaces: dict[str, Float64Array],
    learned_on: Sequence[str],
    supervision: Supervision,
    folds: Sequence[Fold],
    score: Callable[[Float64Array, Fold], dict[str, Float64Array]],
    progress: Progress,
) -> tuple[dict[str, list[dict[str, Float64Array]]], dict[str, int]]:
    """Return each fold's scores, before and after training, and in how many folds training improved each model."""
    scores: dict[str, list[dict[str, Float64Array]]] = {}
    n_learned = dict.fromkeys(learned_on, 0)
    for number, fold in enumerate(folds):
        for own, X in spaces.items():
            scores.setdefault(own, []).append(score(X, fold))
            if own not in n_learned:
                continue
            message = f"training, fold {number + 1} of {len(folds)}"
            done, total = sum(map(len, scores.values())), len(folds) * (len(spaces) + len(learned_on))
            L = learn_ranking(_task(supervision, X, fold), Quiet(_constant(progress, message, done, total)))
            n_learned[own] += L is not None
            learned = X if L is None else X @ L.T
            scores.setdefault(_label_learned(own), []).append(score(learned, fold))
    return scores, n_learned


def _constant(progress: Progress, message: str, done: int, total: int) -> Progress:
    """Return a function that reports the same step on every call."""
    return lambda *_, **_facts: progress(message, done, total)


def comparable(library: Library) -> list[ModelRecord]:
    """Return the models that :func:`compare_with` accepts, imported vectors first."""
    native = library.models.native()
    unlearned = [record for record in library.models.all() if "supervision" not in record.settings]
    others = [record for record in unlearned if native is not None and record.id != native.id]
    return sorted(others, key=lambda record: not record.settings.get("vectors"))


def _label_learned(name: str) -> str:
    return f"{name}, learned"


def _space(ours: Snapshot, other: Snapshot) -> tuple[Float64Array, BoolArray]:
    """Return a model's vectors in the row order of `ours`, (n, d), and a mask of the rows with a vector, (n,)."""
    rows = ours.rows_of(other.row_ids)
    X, has_vector = np.zeros((ours.n_indexed, other.X.shape[1])), np.zeros(ours.n_indexed, dtype=np.bool_)
    X[rows[rows >= 0]] = other.X[rows >= 0]
    has_vector[rows[rows >= 0]] = True
    return X, has_vector


def _folds(supervision: Supervision, rows: Int64Array) -> list[Fold]:
    n_artists = len(np.unique(np.asarray(supervision.groups)[rows]))
    if n_artists < MIN_ARTISTS:
        raise ModelError(
            f"only {n_artists} artists have songs with a vector in each model. The comparison needs at least "
            f"{MIN_ARTISTS} artists."
        )
    n_folds = _FOLDS_OF_ITSELF if supervision.searches_itself else _FOLDS
    rng = np.random.default_rng(_SEED)
    return list(artist_folds(supervision, rows, n_folds, _MAX_QUERIES // n_folds, rng))


def _scores(supervision: Supervision, X: Float64Array, fold: Fold, *, reduces_hubs: bool) -> dict[str, Float64Array]:
    relevance = supervision.relevance(fold.database).restrict(fold.queries, fold.database)
    songs = np.union1d(fold.train, np.union1d(fold.queries, fold.database))  # other rows may lack a vector
    return score_search(X, fold.queries, fold.database, relevance, reduce_hubs=reduces_hubs, k=PRECISION_K, songs=songs)


def _task(supervision: Supervision, X: Float64Array, fold: Fold) -> LearningTask:
    nothing = np.empty(0, dtype=np.int64)
    return LearningTask(
        X, supervision, Split(fold.train, nothing, fold.queries), LearningSettings(supervision.kind, loss="auc"),
        supervision.relevance(fold.train), np.random.default_rng(_SEED), (),
    )  # fmt: skip


def _list_measures(names: Sequence[str]) -> str:
    return join_words([VERDICT_MEASURES[name] for name in names])
