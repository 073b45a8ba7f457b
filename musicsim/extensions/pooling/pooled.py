"""The random-effects table of many contributions."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from musicsim.explorer import RANKING_MEASURES
from musicsim.extensions.pooling.contribution import Contribution, read_contribution
from musicsim.extensions.pooling.disclosure import SHARES
from musicsim.extensions.pooling.random_effects import combine_effects


def read_files(paths: Iterable[Path]) -> tuple[list[Contribution], list[str]]:
    """Read contributions, each once, and sort them by their hashes; also return a sentence per repeated file."""
    found: dict[str, tuple[Contribution, Path]] = {}
    repeated = []
    for path in paths:
        one = read_contribution(path)
        if one.identity in found:
            repeated.append(f"{path} repeats {found[one.identity][1]}, and counts once.")
        else:
            found[one.identity] = one, path
    return [found[identity][0] for identity in sorted(found)], repeated


def pool_contributions(contributions: Sequence[Contribution], family: str = "") -> list[dict[str, Any]]:
    """Return a table per ground truth and pair of models, as JSON values, those with the most libraries first.

    With `family`, a genre family, libraries are also grouped by its share. A row tells how far the second model is
    ahead of the first by one measure, and in how many libraries it is behind.
    """
    groups: dict[tuple[str, ...], list[Contribution]] = {}
    for one in contributions:
        a, b = one.models
        groups.setdefault((one.ground_truth, a.name, b.name, a.hash, b.hash), []).append(one)
    tables = []
    for (truth, *models, _, _), members in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        parts = {"": members}
        for one in members if family else ():
            is_much = one.library.shares.get(family) in SHARES[2:]
            parts.setdefault(f"{'25% or more' if is_much else 'less than 25%'} {family}", []).append(one)
        rows = [_row(measure, words, part) for measure in RANKING_MEASURES for words, part in parts.items() if part]
        versions = sorted({f"{one.musicsim} ({one.commit or 'unknown'})" for one in members})
        tables.append({"ground_truth": truth, "models": models, "versions": versions, "rows": rows})
    return tables


def _row(measure: str, subgroup: str, members: Sequence[Contribution]) -> dict[str, Any]:
    differences = [one.differences[measure] for one in members]
    combined = combine_effects([d.mean for d in differences], [d.standard_error for d in differences])
    n_behind = sum(d.mean < 0 for d in differences)
    return {"measure": measure, "subgroup": subgroup, **asdict(combined), "n_behind": n_behind}
