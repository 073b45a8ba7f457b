"""Votes and means over the nearest bins of codes.

A bin holds all codes at one Hamming distance. Neighbours are the codes of the `n_bins` nearest bins that are not empty,
all of them, so that ties are not broken (Nair, Mahajan, Sundararajan, WWW 2012, 3.5.1).
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Float64Array, Int64Array, IntegerArray, Uint64Array
from musicsim._checks import check_whole
from musicsim.hashing.packing import checked_words, hamming_distances
from musicsim.relevance import label_codes

_BLOCK_ENTRIES = 2_000_000
"""Distances held at once, 17 bytes each."""


def bin_vote(codes: npt.ArrayLike, labels: npt.ArrayLike, queries: npt.ArrayLike, *, n_bins: int = 3) -> npt.NDArray:
    """The label that most codes of the nearest bins have.

    Parameters
    ----------
    codes : uint64 array-like of shape (n, n_words)
    labels : array-like of shape (n,) or (n, levels)
        Levels of a hierarchy from the widest class to the narrowest: each is elected by the neighbours that agree
        with what has been elected above. Unknown ones (None, nan, blank, -1) do not vote, and codes of which the
        widest is unknown are no neighbours.
    queries : uint64 array-like of shape (m, n_words)
    n_bins : int >= 1
        Bins that vote.

    Returns
    -------
    ndarray of shape (m,) or (m, levels), of the labels' type
        Of labels with equally many votes, the one with more votes in the nearest bin, then the first in order; an
        unknown one where no neighbour that agrees so far has any. Of objects, if `labels` is a list of texts.

    Raises
    ------
    ValueError
        If codes and labels do not fit, none is known, or they cannot be put in order.

    Notes
    -----
    O(n m) time; 50 MB and the neighbours of a block of queries.
    """
    table = np.asarray(labels)
    if table.dtype.kind == "U" and not hasattr(labels, "dtype"):
        table = np.asarray(labels, dtype=object)  # where None and nan are not texts
    known = checked_words(codes, "codes")
    if table.ndim not in (1, 2) or len(table) != len(known) or not table.size:
        raise ValueError(f"labels: shape {table.shape} should be ({len(known)},) or ({len(known)}, levels).")
    levels = table[:, None] if table.ndim == 1 else table
    is_known = np.stack([label_codes(level, "labels") >= 0 for level in levels.T], axis=1)
    votes_at_all = is_known[:, 0]
    if not votes_at_all.any():
        raise ValueError("labels: none is known; there is nothing to elect.")
    known, levels, is_known = known[votes_at_all], levels[votes_at_all], is_known[votes_at_all]
    numbered = _numbered(levels, is_known)
    elected = []
    for *neighbours, n_queries in _neighbours(known, queries, n_bins):
        rows, found, is_nearest = neighbours
        choices = []
        for names, numbers in numbered:
            can_vote = numbers[found] >= 0
            rows, found, is_nearest = (part[can_vote] for part in (rows, found, is_nearest))
            voted = numbers[found]
            ballots = rows * len(names) + voted
            room = n_queries * len(names)
            votes = np.bincount(ballots, minlength=room) * (len(known) + 1)
            votes += np.bincount(ballots[is_nearest], minlength=room)
            votes = votes.reshape(n_queries, len(names))
            choice = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
            choices.append(names[choice])
            agree = voted == choice[rows]
            rows, found, is_nearest = (part[agree] for part in (rows, found, is_nearest))
        elected.append(np.stack(choices, axis=1))
    result = np.concatenate(elected)
    return result[:, 0] if table.ndim == 1 else result


def bin_mean(codes: npt.ArrayLike, targets: npt.ArrayLike, queries: npt.ArrayLike, *, n_bins: int = 3) -> Float64Array:
    """The mean of the targets of the codes in the nearest bins.

    Parameters
    ----------
    codes, queries, n_bins
        As of :func:`bin_vote`.
    targets : array-like of shape (n,)

    Returns
    -------
    float64 ndarray of shape (m,)

    Raises
    ------
    ValueError
        If codes and targets do not fit, or are none.
    """
    values = np.asarray(targets, dtype=np.float64)
    known = checked_words(codes, "codes")
    if values.shape != (len(known),) or not len(values):
        raise ValueError(f"targets: shape {values.shape} should be ({len(known)},), at least one.")
    means = [
        np.bincount(rows, values[found], n_queries) / np.bincount(rows, minlength=n_queries)
        for rows, found, _, n_queries in _neighbours(known, queries, n_bins)
    ]
    return np.concatenate(means)


def bin_edges(distances: IntegerArray, n_bins: int, n_bits: int) -> Int64Array:
    """The largest distance, (m,), of the `n_bins` nearest bins that are not empty; of all, where there are fewer.

    Distances are (m, n), at most `n_bits`; negative ones do not count.
    """
    m = len(distances)
    flat = distances + (np.arange(m) * (n_bits + 2) + 1)[:, None]
    is_filled = np.bincount(flat.ravel(), minlength=m * (n_bits + 2)).reshape(m, n_bits + 2)[:, 1:] > 0
    is_among = is_filled & (np.cumsum(is_filled, axis=1) <= n_bins)
    return np.asarray(n_bits - is_among[:, ::-1].argmax(axis=1))


def _numbered(levels: npt.NDArray, is_known: BoolArray) -> list[tuple[npt.NDArray, Int64Array]]:
    """Labels of each level in order, an unknown one last if there is any, and their numbers; -1 where unknown."""
    unknown = levels[~is_known][:1]
    numbered = []
    for level, known in zip(levels.T, is_known.T, strict=True):
        numbers = np.full(len(level), -1)
        try:
            names, numbers[known] = np.unique(level[known], return_inverse=True)
        except TypeError as error:
            raise ValueError("labels cannot be put in order; give texts alone or numbers alone.") from error
        numbered.append((np.concatenate([names, unknown]), numbers))
    return numbered


def _neighbours(
    codes: Uint64Array, queries: npt.ArrayLike, n_bins: int
) -> Iterator[tuple[Int64Array, Int64Array, BoolArray, int]]:
    """Neighbours of a block of queries after another: whose, which code, whether in the nearest bin; block size."""
    check_whole("n_bins", n_bins, 1)
    asked = checked_words(queries, "queries")
    n_bits = 64 * codes.shape[1]
    block = max(1, _BLOCK_ENTRIES // len(codes))
    # one block even of no queries, which has the shape of the answer
    for start in range(0, max(len(asked), 1), block):
        distances = hamming_distances(asked[start : start + block], codes)
        rows, found = np.nonzero(distances <= bin_edges(distances, n_bins, n_bits)[:, None])
        is_nearest = distances[rows, found] == distances.min(axis=1, initial=n_bits)[rows]
        yield rows, found, is_nearest, len(distances)
