"""Making a listening test: results of several models for the same songs, pooled, their sources hidden.

As in MIREX's task Audio Music Similarity, results by the artist of the query are left out unless asked for, and a song
that several models find is graded once and counts for each. Queries come in the order of a Williams square, so that
each is as often early as late, and as often right after each other one; the results of a query stay together, in an
order of their own, and begin with the next one for each listener.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from musicsim import evaluation
from musicsim.errors import ModelError
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.snapshot.snapshot import Snapshot, snapshot_under
from musicsim.extensions.listening_tests.frozen import FrozenSong, ListeningTest, Pair
from musicsim.extensions.listening_tests.request import ListeningTestRequest
from musicsim.extensions.listening_tests.store import MAX_LISTENERS
from musicsim.library import Library, Song
from musicsim.library.media.sound import has_sound

_MORE = 20  # results that are asked for beyond those needed: some may have no file
_MAX_TRIES = 10  # songs that are looked at for each query


@dataclass(frozen=True, slots=True)
class Pool:
    """The results for one query."""

    query: FrozenSong
    results: Sequence[tuple[FrozenSong, tuple[int, ...]]]  # each with the places of the models that gave it


def make_test(library: Library, request: ListeningTestRequest) -> ListeningTest:
    """Let models answer the same queries, and freeze what came of it.

    Queries are drawn by chance, from as many artists as there are.

    Raises
    ------
    NotFoundError
        If a model is not there.
    ModelError
        If too few songs have enough results under every model.
    """
    rng = np.random.default_rng(request.seed)
    snapshots = [snapshot_under(library, name) for name in request.models]
    common = reduce(np.intersect1d, [snapshot.row_ids for snapshot in snapshots])
    drawn = rng.permutation(common)[: request.queries * _MAX_TRIES].tolist()
    songs = [song for song in library.songs(drawn) if not song.is_missing and has_sound(library, song)]
    by_id = {song.id: song for song in songs}
    pools: list[Pool] = []
    for song in _many_artists([by_id[i] for i in drawn if i in by_id]):
        pool = _pool(library, snapshots, song, request)
        if pool is not None:
            pools.append(pool)
        if len(pools) == request.queries:
            return arranged(pools, request, rng)
    raise ModelError(
        f"{library.name}: only {len(pools)} songs have {request.results} results under every model. Ask for "
        f"fewer query songs, or allow results by the same artist."
    )


def _many_artists(songs: Sequence[Song]) -> list[Song]:
    """Songs in their order, but first one an artist, then a second, and so on."""
    n_of: dict[str, int] = {}
    turns = []
    for song in songs:
        n_of[song.group] = n_of.get(song.group, 0) + 1
        turns.append(n_of[song.group])
    return [songs[i] for i in np.argsort(turns, kind="stable")]


def _pool(library: Library, snapshots: Sequence[Snapshot], query: Song, request: ListeningTestRequest) -> Pool | None:
    """What each model answers; None where one has too few results."""
    found: dict[int, tuple[Song, list[int]]] = {}
    for model, snapshot in enumerate(snapshots):
        own = [] if request.same_artist else _by_same_artist(snapshot, query)
        hits = find_similar(snapshot, query.id, request.results + _MORE, max_per_artist=None, exclude=own)
        heard = [hit.song for hit in hits if has_sound(library, hit.song)][: request.results]
        if len(heard) < request.results:
            return None
        for song in heard:
            found.setdefault(song.id, (song, []))[1].append(model)
    return Pool(_frozen(library, query), [(_frozen(library, song), tuple(models)) for song, models in found.values()])


def _by_same_artist(snapshot: Snapshot, song: Song) -> list[int]:
    own: list[int] = snapshot.row_ids[snapshot.columns.group.among([song.group])].tolist()
    return own


def _frozen(library: Library, song: Song) -> FrozenSong:
    return FrozenSong(
        content_hash=song.content_hash, sound_hash=library.sound_hash(song.id), title=song.title, artist=song.by,
        start_s=float(song.typical_s),
    )  # fmt: skip


def arranged(pools: Sequence[Pool], request: ListeningTestRequest, rng: np.random.Generator) -> ListeningTest:
    """The test of some pools, with its attention checks and orders drawn."""
    places: dict[str, int] = {}
    songs: list[FrozenSong] = []

    def place(song: FrozenSong) -> int:
        if song.content_hash not in places:
            places[song.content_hash] = len(songs)
            songs.append(song)
        return places[song.content_hash]

    checked = set(rng.permutation(len(pools))[: request.checks].tolist())
    pairs: list[Pair] = []
    blocks: list[list[int]] = []
    for at, pool in enumerate(pools):
        query = place(pool.query)
        of_query = [Pair(query=query, result=place(song), models=models) for song, models in pool.results]
        of_query += [Pair(query=query, result=query, models=())] if at in checked else []
        blocks.append([len(pairs) + i for i in range(len(of_query))])
        pairs += [of_query[i] for i in rng.permutation(len(of_query))]
    named = rng.permutation(len(pools))  # which query each number of the square is
    orders = []
    for turn, row in enumerate(evaluation.williams_square(len(pools))[:MAX_LISTENERS]):
        turned = [np.roll(blocks[q], -turn).tolist() for q in named[row]]
        orders.append(tuple(pair for block in turned for pair in block))
    return ListeningTest(
        name=request.name, consent=request.consent, seconds=request.seconds, models=request.models,
        max_failed_checks=request.failed_checks, songs=tuple(songs), pairs=tuple(pairs), orders=tuple(orders),
    )  # fmt: skip
