"""Bit codes to search in, and held-out queries of the same kind.

- `clustered`: 10,000 random centers; a code is one of them, each bit flipped with probability 0.05. This resembles
  learned codes: the ten nearest of 1.46 million differ in 1.5 of 32, 3.6 of 64, 19 of 256 bits.
- `loose`: the same with probability 0.15: 3.9, 12 and 57 bits.
- `projected`: signs of random projections of the vectors `hard` of :mod:`benchmarks.support.search_data`, 200
  overlapping clusters of intrinsic dimension 20: 2.1, 7.5 and 43 bits. Bits depend on each other, and some buckets
  are crowded.
"""

from collections.abc import Callable

import numpy as np

from benchmarks.support.search_data import N_DIMENSIONS, hard
from musicsim._arrays import BoolArray, Uint8Array, Uint64Array

__all__ = ["KINDS", "bytes_of"]


_CENTRES = 10_000
_BLOCK = 65_536
_PROJECTED_ROWS = 1 << 19


def _packed(bits: BoolArray) -> Uint64Array:
    """Pack rows of booleans into codes, the first in the lowest bit."""
    n, n_bits = bits.shape
    packed = np.zeros((n, 8 * -(-n_bits // 64)), np.uint8)
    packed[:, : -(-n_bits // 8)] = np.packbits(bits, axis=1, bitorder="little")
    return packed.view(np.uint64)


def _turned(n_codes: int, n_queries: int, n_bits: int, turned: float, seed: int) -> tuple[Uint64Array, Uint64Array]:
    rng = np.random.default_rng(seed)
    centres = rng.integers(2, size=(_CENTRES, n_bits), dtype=np.uint8).astype(bool)
    drawn = []
    for start in range(0, n_codes + n_queries, _BLOCK):
        n = min(_BLOCK, n_codes + n_queries - start)
        turns = rng.random((n, n_bits), dtype=np.float32) < turned
        drawn.append(_packed(centres[rng.integers(_CENTRES, size=n)] ^ turns))
    codes = np.concatenate(drawn)
    return codes[:n_codes], codes[n_codes:]


def clustered(n_codes: int, n_queries: int, n_bits: int, seed: int = 0) -> tuple[Uint64Array, Uint64Array]:
    """Draw codes and queries around centers, 5 % of the bits flipped.

    Returns
    -------
    codes : uint64 ndarray of shape (n_codes, ceil(n_bits / 64))
    queries : uint64 ndarray of shape (n_queries, ceil(n_bits / 64))
    """
    return _turned(n_codes, n_queries, n_bits, 0.05, seed)


def loose(n_codes: int, n_queries: int, n_bits: int, seed: int = 0) -> tuple[Uint64Array, Uint64Array]:
    """Draw as :func:`clustered` does, 15 % of the bits flipped."""
    return _turned(n_codes, n_queries, n_bits, 0.15, seed)


def projected(n_codes: int, n_queries: int, n_bits: int, seed: int = 0) -> tuple[Uint64Array, Uint64Array]:
    """Return signs of random projections of vectors; shapes as in :func:`clustered`."""
    directions = np.random.default_rng(seed).standard_normal((N_DIMENSIONS, n_bits), dtype=np.float32)
    # The seed of `hard` places its clusters too. So draw once, and convert the vectors to codes in parts.
    vectors, asked = hard(n_codes, n_queries, seed=seed)
    drawn = [
        _packed(part @ directions > 0)
        for part in (*np.split(vectors, range(_PROJECTED_ROWS, n_codes, _PROJECTED_ROWS)), asked)
    ]
    return np.concatenate(drawn[:-1]), drawn[-1]


KINDS: dict[str, Callable[[int, int, int, int], tuple[Uint64Array, Uint64Array]]] = {
    "clustered": clustered,
    "loose": loose,
    "projected": projected,
}


def bytes_of(codes: Uint64Array, n_bits: int) -> Uint8Array:
    """Return codes in the format of other libraries, (n, n_bits / 8); `n_bits` is a multiple of 8."""
    return np.ascontiguousarray(codes.view(np.uint8)[:, : n_bits // 8])
