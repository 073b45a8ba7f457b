"""The contents of the map: its regions, the genres, folders or artists in each region, and their typical songs.

A typical song is near the mean of its group in the space of the model. Large groups are represented by an even sample,
so that a library of a million songs needs only some thousands of vectors.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from musicsim._arrays import BoolArray, Int64Array, Uint16Array
from musicsim.explorer.snapshot.map_columns import color_labels, colors_allowed, regions_of
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Labels
from musicsim.public import is_public

MAX_SAMPLED = 1000  # songs per group from which typical ones are chosen
N_TYPICAL = 8
_MAX_GROUPS = 12  # per region; songs of rarer labels are in one last group
_GROUPED_BY = ("genre", "folder", "artist")  # the first one that most songs have
_OTHERS, _ELSEWHERE = "others", "other songs"


@dataclass(frozen=True, slots=True)
class Group:
    """Some songs of a region, or a whole region."""

    name: str
    n_songs: int
    typical: list[int]  # song ids, most typical first


@dataclass(frozen=True, slots=True)
class RegionContents:
    """A region and its groups."""

    region: Group
    groups: list[Group]


@dataclass(frozen=True, slots=True)
class MapContents:
    """All regions, largest first, and each row's group: groups are numbered through all regions."""

    by: str
    regions: list[RegionContents]
    codes: Uint16Array  # (n_indexed,)

    def describe(self) -> dict[str, Any]:
        """Return everything but the codes, for JSON."""
        return {"by": self.by, "regions": [asdict(one) for one in self.regions]}


def map_contents(snapshot: Snapshot) -> MapContents:
    """Return the contents of the map of a snapshot; the owner's disliked songs are not typical."""
    by, labels = _choose_labels(snapshot)
    allowed = _liked(snapshot)
    codes = np.zeros(snapshot.n_indexed, dtype=np.uint16)
    regions: list[RegionContents] = []
    n_groups = 0
    for name, rows in _split(snapshot):
        groups = []
        for group, of_group in _split_by_label(labels, rows):
            codes[of_group] = n_groups
            n_groups += 1
            groups.append(Group(group, len(of_group), typical_songs(snapshot, of_group, allowed)))
        regions.append(RegionContents(Group(name, len(rows), typical_songs(snapshot, rows, allowed)), groups))
    return MapContents(by, regions, codes)


def typical_songs(snapshot: Snapshot, rows: Int64Array, allowed: BoolArray) -> list[int]:
    """Return the ids of the allowed songs that are nearest to the mean of some rows, nearest first."""
    sample = rows if len(rows) <= MAX_SAMPLED else rows[np.linspace(0, len(rows) - 1, MAX_SAMPLED).astype(np.int64)]
    X = snapshot.vectors_at(sample).astype(np.float64)
    distances = np.linalg.norm(X - X.mean(axis=0), axis=1)
    distances[~allowed[sample]] = np.inf
    order = np.argsort(distances, kind="stable")[:N_TYPICAL]
    ids: list[int] = snapshot.row_ids[sample[order[np.isfinite(distances[order])]]].tolist()
    return ids


def _choose_labels(snapshot: Snapshot) -> tuple[str, Labels]:
    offered = [(by, color_labels(snapshot, by)) for by in _GROUPED_BY if by in colors_allowed()]
    return next((one for one in offered if np.mean(_named(one[1])) > 0.5), offered[-1])


def _named(labels: Labels) -> BoolArray:
    return np.array([*(name != "" for name in labels.names), False])[labels.codes]


def _liked(snapshot: Snapshot) -> BoolArray:
    """Return a mask of the rows without a thumb down; visitors do not learn the owner's thumbs."""
    allowed = np.ones(snapshot.n_indexed, dtype=bool)
    if not is_public():
        rows = snapshot.rows_of([song_id for song_id, thumb in snapshot.library.feedback().items() if thumb < 0])
        allowed[rows[rows >= 0]] = False
    return allowed


def _split(snapshot: Snapshot) -> Iterator[tuple[str, Int64Array]]:
    """Yield the name and the rows of each region that has a name, then those of all other songs on the map."""
    coarsest = min(snapshot.clusters, key=int, default=None)
    is_left = np.asarray(np.isfinite(snapshot.map).all(axis=1))
    if coarsest is not None:
        clusters = snapshot.clusters[coarsest]
        regions = sorted(regions_of(snapshot)[0], key=lambda region: (-region.n_songs, region.cluster))
        for region in regions:
            if region.name:
                rows = np.flatnonzero((clusters == region.cluster) & is_left)
                is_left[rows] = False
                yield region.name, rows
    if is_left.any():
        yield _ELSEWHERE, np.flatnonzero(is_left)


def _split_by_label(labels: Labels, rows: Int64Array) -> Iterator[tuple[str, Int64Array]]:
    codes = np.where(_named(labels), labels.codes, -1)[rows]
    known, counts = np.unique(codes[codes >= 0], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    if len(order) > _MAX_GROUPS:
        order = order[: _MAX_GROUPS - 1]
    for code in known[order].tolist():
        yield labels.names[code], rows[codes == code]
    others = rows[~np.isin(codes, known[order])]
    if len(others):
        yield _OTHERS, others
