"""Gradient-boosted regression trees on the labels of documents: GBRT of SIGIR 2017, tables 4 and 5."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from experiments._letor import Fitted, Fold, Score, best_of

__all__ = ["gbrt"]

_MAX_TREES = 500
_PATIENCE = 50


def gbrt(fold: Fold, grid: list[dict[str, Any]], seed: int, n_trees: int | None = None) -> Fitted:
    """LightGBM's regression of the labels on one thread; validation chooses settings and, by its error, trees.

    Parameters
    ----------
    n_trees : int, optional
        So many, without stopping early.

    Raises
    ------
    ImportError
        If lightgbm is not installed.
    """
    import lightgbm

    def fits() -> Iterator[tuple[str, Callable[[], Score]]]:
        for parameters in grid:

            def fit(parameters: dict[str, Any] = parameters) -> Score:
                trees = lightgbm.LGBMRegressor(
                    n_estimators=n_trees or _MAX_TREES, n_jobs=1, random_state=seed, verbose=-1, deterministic=True,
                    **parameters,
                )  # fmt: skip
                stop = [] if n_trees else [lightgbm.early_stopping(_PATIENCE, verbose=False)]
                validation = fold.validation
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", FutureWarning)  # eval_set, as of lambdarank
                    trees.fit(
                        fold.train.X, fold.train.y, eval_set=[(validation.X, validation.y)], callbacks=stop
                    )
                return lambda rows: np.asarray(trees.predict(rows.X), dtype=np.float64)

            yield ", ".join(f"{name} {value}" for name, value in parameters.items()), fit

    return best_of(fits(), fold)
