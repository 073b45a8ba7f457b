"""Figures as JSON, for the command line and the HTTP interface."""

from typing import Any

from musicsim.explorer import render_result
from musicsim.extensions.factors.figures import FactorComparison, Figures


def render_comparison(found: FactorComparison) -> dict[str, Any]:
    """Return similar songs with their figures, rounded to a tenth, and the number of songs that were left out."""
    pairs = enumerate(zip(found.hits, found.figures, strict=True), 1)
    songs = [
        render_result(hit.song, rank, hit.similarity, hit.reason) | {"factors": _round(figures)}
        for rank, (hit, figures) in pairs
    ]
    return {"songs": songs, "n_missing": found.n_missing}


def _round(figures: Figures) -> Figures:
    return {name: None if figure is None else round(figure, 1) for name, figure in figures.items()}
