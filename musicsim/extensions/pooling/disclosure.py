"""The rules for numbers that leave a library: bins for counts, cells of at least 20 songs, and rounded differences.

No random numbers are drawn, so the same library gives the same bytes. Artists are put into five folds by a hash of
their names, and intervals come from a formula. A song that is removed therefore does not change the fold of others.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from math import floor, log10, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, Int64Array
from musicsim.library import genre_key

MIN_SONGS, MIN_ARTISTS = 20, 5  # smallest number of songs, and of their artists, in a cell
N_FOLDS = 5
_MIN_ERROR = 1e-3  # two models with equal scores in a small library would otherwise seem to be known exactly
EDGES = tuple(m * 10**e for e in range(7) for m in (1, 2, 5))
SHARES = ("under 10%", "10% to 24%", "25% to 49%", "50% to 74%", "75% or more")
_SHARE_EDGES = (0.1, 0.25, 0.5, 0.75)
COUNTS = (
    "0", "1", *(f"{low:,} to {high - 1:,}" for low, high in pairwise(EDGES[1:])), f"{EDGES[-1]:,} or more"
)  # fmt: skip
FAMILIES = (
    "blues", "classical", "country", "electronic", "folk", "hip hop", "jazz", "latin", "metal", "pop", "punk", "r&b",
    "reggae", "rock", "soul", "soundtrack",
)  # fmt: skip
"""The only genres that a contribution may name; a song counts if its genre contains the word."""


class Estimate(NamedTuple):
    mean: float
    error: float  # standard error
    half: float  # half of the 95% interval


def bin_count(n: int) -> str:
    """Return the bin of a count: 20 to 49, 50 to 99, 100 to 199, and so on."""
    return COUNTS[bisect_right(EDGES, n)]


def bin_shares(genres: Sequence[str | None]) -> dict[str, str]:
    """Return the bins of the shares of genre families, among the songs with a genre; small families are left out."""
    keys = [genre_key(genre) for genre in genres if genre]
    sizes = {family: sum(genre_key(family) in key for key in keys) for family in FAMILIES}
    return {family: SHARES[bisect_right(_SHARE_EDGES, n / len(keys))] for family, n in sizes.items() if n >= MIN_SONGS}


def hash_names(names: Sequence[str]) -> Int64Array:
    """Return a hash below 2**62 per name, for an order and for folds that other names do not change."""
    digests = {name: blake2b(name.encode("utf-8", "replace"), digest_size=8).digest() for name in set(names)}
    return np.array([int.from_bytes(digests[name]) >> 2 for name in names], dtype=np.int64)


def find_cells(artists: Sequence[str]) -> list[Int64Array]:
    """Return the rows of each fold of artists. A fold that is too small is joined with a neighbor."""
    fold, names = hash_names(artists) % N_FOLDS, np.asarray(artists)
    cells = [np.empty(0, dtype=np.int64)]
    for number in range(N_FOLDS):
        cells[-1] = np.union1d(cells[-1], np.flatnonzero(fold == number))
        if len(cells[-1]) >= MIN_SONGS and len(np.unique(names[cells[-1]])) >= MIN_ARTISTS:
            cells.append(cells[0][:0])
    rest = cells.pop()
    if cells:
        cells[-1] = np.union1d(cells[-1], rest)
    return cells


def estimate(differences: Float64Array, artists: npt.ArrayLike) -> Estimate:
    """Estimate a mean over queries whose artists, not songs, are independent.

    The standard error is that of a ratio estimate with artists as clusters. The interval uses Student's t.
    """
    from scipy.stats import t

    mean = float(differences.mean())
    codes = np.unique(np.asarray(artists), return_inverse=True)[1]
    sums = np.bincount(codes, weights=differences - mean)
    n = len(sums)
    error = max(_MIN_ERROR, sqrt(n / (n - 1) * float(sums @ sums)) / len(differences))
    return Estimate(mean, error, float(t.ppf(0.975, n - 1)) * error)


def step_of(error: float) -> tuple[float, int]:
    """Return the largest of 1, 2 or 5 × 10^-d up to `error`, and its number of decimals."""
    exponent = floor(log10(error) + 1e-9)
    digit = max(m for m in (1, 2, 5) if m == 1 or m * 10.0**exponent <= error * (1 + 1e-9))
    return digit * 10.0**exponent, max(0, -exponent)


def round_to(value: float, error: float) -> float:
    """Round a number to a multiple of the step that belongs to an error."""
    step, decimals = step_of(error)
    return round(round(value / step) * step, decimals) + 0.0  # + 0.0 avoids -0.0


def differences_of(
    before: Mapping[str, Float64Array], after: Mapping[str, Float64Array], artists: Sequence[str]
) -> dict[str, tuple[Estimate, list[Estimate]]]:
    """Return the difference of each measure over all queries, and in each cell; {} if there are no cells."""
    cells, names = find_cells(artists), np.asarray(artists)
    found = {}
    for measure in before if cells else ():
        difference = after[measure] - before[measure]
        found[measure] = estimate(difference, names), [estimate(difference[rows], names[rows]) for rows in cells]
    return found
