"""Bit codes learned for a task by ranking (Nair, Mahajan, Sundararajan, WWW 2012)."""

from collections.abc import Mapping
from dataclasses import fields, replace
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from musicsim._arrays import BoolArray, Float64Array
from musicsim._blas import one_blas_thread
from musicsim._callbacks import StepCallback
from musicsim._checks import check_choice, check_number, check_positive, check_whole
from musicsim.hashing._base import BitHash, principal_axes
from musicsim.hashing._exact import ExactProjection
from musicsim.hashing._gains import SCORES, gains_of
from musicsim.hashing._kernels import MAX_SCORE
from musicsim.hashing._training import Course, Neighbourhood, Projection, descend

_METHODS = ("lambdarank", "ranknet")
_HIDDEN = "hidden_"
"""In front of the names of the arrays of hidden units."""
_DO_NOT_FIT = "the arrays of a hash do not fit together."


class RankHash(BitHash):
    """Codes whose Hamming distance ranks songs as a task asks for.

    Bit j of a row x is 1 where ``h_j = 1 / (1 + exp(-(x W_j + b_j)))`` is above 0.5 (equation 1). W and b are learned
    by gradient descent on the order of pairs of documents for a query, first all pairs alike (RankNet, equations 3
    and 4), then each times the change of the task's score that swapping the two would make (LambdaRank, equation 5).

    Parameters
    ----------
    n_bits : int, 1 to 1024
    score : "classification", "retrieval", "hierarchy" or "regression"
        What the neighbours of a query are for (equations 7, 8, 10, 11); says what `y` is.
    method : "lambdarank" or "ranknet"
        Both phases, or the first alone.
    n_bins : int >= 1
        Neighbours are the documents in so many nearest bins that are not empty; not for retrieval.
    radius : int >= 0
        Neighbours are the documents at distances up to this one; for retrieval.
    n_components : int >= 1
        Weights are learned along so many principal axes at most; W is of all columns again.
    n_hidden : int >= 0
        Hidden units ``max(x V + c, 0)`` that are columns of x for W, and are learned with it; 0: bits are linear.
    ranknet_steps, lambdarank_steps : int >= 0
        Steps of each phase.
    step_size : float > 0
        Of rows scaled to a mean squared length of 1.
    decay : bool
        Whether steps fall to 0 over the descent.
    start : float > 0
        Standard deviation of the first weights, along principal axes of rows of that scale; of those of hidden units
        the root of 2 times this, so that the units of a row have a mean squared length of 1, too.
    normalize : bool
        Divide the slopes of a query by the sum of the weights of its pairs, so that each query counts the same.
    swap_beyond : bool
        Neighbours are swapped with documents up to a third of the bits beyond the last of them; if False, with those
        in the nearest bins, a third of the bits in number.
    momentum : float in [0, 1)
    n_queries, ranknet_documents, lambdarank_documents : int
        Queries of a batch, and documents that they share, in each phase.
    temperature : float > 0
        Bits by which two documents have to differ to be in order with probability 0.73; at least `n_bits` / 1400.
    n_targets : int >= 1, or None
        Of a batch's documents of the same class as a query only so many count, the nearest ones; None: all. For
        classification alone.
    noise : float >= 0
        Standard deviation of the noise on queries, as a share of that of each principal axis.
    random_state : int, Generator or None
        Seed of the first weights and of all batches.

    Attributes
    ----------
    projection_ : ExactProjection
        W and b on the grid on which they are exact.
    hidden_ : ExactProjection or None
        V and c in the same way.
    history_ : list of dict
        One a step: step, phase, step_size, and wrong, the mean probability that a pair is in the wrong order (nan in a
        step without pairs).
    n_steps_ : int
    n_features_in_ : int

    Notes
    -----
    The defaults depart from the paper in many points, of which the targets matter most: with all documents of its class
    as targets of a query the codes of a class fall together, and which songs of it are near each other is lost: of
    10,000 digits with 64 bits about 7 % of the votes were wrong, with targets 5.5 %. The whole list, with the
    parameters of the paper's own way: ``docs/hashing.md``.

    O(steps x queries x documents x (bits + documents)), and with hidden units O(steps x documents x n_hidden x (d +
    bits)) besides; the number of songs only counts where batches are drawn.
    Memory: 24 n d bytes besides X, 240 MB for 100 000 songs of 100 columns, 32 n d if X is not float64; with hidden
    units 24 n (d + n_hidden) more; and of a batch 50 bytes times queries x documents, 5 MB. A fit uses one thread of
    the library of matrix products, so that it gives the same weights with any number of them; another machine may
    round otherwise. Columns are taken as they are: standardise those of different units.

    Examples
    --------
    >>> from musicsim.hashing import bin_vote
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(300) % 3
    >>> X = np.c_[np.eye(3)[y] + 0.2 * rng.normal(size=(300, 3)), 2 * rng.normal(size=(300, 5))]
    >>> hashing = RankHash(16, ranknet_steps=100, lambdarank_steps=50, random_state=0).fit(X[:200], y[:200])
    >>> found = bin_vote(hashing.transform(X[:200]), y[:200], hashing.transform(X[200:]))
    >>> bool(np.mean(found == y[200:]) > 0.9)
    True
    """

    def __init__(
        self,
        n_bits: int = 64,
        score: str = "classification",
        *,
        method: str = "lambdarank",
        n_bins: int = 3,
        radius: int = 1,
        n_components: int = 128,
        n_hidden: int = 0,
        ranknet_steps: int = 2500,
        lambdarank_steps: int = 500,
        step_size: float = 300.0,
        decay: bool = True,
        start: float = 1.0,
        normalize: bool = True,
        swap_beyond: bool = True,
        momentum: float = 0.8,
        n_queries: int = 100,
        ranknet_documents: int = 500,
        lambdarank_documents: int = 1000,
        temperature: float = 3.0,
        n_targets: int | None = 10,
        noise: float = 0.3,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.score = score
        self.method = method
        self.n_bins = n_bins
        self.radius = radius
        self.n_components = n_components
        self.n_hidden = n_hidden
        self.ranknet_steps = ranknet_steps
        self.lambdarank_steps = lambdarank_steps
        self.step_size = step_size
        self.decay = decay
        self.start = start
        self.normalize = normalize
        self.swap_beyond = swap_beyond
        self.momentum = momentum
        self.n_queries = n_queries
        self.ranknet_documents = ranknet_documents
        self.lambdarank_documents = lambdarank_documents
        self.temperature = temperature
        self.n_targets = n_targets
        self.noise = noise
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: Any, callback: StepCallback | None = None) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : array-like of shape (n_songs, d)
        y : labels (n_songs,), Relevance, labels (n_songs, levels) or float array-like (n_songs,)
            By `score`: classes; who is relevant to whom among the rows of X; classes from the widest to the narrowest;
            targets. Unknown labels (None, nan, blank, -1) equal nothing.
        callback : callable, optional
            Gets the newest entry of `history_` and the seconds so far after each step; True ends the fit there, with
            the weights of that step. The best so far is not looked for: `wrong` is of one batch, and differs more from
            batch to batch than from step to step.

        Raises
        ------
        ValueError
            If a parameter is out of range, X is not finite or says nothing, or y is not what `score` needs.
        """
        rows = self._checked_rows(X)
        self._check_parameters()
        gains = gains_of(self.score, y, len(rows))
        rng = np.random.default_rng(self.random_state)
        with one_blas_thread():
            centered = rows - rows.mean(axis=0)
            variances, axes = principal_axes(centered, self.n_components)
            axes /= np.sqrt(variances.sum())
            coordinates = centered @ axes
            learned = self._start(coordinates, rng)
            self.history_ = descend(coordinates, gains, learned, self._course(), rng, callback)
            self._keep(rows, axes, learned)
        self.n_steps_ = len(self.history_)
        return self

    def arrays(self) -> dict[str, Any]:
        """Arrays that codes are made with, for an archive without pickle."""
        check_is_fitted(self)
        parts = {"": self.projection_} | ({} if self.hidden_ is None else {_HIDDEN: self.hidden_})
        return {
            prefix + field.name: getattr(part, field.name)
            for prefix, part in parts.items()
            for field in fields(ExactProjection)
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """A hash that gives the codes of the one that :meth:`arrays` took apart; it cannot tell how it was learned.

        Raises
        ------
        KeyError
            If one is missing.
        ValueError
            If they do not fit together.
        """
        projection = _projection_of(arrays, "")
        d, n_bits = projection.weights.shape
        hashing = cls(n_bits)
        hashing.projection_, hashing.hidden_ = projection, None
        if any(name.startswith(_HIDDEN) for name in arrays):
            hashing.hidden_ = _projection_of(arrays, _HIDDEN)
            n_columns, hashing.n_hidden = hashing.hidden_.weights.shape
            if d != n_columns + hashing.n_hidden:
                raise ValueError(_DO_NOT_FIT)
            d = n_columns
        hashing.n_features_in_ = d
        return hashing

    def _bits(self, rows: Float64Array) -> BoolArray:
        # h is above 0.5 where the sum is above 0
        return np.asarray(self.projection_.sums(self._inputs(rows)) > 0)

    def _inputs(self, rows: Float64Array) -> Float64Array:
        """What W is multiplied with; exact, as sums are whole numbers and their units powers of two."""
        return rows if self.hidden_ is None else np.hstack([rows, np.maximum(self.hidden_.values(rows), 0.0)])

    def _start(self, coordinates: Float64Array, rng: np.random.Generator) -> Projection:
        """First weights for centred rows (n, d)."""
        d = coordinates.shape[1]
        weights = rng.normal(0.0, self.start, size=(d + self.n_hidden, self.n_bits))
        hidden = rng.normal(0.0, 2.0**0.5 * self.start, size=(d, self.n_hidden))
        zeros = np.zeros(self.n_hidden)
        start = Projection(weights, np.zeros(self.n_bits), hidden, zeros, np.zeros_like(zeros))
        return replace(start, hidden_mean=start.inputs(coordinates)[:, d:].mean(axis=0))

    def _keep(self, rows: Float64Array, axes: Float64Array, learned: Projection) -> None:
        """Weights by columns instead of `axes`, on grids for `rows`."""
        d = axes.shape[1]
        self.hidden_, weights, bias = None, axes @ learned.weights[:d], learned.bias
        if self.n_hidden:
            self.hidden_ = ExactProjection.of(rows, axes @ learned.hidden_weights, learned.hidden_bias)
            by_units = learned.weights[d:] / np.sqrt(self.n_hidden)
            weights = np.vstack([weights, by_units])
            # the projection takes the mean of the learned units off, learning took that of the first ones
            shift = self._inputs(rows)[:, rows.shape[1] :].mean(axis=0) - learned.hidden_mean * np.sqrt(self.n_hidden)
            bias = bias + shift @ by_units
        self.projection_ = ExactProjection.of(self._inputs(rows), weights, bias)

    def _course(self) -> Course:
        return Course(
            self.ranknet_steps,
            self.lambdarank_steps if self.method == "lambdarank" else 0,
            self.n_queries,
            self.ranknet_documents,
            self.lambdarank_documents,
            float(self.step_size),
            float(self.momentum),
            float(self.temperature),
            float(self.noise),
            self.n_targets if self.score == "classification" else None,
            Neighbourhood(None if self.score == "retrieval" else self.n_bins, self.radius, self.swap_beyond),
            self.decay,
            self.normalize,
        )

    def _check_parameters(self) -> None:
        for name, legal in (("score", SCORES), ("method", _METHODS)):
            check_choice(name, getattr(self, name), legal)
        least = {"n_bins": 1, "radius": 0, "n_components": 1, "n_hidden": 0}
        least |= {"ranknet_steps": 0, "lambdarank_steps": 0}
        least |= {"n_queries": 1, "ranknet_documents": 2, "lambdarank_documents": 2}
        for name, bound in least.items():
            check_whole(name, getattr(self, name), bound)
        if self.n_targets is not None:
            check_whole("n_targets", self.n_targets, 1)
        for name in ("step_size", "start", "temperature"):
            check_positive(name, getattr(self, name))
        if self.n_bits > 2 * MAX_SCORE * self.temperature:
            raise ValueError(
                f"temperature={self.temperature!r} should be at least {self.n_bits / (2 * MAX_SCORE)} with "
                f"n_bits={self.n_bits}: exponentials of what is divided by it are too large."
            )
        if not (isinstance(self.momentum, Real) and 0 <= float(self.momentum) < 1):
            raise ValueError(f"momentum={self.momentum!r} should be at least 0 and below 1.")
        check_number("noise", self.noise, 0)


def _projection_of(arrays: Mapping[str, npt.NDArray[Any]], prefix: str) -> ExactProjection:
    """The projection with such names. Raises KeyError if one is missing, ValueError if they do not fit together."""
    projection = ExactProjection(**{field.name: arrays[prefix + field.name] for field in fields(ExactProjection)})
    shape = projection.weights.shape
    if len(shape) != 2 or not np.issubdtype(projection.exponents.dtype, np.integer):
        raise ValueError(_DO_NOT_FIT)
    lengths = {"center": shape[:1], "exponents": shape[:1], "bias": shape[1:], "units": shape[1:]}
    if any(getattr(projection, name).shape != length for name, length in lengths.items()):
        raise ValueError(_DO_NOT_FIT)
    return projection
