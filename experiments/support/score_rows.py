"""Rows of a table of rankings: measures with intervals over composers, and differences to one of the rankings.

:func:`list_scores` shows these rows in the documents.
"""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.support.columns import SHARE_2, SHARE_3, Column, KeptRow, KeptRows, Lines, drop_zeros, list_columns
from benchmarks.support.report import format_lead
from experiments.support.pieces import MEASURES, Pieces, Scores
from musicsim._arrays import Float64Array
from musicsim.evaluation import bootstrap_pairs

__all__ = ["list_scores", "paired_interval", "score_row", "with_interval"]

_HEADINGS = {"P@1": "P@1", "P@5": "P@5", "package": "same package at rank 1", "within": "within"}


def score_row(what: str, of: Scores, reference: Scores, pieces: Pieces, seed: int) -> dict[str, Any]:
    """Return the measures and the skew of a ranking, with 95 % intervals, and the leads over the reference.

    Composers are resampled, but packages for the measure of packages. A lead is paired: it is the mean difference of
    the same queries. Intervals are omitted where fewer than two composers have queries.
    """
    row: dict[str, Any] = {"what": what}
    for measure in MEASURES:
        row[measure] = of.mean(measure)
        ours, others = of.by_query[measure], reference.by_query[measure]
        if bounds := paired_interval(ours, np.zeros(len(ours)), pieces, measure, seed):
            row[f"{measure} interval"] = f"{bounds[1]:.3f} to {bounds[2]:.3f}"
        if of is not reference and (bounds := paired_interval(ours, others, pieces, measure, seed)):
            mean, low, high = bounds
            row[f"lead {measure}"] = format_lead(mean, low, high)
    return row | {"skew": of.skew}


def paired_interval(
    a: Float64Array, b: Float64Array, pieces: Pieces, measure: str, seed: int
) -> tuple[float, float, float] | None:
    """Return the mean of ``a - b`` over the pieces with scores and its interval; None for fewer than two composers."""
    groups = pieces.packages if measure == "package" else pieces.composers
    if len(np.unique(groups[np.isfinite(a - b)])) < 2:
        return None
    return bootstrap_pairs(a, b, groups.tolist(), random_state=seed)


def list_scores(rows: KeptRows) -> Lines:
    """Yield the scores of rankings with their intervals, and the leads over Sound."""
    lines = list(_SCORES(rows))
    yield from lines if rows else [*lines, ["not measured yet", *[""] * (len(lines[0]) - 1)]]


def with_interval(value: str, interval: str | None) -> str:
    """Format a score with its interval in parentheses."""
    return f"{value} ({drop_zeros(interval)})" if interval else value


def _format_score(row: KeptRow, measure: str) -> str:
    return with_interval(SHARE_3(row[measure]), row.get(f"{measure} interval"))


_SCORES = list_columns(
    Column("set", lambda row: row["set"].removeprefix("set ")),
    Column("", "what"),
    *(Column(heading, partial(_format_score, measure=measure)) for measure, heading in _HEADINGS.items()),
    Column("skewness", "skew", SHARE_2),
    *(Column(f"lead in {measure} over Sound", f"lead {measure}", drop_zeros) for measure in ("P@1", "P@5")),
)
