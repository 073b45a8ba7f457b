"""Bit codes learned for a task by ranking (Nair, Mahajan, Sundararajan, WWW 2012)."""

import time
from collections.abc import Mapping
from dataclasses import fields, replace
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from musicsim._arrays import BoolArray, Float64Array
from musicsim._callbacks import StepCallback
from musicsim._checks import check_choice, check_number, check_positive, check_whole
from musicsim._sparse_rows import Rows, center_rows, column_means
from musicsim.blas import one_blas_thread
from musicsim.hashing._kernels import MAX_SCORE
from musicsim.hashing.base import BitHash, principal_axes
from musicsim.hashing.exact import ExactProjection
from musicsim.hashing.gains import TASKS, Gains, keep_targets, make_gains
from musicsim.hashing.training import Batch, Neighborhood, Projection

_METHODS = ("lambdarank", "ranknet")
_HIDDEN = "hidden_"  # Prefix for the names of the arrays of hidden units
_DO_NOT_FIT = "the arrays of this bit hash do not match each other in shape or type."


class RankHash(BitHash):
    """Store songs as short bit codes that keep what matters for a task, to search millions in little memory.

    Codes whose Hamming distance ranks songs for a task. Bit j of a row x is 1 if ``h_j = 1 / (1 + exp(-(x W_j +
    b_j)))`` is above 0.5 (equation 1). W and b are learned by gradient descent on the order of pairs of documents for a
    query. In the first phase, all pairs have equal weights (RankNet, equations 3 and 4). In the second phase, the
    weight of a pair is the change in the score if the two are swapped (LambdaRank, equation 5).

    Parameters
    ----------
    n_bits : int from 1 to 1024
    task : "classification", "retrieval", "hierarchy" or "regression"
        Determines the score of a query's neighbors (equations 7, 8, 10, 11), and the type of `y`.
    method : "lambdarank" or "ranknet"
        "ranknet" omits the second phase.
    n_bins, radius : int
        Neighbors are the documents in the `n_bins` nearest nonempty bins; for retrieval, those within the distance
        `radius`.
    n_components : int >= 1
        Maximum number of principal axes along which weights are learned. The final W has all columns.
    n_hidden : int >= 0
        Number of hidden units ``max(x V + c, 0)``, which are additional columns of x for W. With 0, bits are linear.
    ranknet_steps, lambdarank_steps : int >= 0
        Number of steps in each phase.
    step_size : float > 0
        Step size for rows scaled to a mean squared length of 1; with `decay`, it decreases to 0.
    start : float > 0
        Standard deviation of the initial weights along the principal axes of the scaled rows. For hidden units, it is
        multiplied by the square root of 2, so that a row's units also have a mean squared length of 1.
    normalize : bool
        Divide the derivatives of a query by the sum of its pairs' weights, so that queries have equal weights.
    swap_beyond : bool
        Swap neighbors with documents that are farther than the last neighbor by up to a third of the bits. If False,
        swap them with documents in the nearest `n_bits` / 3 bins.
    momentum : float in [0, 1)
    n_queries, ranknet_documents, lambdarank_documents : int
        Number of queries in a batch, and of the documents that they share in each phase.
    temperature : float > 0
        Difference in bits at which two documents are in order with probability 0.73; at least `n_bits` / 1400.
    n_targets : int >= 1, or None
        Per query, use only this many nearest documents of its class in a batch (classification only). None uses all.
    noise : float >= 0
        Standard deviation of the noise added to queries, relative to that of each principal axis.
    random_state : int, Generator or None

    Attributes
    ----------
    projection_, hidden_ : ExactProjection
        W and b, and V and c (or None), on grids on which sums are exact.
    history_ : list of dict
        Per step: step, phase, step_size, and wrong (the mean probability that a pair is in the wrong order, or NaN).
    n_steps_ : int

    See Also
    --------
    RandomProjectionHash : A baseline without training.
    SpectralHash : A baseline from the songs alone.
    musicsim.search.HammingIndex : Searches codes.

    Notes
    -----
    The method is from Nair, Mahajan and Sundararajan (WWW 2012). The defaults differ from the paper (see
    ``docs/research/hashing.md``). If all documents of a query's class are targets, the codes of the class collapse, and
    distances within it are lost. With 64 bits and 10,000 digits, about 7% of the votes were wrong in this case, and
    only 5.5% with `n_targets`.

    Time: O(steps x queries x documents x (bits + documents)); hidden units add O(steps x documents x n_hidden x (d +
    bits)). Memory: 24 n d bytes in addition to X (32 n d if X is not float64), and 50 bytes times queries x documents.
    Hidden units add 24 n (d + n_hidden) bytes. A fit uses one BLAS thread, so the weights do not depend on the number
    of threads, but another machine may round differently. Columns are not scaled; standardize them if their units
    differ.

    References
    ----------
    - V. Nair, D. Mahajan and S. Sundararajan, A unified approach to learning task-specific bit vector representations
      for fast nearest neighbor search, WWW 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.hashing import RankHash, bin_vote
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(300) % 3
    >>> X = np.c_[np.eye(3)[y] + 0.2 * rng.normal(size=(300, 3)), 2 * rng.normal(size=(300, 5))]
    >>> hashing = RankHash(16, ranknet_steps=100, lambdarank_steps=50, random_state=0).fit(X[:200], y[:200])
    >>> codes = hashing.transform(X)
    >>> codes.shape, codes.dtype  # 16 bits per song, in one word
    ((300, 1), dtype('uint64'))
    >>> bool(np.mean(bin_vote(codes[:200], y[:200], codes[200:]) == y[200:]) > 0.9)  # labels of songs it has not seen
    True
    """

    def __init__(
        self,
        n_bits: int = 64,
        task: str = "classification",
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
        self.n_bits, self.task, self.method, self.n_bins, self.radius = n_bits, task, method, n_bins, radius
        self.n_components, self.n_hidden = n_components, n_hidden
        self.ranknet_steps, self.lambdarank_steps = ranknet_steps, lambdarank_steps
        self.step_size, self.decay, self.start, self.momentum = step_size, decay, start, momentum
        self.normalize, self.swap_beyond, self.n_queries = normalize, swap_beyond, n_queries
        self.ranknet_documents, self.lambdarank_documents = ranknet_documents, lambdarank_documents
        self.temperature, self.n_targets, self.noise, self.random_state = temperature, n_targets, noise, random_state

    def fit(self, X: npt.ArrayLike, y: Any, callback: StepCallback | None = None) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : array-like or SciPy sparse matrix of shape (n_songs, d), finite and not constant
        y : labels (n_songs,), Relevance, labels (n_songs, levels) or float array-like (n_songs,)
            Depends on `task`: classes; the relevance of the rows of X to each other; classes from the widest to the
            narrowest; or targets. Unknown labels (None, nan, blank, -1) do not equal any label.
        callback : callable, optional
            Gets the newest entry of `history_` and the seconds so far after each step. The callback returns True to end
            the fit with the current weights, which need not be the best: `wrong` varies more between batches than
            between steps.
        """
        rows = self._check_training(X)
        self._check_parameters()
        gains = make_gains(self.task, y, rows.shape[0])
        rng = np.random.default_rng(self.random_state)
        with one_blas_thread():
            centered = center_rows(rows)
            variances, axes = principal_axes(centered, self.n_components)
            axes /= np.sqrt(variances.sum())
            coordinates = centered @ axes
            learned = self._start(coordinates, rng)
            self.history_ = self._descend(coordinates, gains, learned, rng, callback)
            self._set_projections(rows, axes, learned)
        self.n_steps_ = len(self.history_)
        return self

    def arrays(self) -> dict[str, Any]:
        """Return the arrays that are needed to compute codes, for an archive without pickle."""
        check_is_fitted(self)
        parts = {"": self.projection_} | ({} if self.hidden_ is None else {_HIDDEN: self.hidden_})
        return {
            prefix + field.name: getattr(part, field.name)
            for prefix, part in parts.items()
            for field in fields(ExactProjection)
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Restore a hash from the result of :meth:`arrays`. It computes the same codes, but does not have `history_`.

        Raises KeyError if an array is missing, and ValueError if the arrays do not match each other.
        """
        projection = _read_projection(arrays, "")
        d, n_bits = projection.weights.shape
        hashing = cls(n_bits)
        hashing.projection_, hashing.hidden_ = projection, None
        if any(name.startswith(_HIDDEN) for name in arrays):
            hashing.hidden_ = _read_projection(arrays, _HIDDEN)
            n_columns, hashing.n_hidden = hashing.hidden_.weights.shape
            if d != n_columns + hashing.n_hidden:
                raise ValueError(_DO_NOT_FIT)
            d = n_columns
        hashing.n_features_in_ = d
        return hashing

    def _bits(self, rows: Rows) -> BoolArray:
        # h is above 0.5 if the sum is above 0
        return np.asarray(self.projection_.sums(self._inputs(rows)) > 0)

    def _inputs(self, rows: Rows) -> Rows:
        """Return the inputs of W: rows and hidden units. They are exact, because values are scaled by powers of two."""
        if self.hidden_ is None:
            return rows
        units = np.maximum(self.hidden_.values(rows), 0.0)
        if sparse.issparse(rows):
            return sparse.hstack([rows, sparse.csr_array(units)], format="csr")
        return np.hstack([rows, units])

    def _start(self, coordinates: Float64Array, rng: np.random.Generator) -> Projection:
        d = coordinates.shape[1]
        weights = rng.normal(0.0, self.start, size=(d + self.n_hidden, self.n_bits))
        hidden = rng.normal(0.0, 2.0**0.5 * self.start, size=(d, self.n_hidden))
        zeros = np.zeros(self.n_hidden)
        start = Projection(weights, np.zeros(self.n_bits), hidden, zeros, np.zeros_like(zeros))
        return replace(start, hidden_mean=start.inputs(coordinates)[:, d:].mean(axis=0))

    def _set_projections(self, rows: Rows, axes: Float64Array, learned: Projection) -> None:
        """Convert the learned projections from `axes` to the columns of `rows`, on grids that suit `rows`."""
        d = axes.shape[1]
        self.hidden_, weights, bias = None, axes @ learned.weights[:d], learned.bias
        if self.n_hidden:
            self.hidden_ = ExactProjection.build(rows, axes @ learned.hidden_weights, learned.hidden_bias)
            unit_weights = learned.weights[d:] / np.sqrt(self.n_hidden)
            weights = np.vstack([weights, unit_weights])
            # the projection subtracts the mean of the learned units; training subtracted the mean of the initial units
            units = self._inputs(rows)[:, rows.shape[1] :]
            shift = column_means(units) - learned.hidden_mean * np.sqrt(self.n_hidden)
            bias = bias + shift @ unit_weights
        self.projection_ = ExactProjection.build(self._inputs(rows), weights, bias)

    def _descend(
        self,
        rows: Float64Array,
        gains: Gains,
        start: Projection,
        rng: np.random.Generator,
        callback: StepCallback | None,
    ) -> list[dict[str, Any]]:
        """Learn the weights and biases of `start` in place, from centered rows (n, d); return one dict per step."""
        arrays = start.arrays()
        moves = [np.zeros_like(array) for array in arrays]
        n_steps = self.ranknet_steps + (self.lambdarank_steps if self.method == "lambdarank" else 0)
        spread = float(self.noise) * rows.std(axis=0)
        neighborhood = Neighborhood(None if self.task == "retrieval" else self.n_bins, self.radius, self.swap_beyond)
        history: list[dict[str, Any]] = []
        started = time.perf_counter()
        for t in range(n_steps):
            is_ranknet = t < self.ranknet_steps
            step_size = float(self.step_size) * (1.0 - t / n_steps if self.decay else 1.0)
            drawn = rng.choice(len(rows), min(self.n_queries, len(rows)), replace=False)
            n_documents = self.ranknet_documents if is_ranknet else self.lambdarank_documents
            documents = gains.documents(drawn, n_documents, rng)
            queries = rows[drawn]
            if self.noise:
                queries = queries + spread * rng.normal(size=queries.shape)
            batch = Batch(queries, rows[documents], gains.gains(drawn, documents))
            if self.n_targets is not None and self.task == "classification":
                keep_targets(batch.gains, rows[drawn], batch.documents, self.n_targets)
            slopes, wrong = batch.slopes(
                start, float(self.temperature), None if is_ranknet else neighborhood, self.normalize
            )
            for i, slope in enumerate(slopes):
                moves[i] = float(self.momentum) * moves[i] - step_size * slope
                np.add(arrays[i], moves[i], out=arrays[i])
            phase = "ranknet" if is_ranknet else "lambdarank"
            history.append({"step": t + 1, "phase": phase, "step_size": step_size, "wrong": wrong})
            if callback is not None and callback({**history[-1], "seconds": time.perf_counter() - started}):
                break
        return history

    def _check_parameters(self) -> None:
        check_choice("task", self.task, TASKS)
        check_choice("method", self.method, _METHODS)
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
                f"temperature={self.temperature!r} must be at least {self.n_bits / (2 * MAX_SCORE)} with "
                f"n_bits={self.n_bits}; otherwise exponentials of scores are too large."
            )
        if not (isinstance(self.momentum, Real) and 0 <= float(self.momentum) < 1):
            raise ValueError(f"momentum={self.momentum!r} must be at least 0 and below 1.")
        check_number("noise", self.noise, 0)


def _read_projection(arrays: Mapping[str, npt.NDArray[Any]], prefix: str) -> ExactProjection:
    projection = ExactProjection(**{field.name: arrays[prefix + field.name] for field in fields(ExactProjection)})
    shape = projection.weights.shape
    if len(shape) != 2 or not np.issubdtype(projection.exponents.dtype, np.integer):
        raise ValueError(_DO_NOT_FIT)
    lengths = {"center": shape[:1], "exponents": shape[:1], "bias": shape[1:], "units": shape[1:]}
    if any(getattr(projection, name).shape != length for name, length in lengths.items()):
        raise ValueError(_DO_NOT_FIT)
    return projection
