"""Votes and means over the nearest bins of codes.

A bin contains all codes at one Hamming distance. Neighbors are all codes in the `n_bins` nearest nonempty bins, so ties
need not be broken (Nair, Mahajan, Sundararajan, WWW 2012, section 3.5.1).
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Float64Array, Int64Array, IntegerArray, Uint64Array
from musicsim._checks import check_whole
from musicsim.hashing.packing import check_words, hamming_distances
from musicsim.relevance import label_codes

BLOCK_ENTRIES = 2_000_000  # Maximum number of distances in memory, 17 bytes each


def bin_vote(codes: npt.ArrayLike, labels: npt.ArrayLike, queries: npt.ArrayLike, *, n_bins: int = 3) -> npt.NDArray:
    """Return the most frequent label of the codes in the nearest bins.

    Parameters
    ----------
    codes, queries : uint64 array-likes of shape (n, n_words) and (m, n_words)
    labels : array-like of shape (n,) or (n, levels)
        Levels of a hierarchy go from the widest class to the narrowest. On each level, only neighbors that agree with
        the levels above vote. Unknown labels (None, nan, blank, -1) do not vote, and codes with an unknown widest
        label are not neighbors.
    n_bins : int >= 1
        Number of bins that vote.

    Returns
    -------
    ndarray of shape (m,) or (m, levels), of the type of the labels (object for a list of strings)

        - Ties go to the label with more votes in the nearest bin, then to the first label in order.
        - The label of a level is unknown if no neighbor that agrees with the levels above has a known label.

    Raises
    ------
    ValueError
        If no label is known, or labels cannot be sorted.

    Notes
    -----
    Time: O(n m). Memory: 50 MB, and the neighbors of a block of queries.

    Examples
    --------
    >>> from musicsim.hashing import bin_vote, pack_bits
    >>> codes = pack_bits([[0, 0, 0], [0, 0, 1], [1, 1, 1]])
    >>> bin_vote(codes, ["calm", "calm", "loud"], pack_bits([[0, 1, 0], [1, 1, 1]]), n_bins=1)
    array(['calm', 'loud'], dtype=object)
    """
    table = np.asarray(labels)
    if table.dtype.kind == "U" and not hasattr(labels, "dtype"):
        table = np.asarray(labels, dtype=object)  # keeps None and nan, which would otherwise become strings
    database = check_words(codes, "codes")
    if table.ndim not in (1, 2) or len(table) != len(database) or not table.size:
        raise ValueError(f"labels has shape {table.shape}; it must be ({len(database)},) or ({len(database)}, levels).")
    levels = table[:, None] if table.ndim == 1 else table
    is_known = np.stack([label_codes(level, "labels") >= 0 for level in levels.T], axis=1)
    votes_at_all = is_known[:, 0]
    if not votes_at_all.any():
        raise ValueError("labels: all labels are unknown; at least one known label is needed.")
    database, levels, is_known = database[votes_at_all], levels[votes_at_all], is_known[votes_at_all]
    numbered_levels = _number_labels(levels, is_known)
    elected = []
    for *voters, n_queries in _find_neighbors(database, queries, n_bins):
        rows, neighbors, is_nearest = voters
        choices = []
        for names, numbers in numbered_levels:
            can_vote = numbers[neighbors] >= 0
            rows, neighbors, is_nearest = rows[can_vote], neighbors[can_vote], is_nearest[can_vote]
            labels_voted = numbers[neighbors]
            ballots = rows * len(names) + labels_voted
            n_ballots = n_queries * len(names)
            counts = np.bincount(ballots, minlength=n_ballots) * (len(database) + 1)
            counts += np.bincount(ballots[is_nearest], minlength=n_ballots)
            votes = counts.reshape(n_queries, len(names))
            choice = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
            choices.append(names[choice])
            agrees = labels_voted == choice[rows]
            rows, neighbors, is_nearest = rows[agrees], neighbors[agrees], is_nearest[agrees]
        elected.append(np.stack(choices, axis=1))
    result = np.concatenate(elected)
    return result[:, 0] if table.ndim == 1 else result


def bin_mean(codes: npt.ArrayLike, targets: npt.ArrayLike, queries: npt.ArrayLike, *, n_bins: int = 3) -> Float64Array:
    """Return the mean target of the codes in the nearest bins.

    Parameters
    ----------
    codes, queries, n_bins : as in :func:`bin_vote`
    targets : array-like of shape (n,)

    Returns
    -------
    float64 ndarray of shape (m,)

    Examples
    --------
    >>> from musicsim.hashing import bin_mean, pack_bits
    >>> codes = pack_bits([[0, 0, 0], [0, 0, 1], [1, 1, 1]])
    >>> bin_mean(codes, [60.0, 80.0, 180.0], pack_bits([[0, 0, 0]]), n_bins=2)  # codes that differ in at most one bit
    array([70.])
    """
    values = np.asarray(targets, dtype=np.float64)
    database = check_words(codes, "codes")
    if values.shape != (len(database),) or not len(values):
        raise ValueError(f"targets has shape {values.shape}; it must be ({len(database)},) and not empty.")
    means = [
        np.bincount(rows, values[neighbors], n_queries) / np.bincount(rows, minlength=n_queries)
        for rows, neighbors, _, n_queries in _find_neighbors(database, queries, n_bins)
    ]
    return np.concatenate(means)


def bin_edges(distances: IntegerArray, n_bins: int, n_bits: int) -> Int64Array:
    """Return the largest distance (m,) in the `n_bins` nearest nonempty bins, or in all bins if there are fewer.

    `distances` has shape (m, n) and entries up to `n_bits`; negative entries are ignored.
    """
    m = len(distances)
    flat = distances + (np.arange(m) * (n_bits + 2) + 1)[:, None]
    is_filled = np.bincount(flat.ravel(), minlength=m * (n_bits + 2)).reshape(m, n_bits + 2)[:, 1:] > 0
    is_near = is_filled & (np.cumsum(is_filled, axis=1) <= n_bins)
    return np.asarray(n_bits - is_near[:, ::-1].argmax(axis=1))


def _number_labels(levels: npt.NDArray, is_known: BoolArray) -> list[tuple[npt.NDArray, Int64Array]]:
    """Return each level's sorted labels (any unknown label comes last), and each row's label number (-1: unknown)."""
    unknown = levels[~is_known][:1]
    numbered_levels = []
    for level, has_label in zip(levels.T, is_known.T, strict=True):
        numbers = np.full(len(level), -1)
        try:
            names, numbers[has_label] = np.unique(level[has_label], return_inverse=True)
        except TypeError as error:
            raise ValueError("labels cannot be sorted; use only strings or only numbers.") from error
        numbered_levels.append((np.concatenate([names, unknown]), numbers))
    return numbered_levels


def _find_neighbors(
    codes: Uint64Array, queries: npt.ArrayLike, n_bins: int
) -> Iterator[tuple[Int64Array, Int64Array, BoolArray, int]]:
    """Yield, per block of queries, each neighbor's query and code, whether its bin is nearest, and the block size."""
    check_whole("n_bins", n_bins, 1)
    words = check_words(queries, "queries")
    n_bits = 64 * codes.shape[1]
    block = max(1, BLOCK_ENTRIES // len(codes))
    # without queries, there is one empty block, which gives the result its shape
    for start in range(0, max(len(words), 1), block):
        distances = hamming_distances(words[start : start + block], codes)
        rows, neighbors = np.nonzero(distances <= bin_edges(distances, n_bins, n_bits)[:, None])
        is_nearest = distances[rows, neighbors] == distances.min(axis=1, initial=n_bits)[rows]
        yield rows, neighbors, is_nearest, len(distances)
