"""LightGBM on the documents of one fold: GBRT of SIGIR 2017, tables 4 and 5, and LambdaRank."""

import warnings
from typing import Any

import numpy as np

from experiments.support.letor import Fitted, Fold, Score, best_of, fits_of

__all__ = ["gbrt", "lambdarank"]

_MAX_TREES = 500
_PATIENCE = 50


def gbrt(fold: Fold, grid: list[dict[str, Any]], seed: int, n_trees: int | None = None) -> Fitted:
    """Fit regression trees to the labels on one thread; validation chooses settings and, by its error, trees.

    Parameters
    ----------
    n_trees : int, optional
        Fixed number of trees, without early stopping.

    Raises
    ------
    ImportError
        If lightgbm is not installed.
    """
    import lightgbm

    def fit(parameters: dict[str, Any]) -> Score:
        trees = lightgbm.LGBMRegressor(n_estimators=n_trees or _MAX_TREES, **_fixed(seed), **parameters)
        return _fitted(trees, fold, fold.train.y, fold.validation.y, is_stopped=not n_trees)

    return best_of(fits_of(grid, fit), fold)


def lambdarank(fold: Fold, grid: list[dict[str, Any]], seed: int) -> Fitted:
    """Fit LambdaRank on one thread; early stopping in validation chooses the number of trees.

    Raises
    ------
    ImportError
        If lightgbm is not installed.
    """
    import lightgbm

    def fit(parameters: dict[str, Any]) -> Score:
        ranker = lightgbm.LGBMRanker(objective="lambdarank", n_estimators=_MAX_TREES, **_fixed(seed), **parameters)
        train, validation = fold.train.y.astype(int), fold.validation.y.astype(int)
        groups = {"group": fold.train.group, "eval_group": [fold.validation.group], "eval_at": [10]}
        return _fitted(ranker, fold, train, validation, **groups)

    return best_of(fits_of(grid, fit), fold)


def _fixed(seed: int) -> dict[str, Any]:
    return {"n_jobs": 1, "random_state": seed, "verbose": -1, "deterministic": True}


def _fitted(trees: Any, fold: Fold, train: Any, validation: Any, *, is_stopped: bool = True, **groups: Any) -> Score:
    import lightgbm

    stop = [lightgbm.early_stopping(_PATIENCE, verbose=False)] if is_stopped else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # new releases rename eval_set to eval_X, which old ones lack
        trees.fit(fold.train.X, train, eval_set=[(fold.validation.X, validation)], callbacks=stop, **groups)
    return lambda rows: np.asarray(trees.predict(rows.X), dtype=np.float64)
