"""Ours against theirs: the sound, somebody's embedding, and what is learned on each, compared on the same queries.

Protocol. The artists are parted into five folds. The songs of a fold are queries, and search the songs of all other
artists (where what is relevant goes with the artist or folder: the songs of their fold, of which there are then three).
What is learned is learned from the songs of the other folds alone, by metric learning to rank, whose C is chosen on
artists held out among these; where no C is surely better there, the vectors stay as they are. All rows have the same
songs, queries and ground truth. Intervals are those of paired differences, over resampled artists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from musicsim import evaluation
from musicsim._arrays import BoolArray, Float64Array, Int64Array
from musicsim.errors import ModelError
from musicsim.explorer.evaluation.quality import Figure, K, figure_of
from musicsim.explorer.learning.automatic import learn_ranking
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.learning.task import MIN_ARTISTS, Fold, Quiet, Split, Task, artist_folds
from musicsim.explorer.learning.verdict import MEASURES, RANKED, Lead, fallen, lead_words, leads_of, listed
from musicsim.explorer.requests.training import LearningSettings
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.library import Library
from musicsim.library.stores.models import ModelRecord
from musicsim.progress import Progress, no_progress

_FOLDS, _FOLDS_OF_ITSELF = 5, 3
_MAX_QUERIES = 2_000
_SEED = 0


@dataclass(frozen=True, slots=True)
class Row:
    """One way to compare songs, and how well it ranks."""

    name: str
    figures: dict[str, Figure]  # by measure, as of Scores
    note: str = ""  # what is to be known of it, in words


@dataclass(frozen=True, slots=True)
class Difference:
    """Two rows on the same queries."""

    name: str
    other: str
    leads: dict[str, Lead]  # by measure: `before` is the other's; empty where there are too few artists

    @property
    def words(self) -> str:
        """The verdict in a sentence."""
        if not self.leads:
            return f"{self.name} and {self.other} cannot be compared: too few artists have similar songs here."
        rose = [name for name, lead in self.leads.items() if lead.low > 0]
        fell = fallen(self.leads)
        if not rose and not fell:
            closest = lead_words("map", self.leads["map"])
            return f"No difference between {self.name} and {self.other} is shown: {closest}."
        if rose and fell:
            return (
                f"{self.name} is better than {self.other} by {_said(rose)}, and worse by {_said(fell)}: "
                f"{listed([lead_words(name, self.leads[name]) for name in (rose[0], fell[0])])}."
            )
        verdict, sure = ("better", rose) if rose else ("worse", fell)
        first = "map" if "map" in sure else sure[0]
        others = [name for name in sure if name != first]
        also = f"; by {_said(others)}, too" if others else ""
        return f"{self.name} is {verdict} than {self.other}: {lead_words(first, self.leads[first])}{also}."


@dataclass(frozen=True, slots=True)
class Against:
    """A model against the sound of a library, each with what is learned on it."""

    kind: str  # what says that songs are similar
    detail: str
    rows: list[Row]
    differences: list[Difference]  # of the rows that were not trained on the queries' artists
    n_songs: int  # that all rows have a vector of
    n_left_out: int  # songs with sound that have none of theirs
    n_queries: int
    n_artists: int  # of the queries
    n_folds: int

    @property
    def words(self) -> str:
        """What was done, in two sentences."""
        lacking = f"; {self.n_left_out:,} songs without a vector take no part" if self.n_left_out else ""
        return (
            f"{self.n_queries:,} query songs by {self.n_artists:,} artists among {self.n_songs:,} songs{lacking}. "
            f"{self.n_folds} folds of whole artists: what is learned never hears a query's artist."
        )


def compare_with(library: Library, name: str, kind: str, progress: Progress = no_progress) -> Against:
    """Compare a model, such as an embedding that was brought, with the sound of a library by one protocol.

    Parameters
    ----------
    name : str
        Of the model.
    kind : str
        What says that songs are similar; one of :data:`musicsim.explorer.requests.training.KINDS`.
    progress : Progress, optional
        Told what is being done, how much of it, and of how much.

    Returns
    -------
    Against
        Rows: the sound, learned on it, the model, learned on it; and the model in use where that is a learned one,
        which has heard the queries' artists.

    Raises
    ------
    ModelError
        If the model is the sound itself or a learned one, or there are too few songs, artists, or nothing that says
        which songs are similar.
    NotFoundError
        If there is no model of the name.

    Notes
    -----
    A minute for 300 songs, of which learning is all; C is chosen on 1,500 songs of a fold at most, and 2,000 queries
    are asked. Memory: 16 bytes times songs times dimensions of all rows.
    """
    progress("reading listener data", 0, 0)
    record, native = library.models.named(name), library.models.native()
    if native is None or record not in comparable(library):
        raise ModelError(
            f"{name!r} cannot be compared with the sound: name a model that is neither the built-in Sound nor a "
            "learned one, such as vectors of your own."
        )
    ours, theirs = (take_snapshot(library, one.id) for one in (native, record))
    supervision = Supervision(ours, kind)
    spaces = {native.name: _space(ours, ours), record.name: _space(ours, theirs)}
    notes, in_use = {}, library.models.active()
    if in_use is not None and _is_learned(in_use):
        heard = f"{in_use.name}, in use"
        spaces[heard] = _space(ours, take_snapshot(library, in_use.id))
        notes[heard] = "it was trained on these very artists, so its figures are too high"
    rows = np.flatnonzero(np.logical_and.reduce([has_one for _, has_one in spaces.values()]))
    folds = _folds(supervision, rows)
    learned_on = (native.name, record.name)
    parts, n_learned = _scored({own: X for own, (X, _) in spaces.items()}, learned_on, supervision, folds, progress)
    notes |= {_learned(own): _kept_note(len(folds) - n, len(folds)) for own, n in n_learned.items()}
    scores = {
        own: {measure: np.concatenate([part[measure] for part in found]) for measure in RANKED}
        for own, found in parts.items()
    }
    groups = [supervision.groups[q] for fold in folds for q in fold.queries]
    counted = np.isfinite(scores[native.name]["auc"])
    if not counted.any():
        raise ModelError(f"no held-out song has a similar and a dissimilar one by {kind}: choose another ground truth.")
    artists = [group for group, counts in zip(groups, counted, strict=True) if counts]
    order = our, our_learned, their, their_learned = tuple(
        called for own in learned_on for called in (own, _learned(own))
    )
    differences = [
        Difference(own, other, leads_of(scores[other], scores[own], groups, _SEED))
        for own, other in (
            (their, our), (their_learned, our_learned), (their_learned, their), (our_learned, our),
            (their, our_learned), (their_learned, our),
        )
    ]  # fmt: skip
    table = [
        Row(own, {m: figure_of(scores[own][m][counted], artists, _SEED) for m in RANKED}, notes.get(own, ""))
        for own in (*order, *(own for own in scores if own not in order))
    ]
    return Against(
        kind,
        supervision.detail,
        table,
        differences,
        n_songs=len(rows),
        n_left_out=ours.n_indexed - len(rows),
        n_queries=len(artists),
        n_artists=len(set(artists)),
        n_folds=len(folds),
    )


def _scored(
    spaces: dict[str, Float64Array],
    learned_on: Sequence[str],
    supervision: Supervision,
    folds: Sequence[Fold],
    progress: Progress,
) -> tuple[dict[str, list[dict[str, Float64Array]]], dict[str, int]]:
    """Scores of the queries of each fold, by space and what is learned on it; and in how many folds it is."""
    scores: dict[str, list[dict[str, Float64Array]]] = {}
    n_learned = dict.fromkeys(learned_on, 0)
    for number, fold in enumerate(folds):
        for own, X in spaces.items():
            scores.setdefault(own, []).append(_scores(supervision, X, fold))
            if own not in n_learned:
                continue
            words = f"learning, fold {number + 1} of {len(folds)}"
            done, total = sum(map(len, scores.values())), len(folds) * (len(spaces) + len(learned_on))
            L = learn_ranking(_task(supervision, X, fold), Quiet(_constant(progress, words, done, total)))
            n_learned[own] += L is not None
            learned = X if L is None else X @ L.T
            scores.setdefault(_learned(own), []).append(_scores(supervision, learned, fold))
    return scores, n_learned


def _constant(progress: Progress, message: str, done: int, total: int) -> Progress:
    """Return a progress that stays where it is."""

    def report(_message: str, _done: int = 0, _total: int = 0, /, **_facts: Any) -> None:
        progress(message, done, total)

    return report


def comparable(library: Library) -> list[ModelRecord]:
    """The models that :func:`compare_with` compares with the sound, vectors that were brought first."""
    native = library.models.native()
    found = [r for r in library.models.all() if native is not None and r.id != native.id and not _is_learned(r)]
    return sorted(found, key=lambda record: not record.settings.get("vectors"))


def _is_learned(record: ModelRecord) -> bool:
    return "supervision" in record.settings


def _learned(name: str) -> str:
    return f"{name}, learned"


def _kept_note(n_kept: int, n_folds: int) -> str:
    words = "vectors as they are: no metric was surely better there"
    return f"in {n_kept} of {n_folds} folds {words}" if n_kept else ""


def _space(ours: Snapshot, of: Snapshot) -> tuple[Float64Array, BoolArray]:
    """Vectors of a model in the rows of the sound's snapshot, float64 (n, d), and whether a song has one, (n,)."""
    rows = ours.rows_of(of.row_ids)
    X, has_one = np.zeros((ours.n_indexed, of.X.shape[1])), np.zeros(ours.n_indexed, dtype=np.bool_)
    X[rows[rows >= 0]] = of.X[rows >= 0]
    has_one[rows[rows >= 0]] = True
    return X, has_one


def _folds(supervision: Supervision, rows: Int64Array) -> list[Fold]:
    n_artists = len(np.unique(np.asarray(supervision.groups)[rows]))
    if n_artists < MIN_ARTISTS:
        raise ModelError(
            f"songs of {n_artists} artists have a vector of each model; at least {MIN_ARTISTS} artists are needed, to "
            "hold some out."
        )
    n_folds = _FOLDS_OF_ITSELF if supervision.searches_itself else _FOLDS
    rng = np.random.default_rng(_SEED)
    return list(artist_folds(supervision, rows, n_folds, _MAX_QUERIES // n_folds, rng))


def _scores(supervision: Supervision, X: Float64Array, fold: Fold) -> dict[str, Float64Array]:
    relevance = supervision.relevance(fold.database).restrict(fold.queries, fold.database)
    return evaluation.query_scores(X[fold.queries], X[fold.database], relevance, K)


def _task(supervision: Supervision, X: Float64Array, fold: Fold) -> Task:
    nothing = np.empty(0, dtype=np.int64)
    return Task(
        X, supervision, Split(fold.train, nothing, fold.queries), LearningSettings(supervision.kind, loss="auc"),
        supervision.relevance(fold.train), np.random.default_rng(_SEED), (),
    )  # fmt: skip


def _said(measures: Sequence[str]) -> str:
    return listed([MEASURES[name] for name in measures])
