"""Choice of C by validation on songs by other artists."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import takewhile
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import validate_data

from musicsim._arrays import Float64Array
from musicsim._callbacks import StepCallback
from musicsim._checks import check_choice, check_whole
from musicsim.evaluation import ArtistSplit, query_scores
from musicsim.metric._learner import as_relevance, check_query_weights
from musicsim.metric.linear import LinearMetric
from musicsim.metric.mlr import MLR
from musicsim.metric.oracles import LOSSES
from musicsim.relevance import Relevance

DEFAULT_CS = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)


class MLRCV(LinearMetric, BaseEstimator):
    """Use MLR without a value for C: it is chosen by the ranking of held-out artists.

    MLR whose C is chosen on held-out artists; the metric is then learned from all songs. On each split, a metric is
    learned for every C from the training artists; each fit starts from the previous fit. The songs by the other artists
    are then used as queries for the training songs. The smallest C whose mean score is within `tolerance` standard
    errors of the best is chosen. A small C is faster to train and regularizes more.

    Parameters
    ----------
    mlr : MLR, optional
        Provides all parameters except C.
    Cs : sequence of float
        Values of C, tried in ascending order.
    cv : int, splitter or iterable of (training rows, validation rows), optional
        By default 3. A number n means ``ArtistSplit(n, 0.3, random_state=0)``; without groups, every song is its own
        group. A splitter gets the labels, if y is made from labels, and the groups.
    scoring : "auc", "map", "mrr", "ndcg" or "precision", optional
        By default the loss of `mlr`.
    tolerance : float >= 0
        Number of standard errors of the mean difference from the best C, over all validation queries. With 0, the best
        C is chosen.

    Attributes
    ----------
    C_ : float
    Cs_ : ndarray of shape (n_Cs,), ascending
    scores_, gaps_ : ndarrays of shape (n_splits, n_Cs)
        Mean score over the validation queries, and relative duality gap of each metric.
    untrained_ : float
        Mean score of Euclidean distance on the same queries.
    best_ : MLR
        Fitted on all songs; its `components_` and `metric_` are also attributes of this estimator.

    See Also
    --------
    MLR : The metric for a given `C`.

    References
    ----------
    - B. McFee, More like this: machine learning approaches to music similarity, PhD thesis, UC San Diego, 2012, section
      5.4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.metric import MLRCV
    >>> rng = np.random.default_rng(0)
    >>> artists = np.repeat(np.arange(20), 5)
    >>> y = artists % 4
    >>> X = np.c_[y + 0.3 * rng.normal(size=100), 3 * rng.normal(size=(100, 3))]
    >>> cv = MLRCV(Cs=[1, 10, 100]).fit(X, y, groups=artists)
    >>> cv.scores_.shape, cv.C_ in cv.Cs
    ((3, 3), True)
    >>> bool(cv.scores_.max() > cv.untrained_)
    True
    """

    def __init__(
        self,
        mlr: MLR | None = None,
        Cs: Sequence[float] = DEFAULT_CS,
        cv: Any = None,
        scoring: str | None = None,
        tolerance: float = 0.0,
    ):
        self.mlr, self.Cs, self.cv, self.scoring, self.tolerance = mlr, Cs, cv, scoring, tolerance

    def fit(
        self,
        X: npt.ArrayLike,
        y: Any,
        groups: Any = None,
        callback: StepCallback | None = None,
        workers: Callable[..., Iterable[Any]] = map,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Choose C and learn the metric.

        Parameters
        ----------
        X, y : as in :meth:`MLR.fit`
        groups : sequence of shape (n_songs,), optional
            The artist of each song, used only for splits. To exclude a query's artist from rankings, use the artist
            filter of :class:`~musicsim.relevance.Relevance`.
        callback : callable, optional
            Gets each step of each fit, with ``split`` (None in the last fit) and C. The callback returns True to end
            the current fit with the best metric so far. A split that was ended is ignored in the choice of C.
        workers : map-like callable
            `map`, or the map of processes or a cluster (:func:`musicsim.library.processes.pools.map_of`), which cannot
            use `callback`.
        sample_weight : array-like of shape (n_songs,), optional
            Weights of the songs as queries of the fits, as in :meth:`MLR.fit`. As in scikit-learn's searches, all
            validation queries count equally.

        Raises
        ------
        ValueError
            If no split has a query to score.
        """
        template = MLR() if self.mlr is None else self.mlr
        scoring = template.loss if self.scoring is None else self.scoring
        check_choice("scoring", scoring, LOSSES)
        Cs = np.unique(np.asarray(self.Cs, dtype=np.float64))
        if len(Cs) == 0 or not (np.isfinite(Cs) & (Cs > 0)).all():
            raise ValueError(f"Cs={self.Cs!r} must contain at least one number, and all numbers must be above 0.")
        if not self.tolerance >= 0:
            raise ValueError(f"tolerance={self.tolerance!r} must be at least 0.")
        songs: Float64Array = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        relevance = as_relevance(y, len(songs))
        weights = check_query_weights(sample_weight, len(songs))
        learn = partial(_path_scores, template, songs, relevance, weights, Cs, scoring, callback)
        splits = enumerate(self._splits(songs, relevance, groups))
        results = list(takewhile(lambda split: split is not None, workers(learn, splits)))
        learned, plain = [split[0] for split in results], [split[1] for split in results]
        if not learned or np.concatenate(plain).size == 0:
            raise ValueError("no split was scored: no validation song has a relevant song among the training songs.")
        self.Cs_ = Cs
        self.scores_ = np.array([split.mean(axis=1) for split in learned])
        self.gaps_ = np.array([split[2] for split in results])
        self.untrained_ = float(np.concatenate(plain).mean())
        self.C_ = float(Cs[_choose(np.concatenate(learned, axis=1), self.tolerance)])

        def progress(step: dict[str, Any]) -> bool:
            return bool(callback is not None and callback({"split": None, "C": self.C_, **step}))

        best = clone(template).set_params(C=self.C_)
        self.best_ = best.fit(songs, relevance, callback=progress, sample_weight=weights)
        self.metric_, self.components_ = self.best_.metric_, self.best_.components_
        return self

    def _splits(self, X: Float64Array, relevance: Relevance, groups: Any) -> list[tuple[Any, Any]]:
        from sklearn.model_selection import check_cv

        cv = 3 if self.cv is None else self.cv
        if isinstance(cv, Integral):
            check_whole("cv", cv, 1)
            cv = ArtistSplit(int(cv), 0.3, random_state=0)
        if groups is None and isinstance(cv, ArtistSplit):
            groups = np.arange(len(X))
        labels = None if relevance.labels is None else relevance.labels[0]
        try:
            return list(check_cv(cv).split(X, labels, groups))
        except TypeError as error:
            if labels is not None:
                raise
            raise ValueError(f"cv={self.cv!r} cannot split songs without labels: use a number or KFold.") from error


def _path_scores(
    template: MLR,
    songs: Float64Array,
    relevance: Relevance,
    weights: Float64Array | None,
    Cs: Float64Array,
    scoring: str,
    callback: StepCallback | None,
    numbered: tuple[int, tuple[Any, Any]],
) -> tuple[Float64Array, Float64Array, list[float]] | None:
    """Return scores (n_Cs, n_queries), scores of Euclidean distance, and gaps; None if a callback ended a fit."""
    split, (train, validation) = numbered

    def progress(step: dict[str, Any]) -> bool:
        return bool(callback is not None and callback({"split": split, **step}))

    held_out = relevance.restrict(validation, train)
    of_train = None if weights is None else weights[train]
    path = template.fit_path(songs[train], relevance.restrict(train, train), Cs.tolist(), progress, of_train)
    if len(path) < len(Cs):
        return None
    scores = [
        _scores(m.transform(songs[validation]), m.transform(songs[train]), held_out, scoring, template.k) for m in path
    ]
    plain = _scores(songs[validation], songs[train], held_out, scoring, template.k)
    return np.stack(scores), plain, [m.history_[-1]["gap"] for m in path]


def _scores(queries: Float64Array, songs: Float64Array, relevance: Relevance, scoring: str, k: int) -> Float64Array:
    """Return the scores of the queries that have both relevant and irrelevant songs."""
    scores = query_scores(queries, songs, relevance, k)
    return scores[scoring][np.isfinite(scores["auc"])]


def _choose(scores: Float64Array, tolerance: float) -> int:
    best = int(scores.mean(axis=1).argmax())
    losses = scores[best] - scores
    errors = losses.std(axis=1) / np.sqrt(scores.shape[1])
    return int(np.flatnonzero(losses.mean(axis=1) <= tolerance * errors)[0])
