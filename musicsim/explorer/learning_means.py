"""Learning in closed form: a geometric mean metric for all songs, or one for every region of them (SIGIR 2017).

There are no steps to watch: some settings are tried, and the one that is best on held-out artists is taken.
"""

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from musicsim.evaluation import distance_scores
from musicsim.relevance import Relevance

if TYPE_CHECKING:  # scikit-learn comes with them: only where one is learned
    from musicsim.metric import GMML, LGMMLByExample

__all__ = ["LOCAL", "MEAN", "Trial", "fitted", "held_out_scores", "trials"]

FloatArray = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

MEAN, LOCAL = "mean", "local"

_TS, _REGS = (0.0, 0.1, 0.3, 0.5, 0.7), (0.01, 0.1, 1.0)
_REGIONS, _LOCAL_TS, _LOCAL_REGS = (2, 5, 10, 20), (0.1, 0.5), (0.1, 1.0)
_SEED = 0
_QUERIES_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Trial:
    """Settings of a fit, and how to call them."""

    options: dict[str, Any]
    words: str


def trials(method: str) -> list[Trial]:
    """What is tried: of one metric, where on the geodesic, how near to plain distance; of many, how many, too."""
    if method == MEAN:
        return [Trial({"t": t, "reg": reg}, f"t {t:g}, reg {reg:g}") for t, reg in product(_TS, _REGS)]
    return [
        Trial({"n_metrics": m, "t": t, "reg": reg}, f"{m} regions, t {t:g}, reg {reg:g}")
        for m, t, reg in product(_REGIONS, _LOCAL_TS, _LOCAL_REGS)
    ]


def fitted(
    X: FloatArray, relevance: Relevance, method: str, options: dict[str, Any]
) -> "GMML | LGMMLByExample":
    """One metric, or local ones, of songs and who is similar to whom among them.

    Raises
    ------
    ValueError
        If no song has both a similar and a dissimilar one.
    """
    from musicsim.metric import GMML, LGMMLByExample

    learner = GMML(**options) if method == MEAN else LGMMLByExample(**options, random_state=_SEED)
    return learner.fit(X, relevance)


def held_out_scores(
    learner: "GMML | LGMMLByExample", X: FloatArray, relevance: Relevance, queries: Rows, database: Rows
) -> dict[str, FloatArray]:
    """Scores of queries, each by the metric of its own place where metrics are local.

    Parameters
    ----------
    learner : GMML or LGMMLByExample
    X : float64 ndarray of shape (n_songs, d)
    relevance : Relevance of all songs
    queries, database : int arrays of rows

    Returns
    -------
    dict of ndarray of shape (n_queries,) by measure, as :func:`musicsim.evaluation.query_scores`

    Notes
    -----
    Memory: 2 kB a song of the database.
    """
    songs = X[database]
    parts = []
    for start in range(0, len(queries), _QUERIES_AT_ONCE):
        some = queries[start : start + _QUERIES_AT_ONCE]
        if hasattr(learner, "distances"):
            distances = learner.distances(X[some], songs)
        else:
            distances = _plain_distances(learner.transform(X[some]), learner.transform(songs))
        parts.append(distance_scores(distances, relevance.restrict(some, database), k=10))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _plain_distances(Q: FloatArray, Y: FloatArray) -> FloatArray:
    from scipy.spatial.distance import cdist

    distances: FloatArray = cdist(Q, Y)
    return distances
