"""The random-effects table of many contributions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from musicsim.explorer.learning.verdict import RANKED
from musicsim.extensions.pooling.contribution import Contribution, read_contribution
from musicsim.extensions.pooling.disclosure import SHARES
from musicsim.extensions.pooling.random_effects import Combined, combine_effects


@dataclass(frozen=True, slots=True)
class Row:
    """One measure, in all libraries or in a subgroup."""

    measure: str
    subgroup: str  # empty for all libraries
    combined: Combined
    n_behind: int  # number of libraries in which the second model is behind


@dataclass(frozen=True, slots=True)
class PooledTable:
    """Contributions with the same ground truth, models and hashes of models."""

    ground_truth: str
    models: tuple[str, str]  # the rows tell how far the second is ahead of the first
    versions: list[str]  # of musicsim, with its commit
    rows: list[Row]


def read_files(paths: Iterable[Path]) -> tuple[list[Contribution], list[str]]:
    """Read contributions, each once; also return a sentence per file that repeats another.

    The contributions are sorted by their hashes, so the order of the files has no effect.
    """
    found: dict[str, tuple[Contribution, Path]] = {}
    repeated = []
    for path in paths:
        one = read_contribution(path)
        if one.identity in found:
            repeated.append(f"{path} repeats {found[one.identity][1]}, and counts once.")
        else:
            found[one.identity] = one, path
    return [found[identity][0] for identity in sorted(found)], repeated


def pool_contributions(contributions: Sequence[Contribution], family: str = "") -> list[PooledTable]:
    """Return a table per ground truth and pair of models, those with the most libraries first.

    With `family`, a genre family, libraries are also grouped by its share: below 25%, or at least that.
    """
    groups: dict[tuple[str, ...], list[Contribution]] = {}
    for one in contributions:
        a, b = one.models
        groups.setdefault((one.ground_truth, a.name, b.name, a.hash, b.hash), []).append(one)
    tables = []
    for (truth, first, second, *_), members in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        parts = {"": members}
        if family:
            has_much = [one.library.shares.get(family) in SHARES[2:] for one in members]
            for words, is_much in ((f"25% or more {family}", True), (f"less than 25% {family}", False)):
                parts[words] = [one for one, own in zip(members, has_much, strict=True) if own == is_much]
        rows = [_row(measure, words, part) for measure in RANKED for words, part in parts.items() if part]
        versions = sorted({f"{one.musicsim} ({one.commit or 'unknown'})" for one in members})
        tables.append(PooledTable(truth, (first, second), versions, rows))
    return tables


def _row(measure: str, subgroup: str, members: Sequence[Contribution]) -> Row:
    differences = [one.differences[measure] for one in members]
    combined = combine_effects([d.mean for d in differences], [d.standard_error for d in differences])
    return Row(measure, subgroup, combined, sum(d.mean < 0 for d in differences))
