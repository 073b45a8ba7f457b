"""Codes as bits packed into words: packing, unpacking, and distances between codes.

A code of B bits is a row of ``ceil(B / 64)`` uint64 words. Bit j is bit ``j % 64`` of word ``j // 64``, least
significant first; bits from B upward are 0.
"""

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Int64Array, Uint64Array
from musicsim._checks import check_dense

WORD = 64


def pack_bits(bits: npt.ArrayLike) -> Uint64Array:
    """Pack rows of bits into words.

    Parameters
    ----------
    bits : array-like of shape (n, n_bits), bool or the numbers 0 and 1

    Returns
    -------
    uint64 ndarray of shape (n, ceil(n_bits / 64))

    Examples
    --------
    >>> from musicsim.hashing import pack_bits
    >>> pack_bits([[1, 0, 1], [0, 1, 0]])  # the first bit is the lowest
    array([[5],
           [2]], dtype=uint64)
    """
    numbers = np.asarray(bits)
    if numbers.ndim != 2 or not numbers.shape[1]:
        raise ValueError(f"bits has shape {numbers.shape}; it must be (n, n_bits) with at least one bit.")
    table = numbers.astype(bool)
    if numbers.dtype != bool and not np.array_equal(table, numbers):
        raise ValueError("bits must be 0 or 1; compare the values with a threshold first.")
    n, n_bits = table.shape
    codes = np.zeros((n, -(-n_bits // WORD) * WORD // 8), np.uint8)
    octets = np.packbits(table, axis=1, bitorder="little")
    codes[:, : octets.shape[1]] = octets
    # bytes are little-endian on every machine
    return codes.view("<u8").astype(np.uint64, copy=False)


def unpack_bits(codes: npt.ArrayLike, n_bits: int) -> BoolArray:
    """Return the bits of codes: the inverse of :func:`pack_bits`.

    Parameters
    ----------
    codes : uint64 array-like of shape (n, n_words)
    n_bits : int, 1 <= n_bits <= 64 n_words

    Returns
    -------
    bool ndarray of shape (n, n_bits)

    Examples
    --------
    >>> from musicsim.hashing import pack_bits, unpack_bits
    >>> unpack_bits(pack_bits([[1, 0, 1], [0, 1, 0]]), 3).astype(int)
    array([[1, 0, 1],
           [0, 1, 0]])
    """
    words = check_words(codes, "codes")
    if not 1 <= n_bits <= WORD * words.shape[1]:
        raise ValueError(f"n_bits={n_bits} must be from 1 to {WORD * words.shape[1]} for codes of this width.")
    octets = np.ascontiguousarray(words.astype("<u8", copy=False)).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=n_bits, bitorder="little").astype(bool)


def hamming_distances(codes: npt.ArrayLike, others: npt.ArrayLike) -> Int64Array:
    """Return the Hamming distance between each code in `codes` and each code in `others`.

    Parameters
    ----------
    codes, others : uint64 array-likes of shape (n, n_words) and (m, n_words)

    Returns
    -------
    int64 ndarray of shape (n, m)

    Notes
    -----
    Memory: 17 n m bytes, so use blocks.

    Examples
    --------
    >>> from musicsim.hashing import hamming_distances, pack_bits
    >>> codes = pack_bits([[0, 0, 0], [0, 1, 1], [1, 1, 1]])
    >>> hamming_distances(codes[:1], codes)
    array([[0, 2, 3]])
    """
    left, right = check_words(codes, "codes"), check_words(others, "others")
    if left.shape[1] != right.shape[1]:
        raise ValueError(f"codes has {left.shape[1]} words and others has {right.shape[1]}; the widths must be equal.")
    distances = np.zeros((len(left), len(right)), np.int64)
    for word in range(left.shape[1]):
        distances += np.bitwise_count(left[:, word, None] ^ right[:, word])
    return distances


def check_words(codes: npt.ArrayLike, name: str) -> Uint64Array:
    """Return codes as an array; raise ValueError with the argument's `name` unless they are uint64 (n, n_words)."""
    check_dense(name, codes)
    words = np.asarray(codes)
    if words.dtype != np.uint64:
        raise ValueError(f"{name} must be uint64, with 64 bits per word, not {words.dtype}.")
    if words.ndim != 2 or not words.shape[1]:
        raise ValueError(f"{name} has shape {words.shape}; it must be two-dimensional, with one code per row.")
    return words
