"""The mixes that can be made today: a request for each, or the reason why there is none."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from itertools import chain

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.explorer import (
    LAST_WEEK,
    MAX_SEEDS,
    REST,
    ClusterNames,
    PlaylistRequest,
    Snapshot,
    count_plays,
    find_loved,
    play_counts,
    read_last_plays,
    regions_of,
)
from musicsim.wording import add_number, count

_LAST_WEEK, _LOVED = "Daily mix: around last week", "Daily mix: loved, not played lately"
_REGIONS = "Daily mixes by region"
_N_NAMED = 3
_NEAR_SHARE, _MIN_NEAR, _MAX_NEAR = 1 / 6, 60, 300  # songs around last week, of which a mix uses about fifteen
_N_REGIONS, _SUCH_AS = 5, "such as "
_MIN_SONGS = 3  # smaller regions and fewer loved songs are not worth a mix
# playlists that were saved a moment ago would change the result of a second run
_REQUEST = PlaylistRequest(avoid_recent=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """A mix to make; `why` is a sentence for the listener."""

    name: str
    why: str
    request: PlaylistRequest


@dataclass(frozen=True, slots=True)
class SkippedMix:
    """A mix that is not made, and a sentence that says why."""

    name: str
    reason: str


def plan_mixes(snapshot: Snapshot, day: date) -> Iterator[Plan | SkippedMix]:
    """Yield the plans for a day: around last week, loved songs, and the largest regions of the map."""
    start = datetime.combine(day, time())
    last = read_last_plays(snapshot.library)
    yield _plan_last_week(snapshot, count_plays(snapshot.library, (start - LAST_WEEK).timestamp(), last), last)
    yield _plan_loved(snapshot, last, (start - REST).date())
    yield from _plan_regions(snapshot)


def _plan_last_week(snapshot: Snapshot, counts: dict[int, int], last: dict[int, float]) -> Plan | SkippedMix:
    order = sorted(counts, key=lambda i: (-counts[i], -last[i], i))
    seeds = snapshot.distinct_ids(order)[:MAX_SEEDS]
    if not seeds:
        return SkippedMix(_LAST_WEEK, "No plays of the last seven days are known.")
    titles = {song.id: song.title for song in snapshot.songs_by_id(seeds)}
    named = ", ".join(f"“{titles[i]}”" for i in seeds[:_N_NAMED])
    more = f" and {len(seeds) - _N_NAMED} more" if len(seeds) > _N_NAMED else ""
    why = f"Songs similar to those you played most in the last seven days: {named}{more}."
    return Plan(_LAST_WEEK, why, replace(_REQUEST, only=_find_near(snapshot, seeds), rested=frozenset(seeds)))


def _find_near(snapshot: Snapshot, seeds: tuple[int, ...]) -> frozenset[int]:
    """Return the seeds and the songs nearest to them, the same number for each seed if possible."""
    n_songs = min(snapshot.n_indexed, max(_MIN_NEAR, min(_MAX_NEAR, round(_NEAR_SHARE * snapshot.n_indexed))))
    vectors = snapshot.vectors_at(snapshot.rows_of(seeds))
    nearest = [snapshot.nearest(vector, n_songs).tolist() for vector in vectors]
    in_turn = chain.from_iterable(zip(*nearest, strict=False))  # an external engine may return fewer for a seed
    return frozenset(snapshot.row_ids[list(dict.fromkeys(in_turn))[:n_songs]].tolist())


def _plan_loved(snapshot: Snapshot, last: dict[int, float], since: date) -> Plan | SkippedMix:
    loved = snapshot.distinct_ids(sorted(find_loved(snapshot.library)))
    if not loved:
        return SkippedMix(_LOVED, "No song has a thumbs-up, a star, a high rating or many plays.")
    limit = datetime.combine(since, time()).timestamp()
    rested = [i for i in loved if last.get(i, 0.0) < limit]
    if len(rested) < _MIN_SONGS:
        return SkippedMix(
            _LOVED, f"{count(len(rested), 'loved song')} without a play since {since}; {_MIN_SONGS} are needed."
        )
    why = f"{count(len(rested), 'song')} with a thumbs-up, a star or many plays, and no known play since {since}."
    return Plan(_LOVED, why, replace(_REQUEST, only=frozenset(rested)))


def _plan_regions(snapshot: Snapshot) -> Iterator[Plan | SkippedMix]:
    sizes = sorted(snapshot.clusters, key=int)
    regions = regions_of(snapshot)[0] if sizes else []
    regions = sorted(regions, key=lambda region: (-region.n_songs, region.cluster))[:_N_REGIONS]
    regions = [region for region in regions if region.n_songs >= _MIN_SONGS]
    if not regions:
        yield SkippedMix(_REGIONS, f"The map has no region with at least {_MIN_SONGS} songs.")
        return
    names = ClusterNames(snapshot, play_counts(snapshot))
    used: set[str] = set()
    for region in regions:
        rows: Int64Array = np.flatnonzero(snapshot.clusters[sizes[0]] == region.cluster)
        called = region.name or names.name_rows(rows) or f"region {region.cluster + 1}"
        if called.startswith(_SUCH_AS):  # only an artist is known
            called = f"{called.removeprefix(_SUCH_AS)} and similar songs"
        name = add_number(f"Daily mix: {called}", used)
        used.add(name)
        why = f"From the region “{called}” of the map ({count(len(rows), 'song')}); songs with few plays come first."
        ids = frozenset(snapshot.row_ids[rows].tolist())
        yield Plan(name, why, replace(_REQUEST, only=ids, prefer="unheard"))
