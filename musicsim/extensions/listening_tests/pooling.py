"""Make a listening test from the pooled results of several models for the same queries, without revealing the models.

As in MIREX's Audio Music Similarity task, results by the query's artist are left out by default, and a song that
several models find is graded once. A Williams square orders the queries to balance positions and predecessors.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from musicsim import evaluation
from musicsim.errors import ModelError
from musicsim.explorer import Snapshot, find_similar, option, settle, snapshot_under
from musicsim.extensions.listening_tests.frozen import FrozenSong, ListeningTest, Pair
from musicsim.extensions.listening_tests.store import MAX_LISTENERS, MAX_MODELS
from musicsim.library import Library, Song, has_sound

_MORE = 20  # number of additional results, because some songs may have no file
_MAX_TRIES = 10  # maximum number of candidates per query song; some candidates have too few results
CONSENT = (
    "You will hear pairs of short excerpts and grade how similar they sound. The test takes about half an hour; you "
    "can continue later with the same link. We save your grades and your consent, with the time of each, under the "
    "name that belongs to your link. We save nothing else. You can stop at any time."
)


@dataclass(frozen=True, kw_only=True)
class ListeningTestRequest:
    """Options for a listening test: the models to compare, the pairs and the consent text."""

    name: str = option("Listening test", "Listeners see this name, so it should not reveal the models.", label="Name")
    models: tuple[str, ...] = option((), "Models to compare.", label="Models")
    queries: int = option(
        30, "Number of songs to search with. More query songs make the comparison more precise.",
        label="Query songs", min=2, max=100,
    )  # fmt: skip
    results: int = option(
        1, "Results from each model per query song. A song that several models find is graded once.",
        label="Results per model", min=1, max=5,
    )  # fmt: skip
    checks: int = option(
        4, "Number of pairs of identical songs. Listeners fail a check unless they grade it as very similar.",
        label="Attention checks", min=0, max=10,
    )  # fmt: skip
    failed_checks: int = option(
        1, "Listeners who fail more checks than this are ignored.", label="Failed checks allowed", min=0, max=10
    )
    same_artist: bool = option(False, "Allow results by the query song's artist.", label="Results by the same artist")
    seconds: int = option(20, "Seconds to play from each song's most typical part.", label="Seconds", min=5, max=30)
    consent: str = option(CONSENT, "Text that listeners must agree to before they begin.", label="Consent")
    seed: int = option(0, "Random seed for the query songs and their order.", label="Seed", min=0)

    def __post_init__(self) -> None:
        settle(self)
        if not 2 <= len(set(self.models)) == len(self.models) <= MAX_MODELS:
            raise ValueError(f"models={self.models} must contain 2 to {MAX_MODELS} different models.")
        for field in ("name", "consent"):
            if not getattr(self, field).strip():
                raise ValueError(f"{field} must not be empty.")


@dataclass(frozen=True, slots=True)
class PooledQuery:
    query: FrozenSong
    results: Sequence[tuple[FrozenSong, tuple[int, ...]]]  # results, each with the indices of the models that found it


def make_test(library: Library, request: ListeningTestRequest) -> ListeningTest:
    """Make a test with query songs by many artists. Raises ModelError if too few songs have results in all models."""
    rng = np.random.default_rng(request.seed)
    snapshots = [snapshot_under(library, name) for name in request.models]
    common = reduce(np.intersect1d, [snapshot.row_ids for snapshot in snapshots])
    drawn = rng.permutation(common)[: request.queries * _MAX_TRIES].tolist()
    songs = {song.id: song for song in library.songs(drawn) if not song.is_missing and has_sound(library, song)}
    candidates = [songs[i] for i in drawn if i in songs]
    n_of: Counter[str] = Counter()
    rounds = []
    for song in candidates:
        rounds.append(n_of[song.group])
        n_of[song.group] += 1
    pools: list[PooledQuery] = []
    for i in np.argsort(rounds, kind="stable"):  # one song per artist first, then a second song per artist, and so on
        pool = _make_pool(library, snapshots, candidates[i], request)
        if pool is not None:
            pools.append(pool)
        if len(pools) == request.queries:
            return arrange(pools, request, rng)
    problem = f"only {len(pools)} songs have {request.results} results under every model"
    raise ModelError(f"{library.name}: {problem}. Use fewer query songs, or allow results by the same artist.")


def _make_pool(
    library: Library, snapshots: Sequence[Snapshot], query: Song, request: ListeningTestRequest
) -> PooledQuery | None:
    """Return the pooled results of all models for one query; None if a model has too few."""
    pooled: dict[int, tuple[Song, list[int]]] = {}
    for model, snapshot in enumerate(snapshots):
        own: list[int] = []
        if not request.same_artist:
            own = snapshot.row_ids[snapshot.columns.group.is_in([query.group])].tolist()
        results = find_similar(snapshot, query.id, request.results + _MORE, max_per_artist=None, exclude=own)
        songs = [result.song for result in results if has_sound(library, result.song)][: request.results]
        if len(songs) < request.results:
            return None
        for song in songs:
            pooled.setdefault(song.id, (song, []))[1].append(model)
    return PooledQuery(
        _freeze(library, query), [(_freeze(library, song), tuple(models)) for song, models in pooled.values()]
    )


def _freeze(library: Library, song: Song) -> FrozenSong:
    return FrozenSong(
        content_hash=song.content_hash, sound_hash=library.sound_hash(song.id), title=song.title, artist=song.by,
        start_s=float(song.typical_s),
    )  # fmt: skip


def arrange(pools: Sequence[PooledQuery], request: ListeningTestRequest, rng: np.random.Generator) -> ListeningTest:
    """Make a test from the pools, with random attention checks and orders."""
    index_of: dict[str, int] = {}
    songs: list[FrozenSong] = []

    def index(song: FrozenSong) -> int:
        if song.content_hash not in index_of:
            index_of[song.content_hash] = len(songs)
            songs.append(song)
        return index_of[song.content_hash]

    checked = set(rng.permutation(len(pools))[: request.checks].tolist())
    pairs: list[Pair] = []
    blocks: list[list[int]] = []
    for i, pool in enumerate(pools):
        query = index(pool.query)
        block = [Pair(query=query, result=index(song), models=models) for song, models in pool.results]
        block += [Pair(query=query, result=query, models=())] if i in checked else []
        blocks.append(list(range(len(pairs), len(pairs) + len(block))))
        pairs += [block[j] for j in rng.permutation(len(block))]
    query_of = rng.permutation(len(pools))  # query assigned to each number in the Williams square
    orders = []
    for turn, row in enumerate(evaluation.williams_square(len(pools))[:MAX_LISTENERS]):
        rotated = [np.roll(blocks[q], -turn).tolist() for q in query_of[row]]
        orders.append(tuple(pair for block in rotated for pair in block))
    return ListeningTest(
        name=request.name, consent=request.consent, seconds=request.seconds, models=request.models,
        max_failed_checks=request.failed_checks, songs=tuple(songs), pairs=tuple(pairs), orders=tuple(orders),
    )  # fmt: skip
