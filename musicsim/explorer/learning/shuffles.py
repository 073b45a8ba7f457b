"""Shuffled evidence: the same amounts of plays, labels and votes, but unrelated to the sound.

A metric that is trained on it learns only what does not depend on anybody's taste, such as popularity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse

from musicsim._arrays import Int64Array

_ROUNDS = 10  # each halves what is left of the original rows
_GROUPS_PER_BIN = 8


def trade_entries(table: sparse.csr_array, random_state: int | np.random.Generator) -> sparse.csr_array:
    """Shuffle the nonzero entries of a table of lists and items; all row and column counts stay the same.

    In each round, all rows are paired at random. Two rows keep the items that both have, and the others are dealt out
    again (curveball; Strona et al., Nature Communications 2014; Carstens et al. 2016). The result has only ones. Time
    and memory: ten sorts of the entries, and 80 bytes per entry.
    """
    rng = np.random.default_rng(random_state)
    n_rows, n_items = table.shape
    row, item = (part.astype(np.int64) for part in table.nonzero())
    n_pairs = (n_rows + 1) // 2
    for _ in range(_ROUNDS):
        order = np.full(2 * n_pairs, -1)  # a row without a partner keeps its items
        order[:n_rows] = rng.permutation(n_rows)
        pair, is_second = np.empty(n_rows, np.int64), np.empty(n_rows, np.bool_)
        pair[order[:n_rows]], is_second[order[:n_rows]] = np.divmod(np.arange(n_rows), 2)
        by_item = np.argsort(pair[row] * n_items + item, kind="stable")
        is_equal = np.diff(pair[row[by_item]] * n_items + item[by_item]) == 0
        in_both = np.zeros(len(item), np.bool_)
        in_both[1:] |= is_equal
        in_both[:-1] |= is_equal
        free = by_item[~in_both]
        owner = pair[row[free]]  # ascends
        n_first = np.bincount(owner[~is_second[row[free]]], minlength=n_pairs)
        starts = np.cumsum(np.bincount(owner, minlength=n_pairs)) - np.bincount(owner, minlength=n_pairs)
        dealt = free[np.lexsort((rng.random(len(free)), owner))]
        goes_to_second = np.arange(len(free)) - starts[owner] >= n_first[owner]
        row[dealt] = order.reshape(-1, 2)[owner, goes_to_second.astype(np.int64)]
    return sparse.csr_array((np.ones(len(row)), (row, item)), shape=table.shape)


def swap_groups(groups: Sequence[str], random_state: int | np.random.Generator) -> Int64Array:
    """Return a permutation of the rows in which each group gets the rows of a random group of about its size.

    Labels that all rows of a group share then still share a group. Groups of a rare size trade with the next sizes.
    """
    rng = np.random.default_rng(random_state)
    codes, sizes = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)[1:]
    rows_of = np.split(np.argsort(codes, kind="stable"), np.cumsum(sizes)[:-1])

    def draw_order() -> Int64Array:
        by_size = np.lexsort((rng.random(len(sizes)), sizes))
        bins = np.array_split(by_size, max(1, len(sizes) // _GROUPS_PER_BIN))
        return np.concatenate([row for bin_ in bins for group in rng.permutation(bin_) for row in [rows_of[group]]])

    source = np.empty(len(codes), np.int64)
    source[draw_order()] = draw_order()
    return source


def permute_within(parts: Sequence[Int64Array], n: int, random_state: int | np.random.Generator) -> Int64Array:
    """Return a permutation of `n` rows that keeps the rows of each part in it; other rows stay where they are."""
    rng = np.random.default_rng(random_state)
    source = np.arange(n)
    for part in parts:
        source[part] = rng.permutation(part)
    return source


def deal_votes(
    votes: Mapping[tuple[int, int], int], random_state: int | np.random.Generator
) -> dict[tuple[int, int], int]:
    """Shuffle the votes on (query, result) among the results of each query."""
    rng = np.random.default_rng(random_state)
    keys = sorted(votes)
    queries, values = np.array([query for query, _ in keys]), np.array([votes[key] for key in keys])
    shuffled = values[np.lexsort((rng.random(len(keys)), queries))]
    return dict(zip(keys, shuffled.tolist(), strict=True))
