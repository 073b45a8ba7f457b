"""Contributions with given numbers."""

from musicsim.explorer.learning.verdict import RANKING_MEASURES
from musicsim.extensions.pooling.contribution import Contribution, LibraryCounts, ModelId, PooledFold, ScoreDifference


def make_example(mean, error=0.02, *, classical="", commit="0" * 12, other="net"):
    """Return a contribution in which all measures have the same difference."""
    fold = PooledFold(mean=mean, low=mean - 0.1, high=mean + 0.1)
    difference = ScoreDifference(mean=mean, standard_error=error, folds=(fold,))
    return Contribution(
        commit=commit,
        ground_truth="genre",
        models=(ModelId(name="Sound", hash="a" * 16), ModelId(name=other, hash="b" * 16)),
        library=LibraryCounts(
            songs="200 to 499", queries="200 to 499", artists="20 to 49", genres="2 to 4",
            shares={"classical": classical} if classical else {},
        ),
        differences=dict.fromkeys(RANKING_MEASURES, difference),
    )  # fmt: skip


def write_example(path, mean, error=0.02, **options):
    """Write such a contribution, and return its path."""
    path.write_text(make_example(mean, error, **options).text, encoding="ascii")
    return path
