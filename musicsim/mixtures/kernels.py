"""Compiled sums over the components of Gaussian mixtures, for samples and in closed form."""

import numpy as np
from numba import njit

_CHUNK = 8  # number of variances per logarithm: the product of 8 float32 factors cannot overflow float64
_TILE = 512  # number of samples per tile: their maxima and sums fit into the L1 cache
# Exponents are clipped to this value, because smaller ones give subnormal float32 numbers, which are slow.
_MIN_LOG = np.float32(-87.0)
_LOG2_E = np.float32(1.4426950408889634)
_LN2_HIGH, _LN2_LOW = np.float32(0.693145751953125), np.float32(1.428606765330187e-06)
_BIAS, _MANTISSA_BITS = np.int32(127), np.int32(23)


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def _exp(x):
    """Return exp(x) for a float32 x <= 0, as a power of two times a polynomial (Cephes), with an error of 1e-7."""
    x = x if x > _MIN_LOG else _MIN_LOG
    power = np.int32(x * _LOG2_E - np.float32(0.5))
    rest = x - np.float32(power) * _LN2_HIGH - np.float32(power) * _LN2_LOW
    series = np.float32(1.9875691500e-4)
    series = series * rest + np.float32(1.3981999507e-3)
    series = series * rest + np.float32(8.3334519073e-3)
    series = series * rest + np.float32(4.1665795894e-2)
    series = series * rest + np.float32(1.6666665459e-1)
    series = series * rest + np.float32(5.0000001201e-1)
    series = series * rest * rest + rest + np.float32(1.0)
    return series * np.int32((power + _BIAS) << _MANTISSA_BITS).view(np.float32)


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "nnan"})
def mean_log_sums(products, offsets, result):
    """Add offsets (n, c) to products (n, c, n_samples), take the log-sum-exp over c, and average it over samples."""
    n, n_components, n_samples = products.shape
    top, total = np.empty(_TILE, np.float32), np.empty(_TILE, np.float32)
    for i in range(n):
        mean = 0.0
        for start in range(0, n_samples, _TILE):
            size = min(_TILE, n_samples - start)
            top[:] = np.float32(-3e38)
            total[:] = np.float32(0.0)
            for c in range(n_components):
                row, offset = products[i, c, start : start + size], offsets[i, c]
                for s in range(size):
                    value = row[s] + offset
                    top[s] = value if value > top[s] else top[s]
            for c in range(n_components):
                row, offset = products[i, c, start : start + size], offsets[i, c]
                for s in range(size):
                    total[s] += _exp(row[s] + offset - top[s])
            for s in range(size):
                mean += np.float64(np.log(total[s]) + top[s])
        result[i] = mean / n_samples


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "reassoc", "arcp"})
def _log_overlap(mean, variance, other_mean, other_variance):
    """Return log N(mean; other_mean, variance + other_variance) for two diagonal Gaussians, without the constant."""
    square, log_volume = 0.0, 0.0
    n_features = mean.shape[0]
    for start in range(0, n_features, _CHUNK):
        product = 1.0
        for p in range(start, min(start + _CHUNK, n_features)):
            total = variance[p] + other_variance[p]
            difference = mean[p] - other_mean[p]
            square += difference * difference / total
            product *= total
        log_volume += np.log(product)
    return -0.5 * (square + log_volume)


@njit(cache=True, nogil=True)
def compute_log_overlaps(log_weights, means, variances, other_log_weights, other_means, other_variances):
    """Return log(sum of w w' N(m; m', v + v') over all pairs of components) for each pair of songs.

    All arrays are float64. The arguments have shapes (n, c), (n, c, d), (n, c, d), (m, c'), (m, c', d), (m, c', d); the
    result has shape (n, m). The factor (2 pi)^(-d / 2) is omitted.
    """
    n, c = log_weights.shape
    m, c_other = other_log_weights.shape
    result = np.empty((n, m))
    terms = np.empty(c * c_other)
    for i in range(n):
        for j in range(m):
            top = -np.inf
            for a in range(c):
                for b in range(c_other):
                    term = log_weights[i, a] + other_log_weights[j, b]
                    term += _log_overlap(means[i, a], variances[i, a], other_means[j, b], other_variances[j, b])
                    terms[a * c_other + b] = term
                    top = max(top, term)
            total = 0.0
            for term in terms:
                total += np.exp(term - top)
            result[i, j] = top + np.log(total)
    return result
