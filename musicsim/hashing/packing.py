"""Bits in words: packing, unpacking, and distances between codes.

Conventions. A code of B bits is a row of ``ceil(B / 64)`` words, uint64. Bit j is bit ``j % 64`` of word ``j // 64``,
the least significant bit of a word being its bit 0; bits from B on are 0.
"""

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Int64Array, Uint64Array

WORD = 64


def pack_bits(bits: npt.ArrayLike) -> Uint64Array:
    """Pack rows of bits into words.

    Parameters
    ----------
    bits : array-like of shape (n, n_bits), bool, or numbers 0 and 1

    Returns
    -------
    uint64 ndarray of shape (n, ceil(n_bits / 64))

    Raises
    ------
    ValueError
        If `bits` has no columns, or anything but 0 and 1.

    Examples
    --------
    >>> pack_bits([[1, 0, 1], [0, 1, 0]])
    array([[5],
           [2]], dtype=uint64)
    """
    given = np.asarray(bits)
    if given.ndim != 2 or not given.shape[1]:
        raise ValueError(f"bits: shape {given.shape} should be (n, n_bits), at least one bit.")
    table = given.astype(bool)
    if given.dtype != bool and not np.array_equal(table, given):
        raise ValueError("bits should be 0 or 1; compare with a threshold first.")
    n, n_bits = table.shape
    n_words = -(-n_bits // WORD)
    room = np.zeros((n, n_words * WORD // 8), np.uint8)
    filled = np.packbits(table, axis=1, bitorder="little")
    room[:, : filled.shape[1]] = filled
    # bytes are in little-endian order whatever the machine's own is
    return room.view("<u8").astype(np.uint64, copy=False)


def unpack_bits(codes: npt.ArrayLike, n_bits: int) -> BoolArray:
    """The bits of codes, as :func:`pack_bits` took them.

    Parameters
    ----------
    codes : uint64 array-like of shape (n, n_words)
    n_bits : int, 1 <= n_bits <= 64 n_words

    Returns
    -------
    bool ndarray of shape (n, n_bits)

    Raises
    ------
    ValueError
        If `codes` are not uint64 or too short.
    """
    words = checked_words(codes, "codes")
    if not 1 <= n_bits <= WORD * words.shape[1]:
        raise ValueError(f"n_bits={n_bits} should be 1 to {WORD * words.shape[1]} with codes of this width.")
    octets = np.ascontiguousarray(words.astype("<u8", copy=False)).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=n_bits, bitorder="little").astype(bool)


def hamming_distances(codes: npt.ArrayLike, others: npt.ArrayLike) -> Int64Array:
    """Bits in which each code differs from each other one.

    Parameters
    ----------
    codes : uint64 array-like of shape (n, n_words)
    others : uint64 array-like of shape (m, n_words)

    Returns
    -------
    int64 ndarray of shape (n, m)

    Raises
    ------
    ValueError
        If codes are not uint64, or differ in width.

    Notes
    -----
    Memory: 17 n m bytes while it is made; ask in blocks.
    """
    left, right = checked_words(codes, "codes"), checked_words(others, "others")
    if left.shape[1] != right.shape[1]:
        raise ValueError(f"codes have {left.shape[1]} words and others {right.shape[1]}; give both one width.")
    distances = np.zeros((len(left), len(right)), np.int64)
    for word in range(left.shape[1]):
        distances += np.bitwise_count(left[:, word, None] ^ right[:, word])
    return distances


def checked_words(codes: npt.ArrayLike, name: str) -> Uint64Array:
    """Codes as they are, if they are."""
    words = np.asarray(codes)
    if words.dtype != np.uint64:
        raise ValueError(f"{name} should be uint64, 64 bits a word, not {words.dtype}.")
    if words.ndim != 2 or not words.shape[1]:
        raise ValueError(f"{name} should be two-dimensional, one code a row; its shape is {words.shape}.")
    return words
