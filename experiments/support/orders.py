"""Splits, model selection and table rows shared by the experiments on comparisons.

A question is one query to a listener: a comparison, or the odd one out of three songs. A part of the questions, or of
the songs, is held out. Each method's setting is chosen on a held-out part of the rest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.support.report import Row
from musicsim._arrays import Float64Array, Int64Array
from musicsim.order import PartialOrderEmbedding
from musicsim.order.comparisons import check_comparisons

__all__ = [
    "IN_ORDER",
    "TIES",
    "Method",
    "Result",
    "Space",
    "Split",
    "everything",
    "in_order",
    "kernel_learner",
    "learn_chosen",
    "levelled",
    "measure",
    "order_score",
    "points_of",
    "questions_held_out",
    "songs_held_out",
    "summary_rows",
]


IN_ORDER, TIES = "in order", "ties"
"""The first is the score that validation goes by."""
_ROUNDING = 1e-9
"""Relative to a squared distance; rounding is of some 1e-14."""


@dataclass(frozen=True, slots=True)
class Split:
    """Rows of the training songs, and of the training and test questions."""

    songs: Int64Array
    train: Int64Array
    test: Int64Array


@dataclass(frozen=True, slots=True)
class Space:
    """Points of all songs, (n_songs, r), and each kernel's share of the distances if there are kernels."""

    points: Float64Array
    kernel_weights: Float64Array | None = None


Learn = Callable[[Int64Array, Int64Array, float], Space]
"""From the rows of training songs, rows of training questions, and a setting."""
Score = Callable[[Float64Array, Int64Array], dict[str, float]]
"""From points and rows of questions."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method that learns a space; validation chooses among its settings (C, or dimensions)."""

    name: str
    learn: Learn
    settings: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """A method on one split."""

    method: str
    scores: dict[str, float]
    setting: float | None
    kernel_weights: Float64Array | None = None


# --- held-out data ------------------------------------------------------------------------------------


def everything(n_songs: int, n_questions: int) -> Split:
    """Return a split that trains on everything."""
    return Split(np.arange(n_songs), np.arange(n_questions), np.empty(0, np.int64))


def questions_held_out(
    inside: Split, groups: Int64Array, n_folds: int, random_state: int | np.random.Generator | None
) -> list[Split]:
    """Split training questions into `n_folds` parts, each held out once; all songs stay.

    Parameters
    ----------
    groups : int array of shape (n_questions,)
        Questions of a group stay together, so a repeated question is in one part only.
    """
    asked = np.unique(groups[inside.train])
    parts = np.array_split(np.random.default_rng(random_state).permutation(asked), n_folds)
    is_held = [np.isin(groups[inside.train], part) for part in parts]
    return [Split(inside.songs, inside.train[~held], inside.train[held]) for held in is_held]


def songs_held_out(
    inside: Split,
    members: Int64Array,
    n_folds: int,
    random_state: int | np.random.Generator | None,
    *,
    is_anchored: bool = False,
) -> list[Split]:
    """Split training songs into `n_folds` parts, each held out once with all questions that involve its songs.

    Parameters
    ----------
    members : int array of shape (n_questions, q)
        Songs of each question.
    is_anchored : bool
        Test only with questions whose first song is held out and whose other songs are not (thesis 2.5).
    """
    parts = np.array_split(np.random.default_rng(random_state).permutation(inside.songs), n_folds)
    splits = []
    for part in parts:
        is_new = np.isin(members[inside.train], part)
        if is_anchored:
            # a comparison lists its anchor twice
            anchor = members[inside.train][:, :1]
            tested = is_new[:, 0] & ~(is_new & (members[inside.train] != anchor)).any(axis=1)
        else:
            tested = is_new.any(axis=1)
        splits.append(Split(np.setdiff1d(inside.songs, part), inside.train[~is_new.any(axis=1)], inside.train[tested]))
    return splits


# --- methods ------------------------------------------------------------------------------------------


def levelled(K: Float64Array, songs: Int64Array) -> Float64Array:
    """Divide a kernel by the mean squared distance of the training songs, so that C means the same for all kernels."""
    inside = K[np.ix_(songs, songs)]
    spread = float(np.diag(inside).mean() - inside.mean())
    return K / (2.0 * spread) if spread > 0 else K


def points_of(K: Float64Array) -> Float64Array:
    """Return points whose inner products are the kernel."""
    values, vectors = np.linalg.eigh(K)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def kernel_learner(
    kernels: Callable[[Int64Array], Sequence[Float64Array]],
    comparisons: Callable[[Int64Array], Int64Array],
    **parameters: Any,
) -> Learn:
    """Learn a partial order embedding of kernels.

    Parameters
    ----------
    kernels : callable
        Maps training songs to kernels (n_songs, n_songs) of all songs.
    comparisons : callable
        Maps rows of questions to comparisons (m, 4).
    **parameters
        Of :class:`PartialOrderEmbedding`.
    """

    def learn(songs: Int64Array, questions: Int64Array, C: float) -> Space:
        all_songs = kernels(songs)
        place = np.full(len(all_songs[0]), -1)
        place[songs] = np.arange(len(songs))
        model = PartialOrderEmbedding(C=C, **parameters)
        model.fit(
            [K[np.ix_(songs, songs)] for K in all_songs], check_comparisons(place[comparisons(questions)], len(songs))
        )
        return Space(model.transform([K[:, songs] for K in all_songs]), model.kernel_weights_)

    return learn


def learn_chosen(method: Method, split: Split, validation: Sequence[Split], score: Score) -> tuple[Space, float | None]:
    """Choose a setting by the mean over validation splits, and learn from all training questions."""
    setting = method.settings[0] if len(method.settings) == 1 else None
    if len(method.settings) > 1:
        means = [
            np.mean([score(method.learn(s.songs, s.train, one).points, s.test)[IN_ORDER] for s in validation])
            for one in method.settings
        ]
        setting = method.settings[int(np.argmax(means))]  # ties go to the first
    return method.learn(split.songs, split.train, np.nan if setting is None else setting), setting


def measure(method: Method, split: Split, validation: Sequence[Split], score: Score) -> Result:
    """Choose a setting by the mean over validation splits, learn from all training questions, and test."""
    space, setting = learn_chosen(method, split, validation, score)
    return Result(method.name, score(space.points, split.test), setting, space.kernel_weights)


def in_order(points: Float64Array, comparisons: Int64Array) -> Float64Array:
    """Return 1 for each comparison in order, 0 for each other one, and 0.5 for a tie.

    Distances that differ only by rounding are equal: songs with the same labels have the same distance to others.
    """
    near, far = (np.square(points[a] - points[b]).sum(axis=1) for a, b in comparisons.T.reshape(2, 2, -1))
    is_tied = np.abs(near - far) <= _ROUNDING * np.maximum(near, far)
    return np.where(is_tied, 0.5, near < far)


def order_score(points: Float64Array, comparisons: Int64Array) -> dict[str, float]:
    """Return the share of comparisons in order, with ties counted as half, and the share of ties."""
    held = in_order(points, comparisons)
    return {IN_ORDER: float(held.mean()), TIES: float(np.mean(held == 0.5))}


# --- lines of tables ----------------------------------------------------------------------------------


def summary_rows(
    title: str,
    results: Sequence[Sequence[Result]],
    n_folds: int,
    *,
    reference: str | None = None,
    **more: dict[str, Any],
) -> list[Row]:
    """Return one row per method: mean and standard error of each score, and of its lead over a reference.

    Parameters
    ----------
    title : str
        Header of the column with the methods.
    results : sequence of shape (n_splits, n_methods)
    n_folds : int
        Splits of one repeat. Repeats reuse the same questions, so the standard error is the deviation divided by the
        root of `n_folds`, not of the number of splits.
    more : dict of dicts
        Further columns, by method.
    """
    rows: list[Row] = []
    for nth, first in enumerate(results[0]):
        own = [of_split[nth] for of_split in results]
        row: dict[str, Any] = {title: first.method}
        for name in first.scores:
            values = np.array([result.scores[name] for result in own])
            row[name], row[f"{name}, standard error"] = _mean(values, n_folds)
            if reference is not None and first.method != reference and name != TIES:
                base = [next(r for r in of_split if r.method == reference) for of_split in results]
                lead = values - np.array([result.scores[name] for result in base])
                row[f"{name}: lead"], row[f"{name}: lead, standard error"] = _mean(lead, n_folds)
        chosen = [result.setting for result in own if result.setting is not None]
        row["chosen most often"] = max(chosen, key=chosen.count) if chosen else None
        row |= {name: of_method.get(first.method) for name, of_method in more.items()}
        rows.append(row)
    return rows


def _mean(values: Float64Array, n_folds: int) -> tuple[float, float | None]:
    error = float(np.nanstd(values, ddof=1) / np.sqrt(n_folds)) if len(values) > 1 else None
    return float(np.nanmean(values)), error
