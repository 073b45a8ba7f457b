"""Unsupervised codes: random projections and Spectral Hashing."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray
from musicsim._sparse_rows import Rows, center_rows
from musicsim.blas import one_blas_thread
from musicsim.hashing.base import BitHash, principal_axes
from musicsim.hashing.exact import ExactProjection


class RandomProjectionHash(BitHash):
    """Store songs as bits without training; a baseline for learned codes.

    Locality-sensitive hashing of angles: each bit gives a row's side of a random hyperplane through the mean.

    Parameters
    ----------
    n_bits : int from 1 to 1024
    random_state : int, Generator or None
        Seed for drawing the hyperplanes.

    Attributes
    ----------
    projection_ : ExactProjection
    n_features_in_ : int

    See Also
    --------
    RankHash : Bits that are learned for a task.
    SpectralHash : Bits from the data, without a task.
    musicsim.search.HammingIndex : Searches codes.

    References
    ----------
    - M. Charikar, Similarity estimation techniques from rounding algorithms, STOC 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.hashing import RandomProjectionHash, hamming_distances
    >>> X = np.random.default_rng(0).normal(size=(100, 20))
    >>> X[1] = X[0] + 0.01  # almost the same song
    >>> codes = RandomProjectionHash(96, random_state=0).fit_transform(X)
    >>> codes.shape  # 96 bits need two words
    (100, 2)
    >>> distances = hamming_distances(codes[:1], codes)[0]
    >>> bool(distances[1] < distances[2:].min())
    True
    """

    def __init__(self, n_bits: int = 64, *, random_state: int | np.random.Generator | None = None) -> None:
        self.n_bits, self.random_state = n_bits, random_state

    def fit(self, X: npt.ArrayLike, y: Any = None) -> Self:
        """Draw the hyperplanes.

        Parameters
        ----------
        X : array-like or SciPy sparse matrix of shape (n_songs, d), not constant
            Only the mean and the range of its columns are used.
        """
        rows = self._check_training(X)
        directions = np.random.default_rng(self.random_state).normal(size=(rows.shape[1], self.n_bits))
        self.projection_ = ExactProjection.build(rows, directions, np.zeros(self.n_bits))
        return self

    def _bits(self, rows: Rows) -> BoolArray:
        return np.asarray(self.projection_.sums(rows) > 0)


class SpectralHash(BitHash):
    """Store songs as bits that follow the distribution of the songs; a baseline for learned codes.

    Spectral Hashing (Weiss, Torralba, Fergus, NIPS 2008): waves along the principal axes. Rows are assumed to be
    uniformly distributed in a box along the principal axes. The eigenfunctions of the box's Laplacian are ``sin(pi / 2
    + k pi x / width)``. Bits are the signs of the eigenfunctions with the smallest eigenvalues, which have few waves
    along wide axes.

    Parameters
    ----------
    n_bits : int from 1 to 1024

    Attributes
    ----------
    projection_ : ExactProjection
        Projection on at most `n_bits` axes.
    lows_, widths_ : ndarrays of shape (n_axes,)
        Position and size of the box.
    axes_, waves_ : int ndarrays of shape (n_bits,)
        Axis of each bit, and number of half waves along it.

    See Also
    --------
    RankHash : Bits that are learned for a task.
    RandomProjectionHash : Bits that do not depend on the data.
    musicsim.search.HammingIndex : Searches codes.

    Notes
    -----
    Time: O(n d^2 + d^3). Memory: 16 n d bytes in addition to X, or 24 n d if X is not float64. Sparse rows with more
    than 1,000 columns need only a few arrays of d times `n_bits` numbers.

    References
    ----------
    - Y. Weiss, A. Torralba and R. Fergus, Spectral hashing, NIPS 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.hashing import SpectralHash, hamming_distances
    >>> X = np.random.default_rng(0).uniform(size=(500, 2)) * [10, 1]
    >>> codes = SpectralHash(8).fit_transform(X)
    >>> near, far = np.abs(X[:, 0] - X[0, 0]) < 0.5, np.abs(X[:, 0] - X[0, 0]) > 4
    >>> distances = hamming_distances(codes[:1], codes)[0]
    >>> bool(distances[near].mean() < distances[far].mean())
    True
    """

    def __init__(self, n_bits: int = 64) -> None:
        self.n_bits = n_bits

    def fit(self, X: npt.ArrayLike, y: Any = None) -> Self:
        """Find the box and the waves.

        Parameters
        ----------
        X : array-like or SciPy sparse matrix of shape (n_songs, d), not constant
        """
        rows = self._check_training(X)
        with one_blas_thread():
            _, axes = principal_axes(center_rows(rows), self.n_bits)
        self.projection_ = ExactProjection.build(rows, axes, np.zeros(axes.shape[1]))
        places = self.projection_.values(rows)
        self.lows_ = places.min(axis=0)
        self.widths_ = np.ptp(places, axis=0)
        waves = np.arange(1, self.n_bits + 1)
        # eigenvalues grow with waves / width; the sort is stable, so that wider axes win ties
        slowest = np.argsort((waves[:, None] / self.widths_).ravel(), kind="stable")[: self.n_bits]
        rounds, self.axes_ = np.divmod(slowest, len(self.widths_))
        self.waves_ = waves[rounds]
        return self

    def _bits(self, rows: Rows) -> BoolArray:
        shares = (self.projection_.values(rows) - self.lows_) / self.widths_
        # cos(pi x) > 0 if x rounds to an even number; this avoids cos, which differs between libraries
        halves = np.floor(shares[:, self.axes_] * self.waves_ + 0.5)
        return np.asarray(halves % 2 == 0)
