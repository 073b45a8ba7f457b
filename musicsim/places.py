"""Find the positions of numbers in an array."""

import numpy as np

from musicsim._arrays import Int64Array

_DENSE = 4  # use a lookup table if the range of the numbers is at most this many times their count


def places_in_order(ascending: Int64Array, wanted: Int64Array, places: Int64Array | None = None) -> Int64Array:
    """Return the index of each wanted number in an ascending array, or the entry of `places` there; -1 if absent."""
    if not len(ascending):
        return np.full(len(wanted), -1, dtype=np.int64)
    first, last = int(ascending[0]), int(ascending[-1])
    if last - first < _DENSE * min(len(ascending), len(wanted)):
        # five times as fast as binary search, which takes at least 0.1 s for a million numbers
        place_of = np.full(last - first + 1, -1, dtype=np.int64)
        place_of[ascending - first] = np.arange(len(ascending)) if places is None else places
        is_in_range = (first <= wanted) & (wanted <= last)
        return np.where(is_in_range, place_of[np.where(is_in_range, wanted, first) - first], -1)
    at = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return np.where(ascending[at] == wanted, at if places is None else places[at], -1)


def places_among(known: Int64Array, wanted: Int64Array) -> Int64Array:
    """Return the index of each wanted number in an unsorted array of unique numbers; -1 if absent."""
    if np.array_equal(known, wanted):
        return np.arange(len(known))
    order = np.argsort(known)
    return places_in_order(known[order], wanted, order)
