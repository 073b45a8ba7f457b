"""Cutting planes and their inner products."""

import numpy as np

from musicsim._arrays import Float64Array

_FEW = 4  # if fewer than 1 in `_FEW` planes have nonzero weight, it is faster to copy only those


class Planes:
    """Planes xi >= loss_i - <W, psi_i>; `loss` is (m,), `psi` is (m, size), and `gram` is H of equation 4.12.

    Memory: 8 `size` bytes per plane, in one array that grows by doubling.
    """

    def __init__(self, size: int) -> None:
        self._n = 0
        self._loss = np.empty(16)
        self._psi = np.empty((16, size))
        self._gram = np.empty((16, 16))
        self._age = np.empty(16, dtype=np.int64)  # number of rounds since the plane last had weight

    def __len__(self) -> int:
        return self._n

    @property
    def loss(self) -> Float64Array:
        return self._loss[: self._n]

    @property
    def psi(self) -> Float64Array:
        return self._psi[: self._n]

    @property
    def gram(self) -> Float64Array:
        return self._gram[: self._n, : self._n]

    def add(self, loss: float, psi: Float64Array) -> None:
        n = self._n
        if n == len(self._loss):
            self._loss = np.append(self._loss, np.empty(n))
            self._age = np.append(self._age, np.empty(n, dtype=np.int64))
            self._gram = np.pad(self._gram, ((0, n), (0, n)))
            grown = np.empty((2 * n, self._psi.shape[1]))
            grown[:n] = self._psi
            self._psi = grown
        self._loss[n], self._psi[n], self._age[n] = loss, psi.ravel(), 0
        self._n = n + 1
        self._gram[n, : n + 1] = self._gram[: n + 1, n] = self.psi @ self._psi[n]

    def slacks(self, W: Float64Array) -> Float64Array:
        """Return loss_i - <W, psi_i> for every plane."""
        return self.loss - self.psi @ W

    def combine(self, weights: Float64Array) -> Float64Array:
        used = np.flatnonzero(weights)
        if len(used) * _FEW < len(weights):  # typically, a few dozen of hundreds of planes have weight
            return weights[used] @ self.psi[used]
        return weights @ self.psi

    def retire(self, weights: Float64Array, oldest: int) -> Float64Array:
        """Age the planes without weight, drop those older than `oldest` rounds, and return the remaining weights."""
        age = self._age[: self._n]
        age += 1
        age[weights > 1e-9 * weights.sum()] = 0
        keep = np.flatnonzero(age <= oldest)
        if len(keep) == self._n:
            return weights
        m = len(keep)
        self._gram[:m, :m] = self._gram[np.ix_(keep, keep)]
        for array in (self._loss, self._age):
            array[:m] = array[keep]
        for i, j in enumerate(keep.tolist()):  # in place, because a copy would double the memory
            if i != j:
                self._psi[i] = self._psi[j]
        self._n = m
        return weights[keep]
