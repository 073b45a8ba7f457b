"""A table that compares metrics on songs by artists that they have not seen."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from musicsim._arrays import Float64Array
from musicsim.evaluation.ranking import bootstrap_pairs, query_scores
from musicsim.relevance import Relevance, group_codes

MEASURES = {"auc": "AUC", "map": "MAP", "mrr": "MRR", "ndcg": "NDCG", "precision": "precision", "knn": "kNN accuracy"}
"""Names of the measures in the table, keyed by those of :func:`musicsim.evaluation.query_scores`."""


def evaluate(
    estimators: Mapping[str, Any], X: npt.ArrayLike, y: Any, groups: Any = None, *, k: int = 10, n_splits: int = 5,
    random_state: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Compare metrics by cross-validation over artists: what does each one gain on artists that it has not seen?

    Every song is a query once. For it, a copy of each estimator is fitted on songs by other artists, which are then
    ranked by Euclidean distance in the space of the estimator.

    Parameters
    ----------
    estimators : mapping of names to estimators with `fit` and `transform`, or None for plain Euclidean distance
        They are copied, so it does not matter whether they are fitted. Scale features in a pipeline. The first one is
        the one that others are compared with.
    X : array-like of shape (n_songs, n_features)
    y : sequence of n_songs labels, or Relevance
        Songs with the same label are relevant. None and NaN are unknown. Estimators are fitted on what is passed here.
    groups : sequence of n_songs, optional
        The artist of each song, who is never on both sides. Without it, every song is by an artist of its own.
    k : int, at least 1; number of ranks for NDCG and precision, and of neighbors for kNN accuracy
    n_splits : int, at least 2; number of parts into which the artists are divided
    random_state : int

    Returns
    -------
    DataFrame indexed by (model, measure)
        The columns `score`, `low` and `high` are the mean over queries and its 95% interval. The columns `difference`,
        `difference_low` and `difference_high` compare with the first model. Intervals resample artists.
        They do not contain the variation between fits.

    Raises
    ------
    ValueError
        If there are too few artists or no relevant songs, or if an argument has the wrong length.

    See Also
    --------
    query_scores, bootstrap_pairs, ArtistSplit

    Examples
    --------
    >>> import musicsim as ms
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> artists = np.repeat(np.arange(40), 5)
    >>> X = np.c_[artists % 4 + rng.normal(size=200), 5 * rng.normal(size=(200, 3))]
    >>> table = ms.evaluate({"plain": None, "WCCN": ms.WCCN()}, X, artists % 4, artists)
    >>> table.loc["WCCN"].index.tolist()
    ['AUC', 'MAP', 'MRR', 'NDCG', 'precision', 'kNN accuracy']
    >>> bool(table.loc["WCCN"].loc["MAP", "difference_low"] > 0)  # better on artists that it has not seen
    True
    """
    from sklearn.model_selection import GroupKFold

    if not estimators:
        raise ValueError("estimators is empty: pass at least one, or None for plain distance.")
    X = np.asarray(X, dtype=np.float64)
    codes = np.arange(len(X)) if groups is None else group_codes(groups)
    if len(codes) != len(X):
        raise ValueError(f"groups has {len(codes)} entries for {len(X)} songs: pass one per song.")
    relevance = y if isinstance(y, Relevance) else Relevance.from_labels(y, groups=None if groups is None else codes)
    if len(relevance) != len(X):
        raise ValueError(f"y has {len(relevance)} entries for {len(X)} songs: pass one per song.")
    n_artists = len(np.unique(codes))
    if not 2 <= n_splits <= n_artists:
        raise ValueError(f"n_splits={n_splits} must be from 2 to the number of artists, {n_artists}.")
    order = np.random.default_rng(random_state).permutation(n_artists)[np.unique(codes, return_inverse=True)[1]]
    scores: dict[str, dict[str, Float64Array]] = {name: {} for name in estimators}
    for train, test in GroupKFold(n_splits).split(X, groups=order):
        held_out = relevance.restrict(test, train)
        for name, estimator in estimators.items():
            database, queries = _transform(estimator, X, relevance, codes, train, test)
            for measure, values in query_scores(queries, database, held_out, k).items():
                scores[name].setdefault(measure, np.full(len(X), np.nan))[test] = values
    return _tabulate(scores, codes, random_state)


def _transform(
    estimator: Any, X: Float64Array, relevance: Relevance, codes: npt.NDArray[Any], train: npt.NDArray[Any],
    test: npt.NDArray[Any],
) -> tuple[Float64Array, Float64Array]:  # fmt: skip
    """Fit a copy of the estimator; return the training and the test songs in its space."""
    if estimator is None:
        return X[train], X[test]
    from sklearn.base import clone
    from sklearn.utils.validation import has_fit_parameter

    rows, y = train, relevance.restrict(train, train)
    if relevance.labels is not None:
        labels = relevance.labels[0]
        rows = train[labels[train] >= 0]  # scikit-learn has no value for unknown labels
        y = labels[rows]
    also = {"groups": codes[rows]} if has_fit_parameter(estimator, "groups") else {}
    fitted = clone(estimator).fit(X[rows], y, **also)
    return fitted.transform(X[train]), fitted.transform(X[test])


def _tabulate(scores: dict[str, dict[str, Float64Array]], codes: npt.NDArray[Any], random_state: int) -> pd.DataFrame:
    first = next(iter(scores.values()))
    rows = {}
    for name, measured in scores.items():
        for measure, values in measured.items():
            own = bootstrap_pairs(values, np.zeros(len(values)), codes, random_state=random_state)
            gain = (
                (np.nan,) * 3
                if measured is first
                else bootstrap_pairs(values, first[measure], codes, random_state=random_state)
            )
            rows[name, MEASURES[measure]] = (*own, *gain)
    columns = ["score", "low", "high", "difference", "difference_low", "difference_high"]
    index = pd.MultiIndex.from_tuples(rows, names=["model", "measure"])
    return pd.DataFrame(list(rows.values()), columns=columns, index=index)
