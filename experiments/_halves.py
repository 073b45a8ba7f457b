"""Halves of the composers: choosing on one and reporting on the other, learning from one and judging on the other."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks._report import Progress, Settings
from experiments._pieces import MEASURES, Pieces, Scores, euclidean, scores, with_proximity
from musicsim._arrays import BoolArray, Float64Array
from musicsim.metric import GMML, MLR, WCCN

__all__ = ["learned_rows", "nested_rows"]

_CHOSEN_BY = ("P@1", "P@5", "within")
_THIRD = 1 / 3
_SHRINKAGES = (0.3, 0.5, 0.8, 0.9)


def _halves(pieces: Pieces, n: int, seed: int) -> Iterator[BoolArray]:
    """Whether the composer of each piece is in the second half; unknown ones are in neither's queries."""
    composers = np.unique(pieces.composers[pieces.composers != ""])
    big = np.unique(pieces.composers[pieces.queries])
    rng = np.random.default_rng(seed)
    for _ in range(n):
        out = rng.permutation(big)[: len(big) // 2]
        small = np.setdiff1d(composers, big)
        out = np.concatenate([out, rng.permutation(small)[: len(small) // 2]])
        yield np.isin(pieces.composers, out)


def nested_rows(
    found: dict[str, Scores], reference: str, pieces: Pieces, settings: Settings
) -> list[dict[str, Any]]:
    """The lead of what was chosen on other composers."""
    gains: dict[str, list[float]] = {measure: [] for measure in MEASURES}
    chosen = []
    for is_out in _halves(pieces, 40, settings.seed):
        here, there = np.flatnonzero(~is_out), np.flatnonzero(is_out)
        best = max(found, key=lambda name: sum(found[name].mean(m, here) for m in _CHOSEN_BY))
        chosen.append(best)
        for measure in MEASURES:
            gains[measure].append(found[best].mean(measure, there) - found[reference].mean(measure, there))
    what = f"lead of the row chosen on the other half, most often {max(chosen, key=chosen.count)}"
    return [_summed("nested choice", what, gains)]


def _summed(part: str, what: str, gains: dict[str, list[float]]) -> dict[str, Any]:
    row: dict[str, Any] = {"part": part, "what": what}
    for measure, values in gains.items():
        row[f"lead {measure}"] = (
            f"{np.mean(values):+.3f} (sd {np.std(values):.3f}, worst {np.min(values):+.3f})"
        )
    return row


def learned_rows(
    spaces: dict[str, Float64Array], pieces: Pieces, settings: Settings, progress: Progress
) -> list[dict[str, Any]]:
    """Of each model and way of learning, the mean gain over the model itself, on composers not learned from."""
    n_splits = 20 if settings.full else 8
    splits = list(_halves(pieces, n_splits, settings.seed))
    folders = np.array([f"{song.path.parent}" for song in pieces.songs])
    rows = []
    for name, X in spaces.items():
        plain = scores(with_proximity(euclidean(X), _THIRD), pieces)
        for words, fit in _learners(full=settings.full):
            for kind, labels in (("composers", pieces.composers), ("folders", folders)):
                gains: dict[str, list[float]] = {measure: [] for measure in ("P@1", "P@5", "within")}
                skews = []
                for is_out in splits:
                    # folders that hold a composer of the other half are not learned from
                    known = ~is_out & (labels != "") & ~np.isin(labels, labels[is_out])
                    Y = X @ fit(X[known], labels[known]).T
                    after = scores(with_proximity(euclidean(Y), _THIRD), pieces)
                    skews.append(after.skew)
                    there = np.flatnonzero(is_out)
                    for measure, values in gains.items():
                        values.append(after.mean(measure, there) - plain.mean(measure, there))
                row = _summed("learning", f"{name}, {words}, {kind}", gains)
                rows.append(row | {"skew": float(np.mean(skews))})
            progress(f"{name}, {words}")
    return rows


def _learners(*, full: bool) -> Iterator[tuple[str, Callable[[Float64Array, Any], Float64Array]]]:
    for g in _SHRINKAGES:
        yield f"WCCN, g = {g:g}", partial(_whitened, shrinkage=g)
    yield "GMML, t = .3, reg = 1", _mean
    for C in (10.0, 100.0) if full else (10.0,):
        yield f"MLR, C = {C:g}", partial(_ranked, C=C)
        yield f"MLR, C = {C:g}, half of it", partial(_ranked, C=C, is_blended=True)
        yield f"MLR on WCCN, C = {C:g}, half of it", partial(_ranked, C=C, is_blended=True, is_whitened=True)


def _whitened(X: Float64Array, y: Any, shrinkage: float) -> Float64Array:
    return WCCN(shrinkage).fit(X, y.tolist()).components_


def _mean(X: Float64Array, y: Any) -> Float64Array:
    return GMML(t=0.3, reg=1.0).fit(X, y.tolist()).components_


def _ranked(
    X: Float64Array, y: Any, C: float, *, is_blended: bool = False, is_whitened: bool = False
) -> Float64Array:
    first = _whitened(X, y, 0.8) if is_whitened else np.eye(X.shape[1])
    Y = X @ first.T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of gaps still open after 60 cuts
        L = MLR(C=C, tol=1e-2, max_cuts=60, random_state=0).fit(Y, y.tolist()).components_
    if is_blended:
        scale = np.sqrt(np.var(Y, axis=0).sum() / max(np.var(Y @ L.T, axis=0).sum(), 1e-300))
        L = np.concatenate([np.eye(X.shape[1]), scale * L])
    return L @ first
