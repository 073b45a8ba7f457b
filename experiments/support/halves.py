"""Halves of the composers: choose or learn on one half, report on the other."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.support.report import Progress, Settings, format_lead
from experiments.support.pieces import MEASURES, Pieces, Scores, euclidean, scores, with_proximity
from experiments.support.score_rows import paired_interval
from musicsim._arrays import BoolArray, Float64Array
from musicsim.explorer.learning.multi_kernel import SourceLearner
from musicsim.metric import GMML, MLR, WCCN, MultipleKernelMLR
from musicsim.relevance import Relevance

__all__ = ["Gains", "gain_row", "gains_of", "halves", "learned_gains", "learned_rows", "nested_rows", "whiten"]

Learn = Callable[[Float64Array, Any], Float64Array]
"""From vectors and their labels to L, (r, d)."""

N_SPLITS, N_SPLITS_FULL = 8, 20

_CHOSEN_BY = ("P@1", "P@5", "within")
_SHRINKAGES = (0.3, 0.5, 0.8, 0.9)
_CS = {False: (10.0,), True: (10.0, 100.0)}  # short protocol, full protocol
_PLAIN_CS = (10.0, 100.0, 1e3, 1e4)  # those of the app


@dataclass(frozen=True, slots=True)
class Gains:
    """Gains of one comparison method over another: of each piece by measure, and of the skew."""

    by_query: dict[str, Float64Array]
    skew: float


def halves(pieces: Pieces, n: int, seed: int) -> Iterator[BoolArray]:
    """Yield, for each piece, whether its composer is in the second half; unknown composers are never queries."""
    composers = np.unique(pieces.composers[pieces.composers != ""])
    big = np.unique(pieces.composers[pieces.queries])
    rng = np.random.default_rng(seed)
    for _ in range(n):
        out = rng.permutation(big)[: len(big) // 2]
        small = np.setdiff1d(composers, big)
        out = np.concatenate([out, rng.permutation(small)[: len(small) // 2]])
        yield np.isin(pieces.composers, out)


def nested_rows(found: dict[str, Scores], reference: str, pieces: Pieces, settings: Settings) -> list[dict[str, Any]]:
    """Return the lead of the method that was chosen on other composers."""
    gains: list[Gains] = []
    chosen = []
    for is_out in halves(pieces, 40, settings.seed):
        here = np.flatnonzero(~is_out)
        best = max(found, key=lambda name: np.nansum([found[name].mean(m, here) for m in _CHOSEN_BY]))
        chosen.append(best)
        gains.append(gains_of(found[best], found[reference], is_out))
    what = f"the row that is best on the other half, most often {max(chosen, key=chosen.count)}"
    return [gain_row("nested choice", what, gains, pieces, settings.seed)]


def gains_of(after: Scores, before: Scores, is_out: BoolArray) -> Gains:
    """Return gains by measure for the held-out pieces, nan for the others; the skew is that of all pieces."""
    gains = {
        measure: np.where(is_out, after.by_query[measure] - before.by_query[measure], np.nan) for measure in MEASURES
    }
    return Gains(gains, after.skew)


def gain_row(part: str, what: str, splits: list[Gains], pieces: Pieces, seed: int) -> dict[str, Any]:
    """Return means over the splits with deviation and worst, and an interval over the composers.

    Each piece counts with its mean gain over the splits that held it out.
    """
    row: dict[str, Any] = {"part": part, "what": what, "splits": len(splits)}
    for measure in MEASURES:
        values = np.array([of.by_query[measure] for of in splits])
        means = np.array([np.nanmean(split) for split in values if np.isfinite(split).any()])
        asked = np.isfinite(values).any(axis=0)
        gain = np.full(len(pieces), np.nan)
        gain[asked] = np.nanmean(values[:, asked], axis=0)
        if interval := paired_interval(gain, np.zeros(len(gain)), pieces, measure, seed):
            mean, low, high = interval
            row[f"lead {measure}"] = f"{format_lead(mean, low, high)}, sd {means.std():.3f}, worst {means.min():+.3f}"
    return row | {"skew": float(np.mean([of.skew for of in splits]))}


def learned_rows(
    spaces: dict[str, Float64Array], pieces: Pieces, settings: Settings, progress: Progress
) -> list[dict[str, Any]]:
    """Return the mean gain of each model and learning method over the model itself, on held-out composers."""
    splits = list(halves(pieces, N_SPLITS_FULL if settings.full else N_SPLITS, settings.seed))
    folders = np.array([f"{song.path.parent}" for song in pieces.songs])
    rows = []
    for name, X, plain, learners in _tasks(spaces, full=settings.full):
        before = scores(with_proximity(euclidean(plain)), pieces)
        for words, fit in learners:
            for kind, labels in (("composers", pieces.composers), ("folders", folders)):
                gains = [learned_gains(X, before, labels, is_out, fit, pieces) for is_out in splits]
                rows.append(gain_row("learning", f"{name}, {words}, {kind}", gains, pieces, settings.seed))
            progress(f"{name}, {words}")
    return rows


def learned_gains(
    X: Float64Array, before: Scores, labels: np.ndarray, is_out: BoolArray, fit: Learn, pieces: Pieces
) -> Gains:
    """Return the gains for held-out pieces from learning with the labels that none of them has."""
    known = ~is_out & (labels != "") & ~np.isin(labels, labels[is_out])
    Y = X @ fit(X[known], labels[known]).T
    return gains_of(scores(with_proximity(euclidean(Y)), pieces), before, is_out)


def _tasks(
    spaces: dict[str, Float64Array], *, full: bool
) -> Iterator[tuple[str, Float64Array, Float64Array, list[tuple[str, Learn]]]]:
    """Yield each model with its learners, then all models together as kernels, compared with the first alone."""
    for name, X in spaces.items():
        yield name, X, X, list(_learners(full=full))
    stops = np.cumsum([X.shape[1] for X in spaces.values()]).tolist()
    blocks = [slice(start, stop) for start, stop in pairwise([0, *stops])]
    kernels = [(f"a kernel for each, C = {C:g}", partial(_of_kernels, C=C, blocks=blocks)) for C in _CS[full]]
    first = next(iter(spaces.values()))
    yield " and ".join(spaces), np.concatenate(list(spaces.values()), axis=1), first, kernels


def _learners(*, full: bool) -> Iterator[tuple[str, Learn]]:
    for g in _SHRINKAGES:
        yield f"WCCN, g = {g:g}", partial(whiten, shrinkage=g)
    yield "GMML, t = .3, reg = 1", _mean
    for C in _CS[full]:
        yield f"MLR, C = {C:g}", partial(_ranked, C=C)
        yield f"MLR, C = {C:g}, half of it", partial(_ranked, C=C, is_blended=True)
        yield f"MLR on WCCN, C = {C:g}, half of it", partial(_ranked, C=C, is_blended=True, is_whitened=True)

    for C in _PLAIN_CS:
        yield f"MLR near the plain metric, C = {C:g}", partial(_ranked_near_plain, C=C)


def whiten(X: Float64Array, y: Any, shrinkage: float) -> Float64Array:
    """Return L of the whitening within classes (WCCN)."""
    return WCCN(shrinkage).fit(X, y.tolist()).components_


def _mean(X: Float64Array, y: Any) -> Float64Array:
    return GMML(t=0.3, reg=1.0).fit(X, y.tolist()).components_


def _ranked(X: Float64Array, y: Any, C: float, *, is_blended: bool = False, is_whitened: bool = False) -> Float64Array:
    first = whiten(X, y, 0.8) if is_whitened else np.eye(X.shape[1])
    Y = X @ first.T
    L = _fitted(MLR(C=C, tol=1e-2, max_cuts=60, random_state=0), Y, y)
    if is_blended:
        scale = np.sqrt(np.var(Y, axis=0).sum() / max(np.var(Y @ L.T, axis=0).sum(), 1e-300))
        L = np.concatenate([np.eye(X.shape[1]), scale * L])
    return L @ first


def _ranked_near_plain(X: Float64Array, y: Any, C: float) -> Float64Array:
    return _fitted(MLR(C=C, regularizer="plain", tol=1e-2, max_cuts=60, random_state=0), X, y)


def _of_kernels(X: Float64Array, y: Any, C: float, blocks: list[slice]) -> Float64Array:
    return _fitted(SourceLearner(blocks, MultipleKernelMLR(C=C, tol=1e-2, max_cuts=60, random_state=0)), X, y)


def _fitted(mlr: MLR | SourceLearner, X: Float64Array, y: Any) -> Float64Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gaps still open after 60 cuts
        L: Float64Array = mlr.fit(X, Relevance.from_labels(y.tolist())).components_
    return L
