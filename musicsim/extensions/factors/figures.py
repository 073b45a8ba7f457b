"""Figures of two songs, one per factor: the percentage of the library's pairs of songs that are farther apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from musicsim.explorer import Factors, Hit, SearchRequest, Snapshot, compare_in, find_requested

Figures = dict[str, float | None]  # percentages, keyed by factor; None if one of the songs does not have it


@dataclass(frozen=True, slots=True)
class FactorComparison:
    """Songs similar to a song, with their figures. `n_missing` songs were left out because they lack the factor."""

    hits: list[Hit]
    figures: list[Figures]
    n_missing: int


def measure_factors(factors: Factors, song_id: int, other_ids: Sequence[int]) -> list[Figures]:
    """Return the figures of a song and each of the others.

    A figure is the percentage of the pairs of 300 random songs whose squared distance in the factor is larger than that
    of the two songs. Raises NotFoundError for an unknown song.
    """
    rows = np.array([factors.sound.row_of(i) for i in (song_id, *other_ids)])
    found: list[Figures] = [{} for _ in other_ids]
    for name, sampled in factors.sampled.items():
        one, *others = factors.vectors(name, rows).astype(np.float64)
        for figures, other in zip(found, others, strict=True):
            squared = float(np.square(one - other).sum())
            is_known = np.isfinite(squared) and len(sampled)
            n_farther = len(sampled) - int(np.searchsorted(sampled, squared, side="right"))
            figures[name] = 100 * n_farther / len(sampled) if is_known else None
    return found


def find_with_figures(snapshot: Snapshot, song_id: int, request: SearchRequest) -> FactorComparison:
    """Return the songs most similar to a song, with their figures; raises the errors of :func:`find_requested`."""
    hits = find_requested(snapshot, song_id, request)
    view = compare_in(snapshot, request.by) if request.by else None
    factors = view.factors if view else Factors(snapshot)
    figures = measure_factors(factors, song_id, [hit.song.id for hit in hits])
    return FactorComparison(hits, figures, view.count_missing() if view else 0)
