"""The queue of the Listen page: the songs nearest to a seed, then an endless walk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from musicsim.errors import NotFoundError
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.options import options_of
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.feedback import Thumbs
from musicsim.explorer.search.query import Example, Query, examples_of
from musicsim.explorer.search.requested import combine_examples, find_requested
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.words import parse_words
from musicsim.hooks import ChooseNextSongs
from musicsim.library import Song
from musicsim.public import is_public
from musicsim.registry import load_hooks

SURPRISE = float(options_of(PlaylistRequest)["surprise"].default)
MAX_EXAMPLES = 25
"""Maximum number of further examples of a queue."""
MAX_CALMER = 4
BLOCK = 12  # number of songs of the walk that are generated in one step
# Nearest songs whose similarities differ by less than this may change places, so that two evenings differ. The last
# places have a few more songs to choose from.
ALIKE, N_ALIKE = 0.03, 4
_N_INSTEAD = 3  # number of songs that the walk stays near if the seed is not in the library
_CALMER = 0.65  # after the first step, each step keeps this share of the calmer (or livelier) songs
_MIN_LEFT = 12  # minimum number of songs that a step keeps


@dataclass(frozen=True, slots=True)
class QueueItem:
    """A song of the queue, the reason why it is there, and its similarity to the seed (None for songs of the walk)."""

    song: Song
    reason: str = ""
    similarity: float | None = None
    is_pinned: bool = False
    choice_id: int = 0  # number by which the hook that chose the song finds its plays and skips; 0: none


@dataclass(frozen=True, slots=True)
class Heard:
    """A song that has played or is playing: it keeps its place and its reason."""

    song_id: int
    reason: str = ""
    similarity: float | None = None


@dataclass(frozen=True, kw_only=True)
class QueueRequest:
    """The seed of a queue, and the conditions on its songs. All ids are song ids."""

    query: Query | None = None  # None if the seed consists of words only
    search: SearchRequest = field(default_factory=SearchRequest)  # filters, further examples, number of nearest songs
    thumbs: Thumbs = field(default_factory=Thumbs)
    target: int | None = None  # the queue starts with a path to this song, instead of the nearest songs
    calmer: int = 0  # number of steps toward calmer songs; negative for livelier ones
    surprise: float = SURPRISE
    pins: Mapping[int, int] = field(default_factory=dict)  # pinned songs, keyed by position from 0
    removed: frozenset[int] = frozenset()
    opening: tuple[int, ...] = ()  # songs that the listener chose to come first
    heard: tuple[Heard, ...] = ()
    length: int = 20
    seed: int = 0  # the same seed gives the same queue


def make_queue_request(
    snapshot: Snapshot, example: int | Example | None, search: SearchRequest, *, feedback: Mapping[int, int],
    removed: frozenset[int] = frozenset(), **conditions: Any,
) -> QueueRequest:  # fmt: skip
    """Return the request for a queue that starts from an example, or from the examples or words of `search` alone.

    Words that the library does not know are ignored. Songs with a thumbs-down in `feedback` are left out.
    `conditions` are other fields of the request.
    """
    search = replace(search, words=parse_words(snapshot, search.words).known)
    query = None if example is None and not search.like else combine_examples(snapshot, example, search)
    disliked = {song_id for song_id, thumb in feedback.items() if thumb < 0}
    return QueueRequest(query=query, search=search, removed=removed | disliked, **conditions)


def build_queue(snapshot: Snapshot, walker: Walk | None, request: QueueRequest) -> list[QueueItem]:
    """Return the queue for a request, without the seed itself and without repeats.

    A longer queue begins with the same songs. The queue is shorter than requested if no more songs match, or if
    `walker` is None because the walk is not ready yet.

    Raises NotFoundError if a song of the request is not in the library or lacks a vector.
    """
    request = replace(request, search=narrow_energy(snapshot, request))
    drawn: dict[int, QueueItem] = {}
    for item in _natural(snapshot, walker, request):
        drawn.setdefault(item.song.id, item)
        if len(drawn) >= request.length:
            break
    return _arrange(snapshot, request, drawn)


def _seed_ids(request: QueueRequest) -> list[int]:
    return [] if request.query is None else examples_of(request.query).song_ids


def _natural(snapshot: Snapshot, walker: Walk | None, request: QueueRequest) -> Iterator[QueueItem]:
    """Yield the songs, ignoring pins and heard songs: the nearest ones or a path, then blocks of the walk."""
    seed = _seed_ids(request)
    seen = {*seed, *request.removed, *request.thumbs.unfitting}
    items: list[QueueItem] | None = None
    if walker is not None and request.target is not None:
        first = seed[0] if seed else None
        items = _continue_walk(walker, request, first, seen - {request.target}, 0, through=(request.target,))
    elif walker is not None and _is_one_song(request, seed):
        items = _ask_hooks(walker, _walk_request(request, seed[0], seen), request.seed)
    items = items or _nearest(snapshot, request)
    around = _anchor(snapshot, request, items)
    number = 0
    while items:
        yield from items
        seen |= {item.song.id for item in items}
        if walker is None:
            return
        number += 1
        items = _continue_walk(walker, request, items[-1].song.id, seen, number, around=around)


def _anchor(snapshot: Snapshot, request: QueueRequest, nearest: list[QueueItem]) -> tuple[int, ...]:
    """Return the songs that the walk stays near: the seed, or the nearest songs of a sound from outside the library."""
    if request.query is None or request.target is not None:
        return ()
    ids = np.array(_seed_ids(request), dtype=np.int64)
    known = ids[snapshot.rows_of(ids) >= 0].tolist()
    return tuple(known or [item.song.id for item in nearest[:_N_INSTEAD]])


def _is_one_song(request: QueueRequest, seed: list[int]) -> bool:
    """Return True if the query is one song, compared in everything."""
    return (
        request.query is not None and len(examples_of(request.query).like) == len(seed) == 1 and not request.search.by
    )


def _nearest(snapshot: Snapshot, request: QueueRequest) -> list[QueueItem]:
    """Return the songs nearest to the seed; more surprise means fewer songs."""
    share = min(1.0, (1.0 - request.surprise) / (1.0 - SURPRISE))
    k = max(1, round(share * request.search.k))
    search = replace(request.search, k=k + N_ALIKE)
    hits = find_requested(snapshot, request.query, search, request.thumbs, [*request.removed, *_seed_ids(request)])
    if request.query is not None:
        shifts = np.random.default_rng(request.seed).uniform(0.0, ALIKE, len(hits))
        order = np.argsort(shifts - [hit.similarity or 0.0 for hit in hits], kind="stable")
        hits = [hits[n] for n in order.tolist()]
    return [QueueItem(hit.song, hit.reason, hit.similarity) for hit in hits[:k]]


def _continue_walk(
    walker: Walk, request: QueueRequest, first: int | None, seen: set[int], number: int, *,
    through: tuple[int, ...] = (), around: tuple[int, ...] = (),
) -> list[QueueItem]:  # fmt: skip
    """Return the next songs of the walk from a song, each with its reason; empty if no more songs match."""
    try:
        asked = replace(_walk_request(request, first, seen), through=through, like=around)
        items = continue_queue(walker, asked, request.seed + number)
    except NotFoundError:  # too few songs for a walk
        return []
    return [item for item in items if item.song.id not in seen]


def _walk_request(request: QueueRequest, first: int | None, seen: set[int]) -> PlaylistRequest:
    filters = {name: getattr(request.search, name) for name in options_of(Filters)}
    return PlaylistRequest(
        **filters, length=BLOCK + 1, first=first, exclude=frozenset(seen), surprise=request.surprise,
        avoid_recent=False,
    )  # fmt: skip


def continue_queue(walker: Walk, request: PlaylistRequest, random_state: int | None = None) -> list[QueueItem]:
    """Return the songs after the first song of the request, as a hook or the walk chooses them.

    Raises the errors of :meth:`Walk.generate`.
    """
    items = _ask_hooks(walker, request, random_state)
    if items is not None:
        return items
    drawn = walker.generate(request, random_state)
    steps = list(zip(drawn.songs, drawn.edges, strict=True))[request.first is not None :]
    return [QueueItem(song, edge.reason if edge else "") for song, edge in steps]


def _ask_hooks(walker: Walk, request: PlaylistRequest, random_state: int | None) -> list[QueueItem] | None:
    hooks = [] if is_public() else load_hooks(ChooseNextSongs)
    return next((items for hook in hooks if (items := hook(walker, request, random_state)) is not None), None)


def narrow_energy(snapshot: Snapshot, request: QueueRequest) -> SearchRequest:
    """Return the filters of a request, narrowed to songs that are calmer or livelier than the seed."""
    search = request.search
    known = np.sort(snapshot.columns.energy[np.isfinite(snapshot.columns.energy)])
    if not request.calmer or not len(known):
        return search
    rows = snapshot.rows_of(_seed_ids(request))
    energies = snapshot.columns.energy[rows[rows >= 0]]
    energies = energies[np.isfinite(energies)]
    share = float(np.searchsorted(known, energies.mean()) / len(known)) if len(energies) else 0.5
    share = share if request.calmer > 0 else 1.0 - share
    n_left = min(len(known), max(_MIN_LEFT, round(len(known) * share * _CALMER ** (abs(request.calmer) - 1))))
    low, high = search.energy or (float(known[0]), float(known[-1]))
    if request.calmer > 0:
        high = max(low, min(high, float(known[n_left - 1])))
    else:
        low = min(high, max(low, float(known[-n_left])))
    return replace(search, energy=(low, high))


def _arrange(snapshot: Snapshot, request: QueueRequest, drawn: Mapping[int, QueueItem]) -> list[QueueItem]:
    """Return the heard songs, then the others, with pinned songs in their places."""
    left_out = request.removed | set(request.thumbs.unfitting)
    fixed = [i for i in request.pins.values() if i not in left_out]
    heard_ids = [heard.song_id for heard in request.heard]
    songs = {song.id: song for song in snapshot.songs_by_id([*heard_ids, *request.opening, *fixed])}
    heard = [h for h in request.heard if h.song_id in songs and h.song_id not in left_out]
    items = [QueueItem(songs[h.song_id], h.reason, h.similarity, h.song_id in fixed) for h in heard]
    opening = [i for i in request.opening if i in songs and i not in left_out and i not in [*heard_ids, *fixed]]
    items += [QueueItem(songs[i]) for i in dict.fromkeys(opening)]
    placed = {item.song.id for item in items}
    items += [item for item in drawn.values() if item.song.id not in placed and item.song.id not in fixed]
    for place, song_id in sorted(request.pins.items()):
        if song_id in songs and song_id in fixed and song_id not in placed:
            item = replace(drawn.get(song_id) or QueueItem(songs[song_id]), is_pinned=True)
            items.insert(max(place, len(heard)), item)
    return items
