"""Scores of evaluations in tables and in JSON."""

import math
from collections.abc import Sequence
from typing import Any

from musicsim.errors import ModelError, NotFoundError
from musicsim.explorer.evaluation.quality import Figure
from musicsim.explorer.learning.supervision import Coverage, coverage
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from musicsim.library.stores.models import ModelRecord

MEASURES = {"auc": "AUC", "map": "MAP", "mrr": "MRR", "precision": "P@10"}
"""Titles of measures, by name."""


def format_figure(figure: Figure) -> str:
    """Format a mean with its interval."""
    if math.isnan(figure.mean):
        return "-"
    interval = "" if math.isnan(figure.low) else f" ({figure.low:.3f} to {figure.high:.3f})"
    return f"{figure.mean:.3f}{interval}"


def replace_nan(value: Any) -> Any:
    """Replace each NaN in mappings and lists by None, for JSON."""
    if isinstance(value, dict):
        return {key: replace_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [replace_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def find_coverage(library: Library, records: Sequence[ModelRecord], kind: str | None) -> Coverage:
    """Return the coverage of a kind of ground truth, or of the first kind with relevant songs.

    Raises NotFoundError without a model, and ModelError if no song has a relevant song.
    """
    if not records:
        raise NotFoundError("this library does not have a similarity model yet. Add some songs first.")
    for covered in _coverages(library, records):
        if covered.n_songs if kind is None else covered.kind == kind:
            return covered
    raise ModelError(
        "this library lacks a ground truth of similarity. Import plays or playlists, or add genres or tags."
    )


def _coverages(library: Library, records: Sequence[ModelRecord]) -> list[Coverage]:
    """Return the coverage of all kinds, for the first model that can be read."""
    *others, last = records
    for record in others:
        try:
            return coverage(take_snapshot(library, record.id))
        except ModelError:  # damaged; the evaluation reports it
            continue
    return coverage(take_snapshot(library, last.id))
