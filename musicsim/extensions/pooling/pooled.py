"""The random-effects table of many contributions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from musicsim.errors import LibraryError
from musicsim.explorer.learning.verdict import RANKED
from musicsim.extensions.pooling.contribution import Contribution, read_contribution
from musicsim.extensions.pooling.disclosure import SHARES
from musicsim.extensions.pooling.random_effects import Combined, combine_effects

MAX_FILES = 10_000


@dataclass(frozen=True, slots=True)
class Row:
    """One measure, in all libraries or in a subgroup."""

    measure: str
    subgroup: str  # empty for all libraries
    combined: Combined
    n_behind: int  # number of libraries in which the second model is behind


@dataclass(frozen=True, slots=True)
class PooledTable:
    """Contributions with the same ground truth and models."""

    ground_truth: str
    models: tuple[str, str]  # the rows tell how far the second is ahead of the first
    hashes: tuple[str, str]
    versions: list[str]  # of musicsim, with the hash of its code
    rows: list[Row]


def read_files(paths: Iterable[Path]) -> tuple[list[Contribution], list[str]]:
    """Read contributions, each once; also return a sentence per file that repeats another.

    The contributions are sorted by their hashes, so the order of the files has no effect.
    """
    by_digest: dict[str, tuple[Contribution, Path]] = {}
    repeated = []
    for number, path in enumerate(paths):
        if number == MAX_FILES:
            raise LibraryError(f"there are more than {MAX_FILES:,} files. Combine fewer of them.")
        one = read_contribution(path)
        if one.digest in by_digest:
            repeated.append(f"{path} repeats {by_digest[one.digest][1]}, and counts once.")
        else:
            by_digest[one.digest] = one, path
    return [by_digest[digest][0] for digest in sorted(by_digest)], repeated


def pool_contributions(contributions: Sequence[Contribution], family: str = "") -> list[PooledTable]:
    """Return a table per ground truth and pair of models, those with the most libraries first.

    With `family`, a genre family, libraries are also grouped by its share: below 25%, or at least that.
    """
    groups: dict[tuple[str, ...], list[Contribution]] = {}
    for one in contributions:
        a, b = one.models
        groups.setdefault((one.ground_truth, a.name, b.name, a.hash, b.hash), []).append(one)
    tables = []
    for (truth, *ids), members in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        parts = {"": members}
        if family:
            has_much = [one.library.shares.get(family) in SHARES[2:] for one in members]
            for words, is_much in ((f"25% or more {family}", True), (f"less than 25% {family}", False)):
                parts[words] = [one for one, own in zip(members, has_much, strict=True) if own == is_much]
        rows = [_row(measure, words, part) for measure in RANKED for words, part in parts.items() if part]
        versions = sorted({f"{one.musicsim.version} ({one.musicsim.code})" for one in members})
        tables.append(PooledTable(truth, (ids[0], ids[1]), (ids[2], ids[3]), versions, rows))
    return tables


def _row(measure: str, subgroup: str, members: Sequence[Contribution]) -> Row:
    differences = [one.differences[measure] for one in members]
    combined = combine_effects([d.mean for d in differences], [d.standard_error for d in differences])
    return Row(measure, subgroup, combined, sum(d.mean < 0 for d in differences))
