"""Search by example: the songs most similar to a song, a file or a recording, or to several of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from musicsim import audio, kernels, metric
from musicsim._arrays import BoolArray, Float32Array, Float64Array, FloatingArray, Int64Array, IntpArray
from musicsim.audio import AudioNetwork, SongFrames
from musicsim.errors import AudioTooShortError, ModelError, NotFoundError
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.search.feedback import Thumbs, query_metric
from musicsim.explorer.search.reasons import describe_pairs
from musicsim.explorer.snapshot.conditions import All
from musicsim.explorer.snapshot.filtering import condition_of
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song, content_hash
from musicsim.library.scan.networks import load_networks
from musicsim.library.tags.artists import fold_name

_Items = TypeVar("_Items", Int64Array, IntpArray)

# Number of nearest songs that are re-ranked and then limited per artist. An artist may have hundreds of songs in one
# region, and a second search costs more than a larger first one.
CANDIDATES = 500
_METRIC_CANDIDATES = 5_000  # like CANDIDATES, if the query has a metric; these songs are nearest by plain distance
_UNLIKE = 0.5  # weight of the examples to avoid
_SMALLEST = 1e-6  # minimum distance, so that inverse distances stay finite
N_ENTRIES = 3  # number of entry points per similar artist
_MAX_SEEDS = 8  # maximum number of songs that represent an artist in a query


@dataclass(frozen=True, slots=True)
class Hit:
    """A song, its similarity (0 to 1, None without an example), its distance after hub reduction, and a reason."""

    song: Song
    similarity: float | None
    distance: float
    reason: str


@dataclass(frozen=True, slots=True)
class Example:
    """Sound from outside the library, or a part of a song, as a query."""

    name: str
    vector: Float32Array  # (n_dimensions,)
    peaks: Float32Array  # (n_bins,), in [0, 1]
    duration_s: float
    features: Float32Array  # (n_features,)
    frames: SongFrames
    notes: tuple[str, ...] = ()  # problems with the file
    song_id: int | None = None  # the song in the library with the same bytes or sound
    is_cut: bool = False  # whether the sound is longer than the analyzed part
    starts_s: float = 0.0  # position in the song or file at which the analyzed part starts


@dataclass(frozen=True, slots=True)
class Examples:
    """Several examples in one query."""

    like: tuple[int | Example, ...]  # song ids or sounds that results should resemble; at least one
    unlike: tuple[int, ...] = ()  # ids of songs that results should not resemble

    @property
    def song_ids(self) -> list[int]:
        """Ids of the songs in `like` that are in the library."""
        ids = [one.song_id if isinstance(one, Example) else one for one in self.like]
        return [i for i in ids if i is not None]


Query = int | Example | Examples  # a song id, sound from outside the library, or several of them


def examples_of(query: Query) -> Examples:
    """Convert any query to examples."""
    return query if isinstance(query, Examples) else Examples((query,))


def read_example(snapshot: Snapshot, source: Path | bytes, name: str) -> Example:
    """Decode a file or its bytes in this process and compute its vector; a server uses :func:`uploads.decode_upload`.

    Raises AudioError, with `name` in its message, if the sound cannot be decoded or is too short; ModelError if the
    library has no model.
    """
    model_to_compare_with(snapshot)
    sound = audio.analyze_sound(source, name=name, networks=networks_in_use(snapshot))
    return make_example(snapshot, sound, content_hash(source), name)


def networks_in_use(snapshot: Snapshot) -> list[AudioNetwork]:
    """Return the networks whose vectors the model compares."""
    keys = model_to_compare_with(snapshot).encoder_.own_keys()
    networks = [network for some in load_networks(snapshot.library.folder) for network in some.networks] if keys else []
    return [network for network in networks if network.key in keys]


def model_to_compare_with(snapshot: Snapshot) -> SimilarityModel:
    """Return the model of the snapshot; raise ModelError if the library has no model."""
    if snapshot.model is None:
        raise ModelError(snapshot.no_model_words)
    return snapshot.model


def make_example(snapshot: Snapshot, sound: "audio.Sound", digest: str, name: str) -> Example:
    """Convert decoded sound to an example, given the hash of its bytes; raises AudioTooShortError or ModelError."""
    model = model_to_compare_with(snapshot)
    if sound.mfcc is None:
        raise ValueError("sound.mfcc is None: read the coefficients from their file.")
    frames = SongFrames(sound.mfcc, sound.fluctuation, sound.spectral_shape, network_vectors=sound.network_vectors)
    try:
        features = model.features([frames])
    except AudioTooShortError as error:
        raise AudioTooShortError(f"{name}: {error}") from error
    vector, song_id = model.vectors(features)[0], snapshot.library.song_with_sound(digest, sound.sound_hash)
    outline, length = sound.outline, sound.duration_s
    return Example(name, vector, outline, length, features[0], frames, sound.notes, song_id, sound.is_cut)


def find_similar(
    snapshot: Snapshot,
    query: Query,
    k: int = 10,
    *,
    max_per_artist: int | None = 2,
    filters: Filters | None = None,
    exclude: Iterable[int] = (),
    hub_reduction: bool | None = None,
    thumbs: Thumbs | None = None,
) -> list[Hit]:
    """Return the `k` songs most similar to one or more examples: songs, or sound from outside the library.

    With several examples, songs are ranked by their mean inverse squared distance from the examples, minus half of the
    same mean for the songs to avoid. Songs near one example therefore come before songs halfway between all examples.
    Songs by unknown artists are limited per folder; `max_per_artist=None` removes the limit. Songs in `exclude`,
    examples and their duplicates are never results. `hub_reduction` re-ranks the nearest candidates by mutual
    proximity; None uses the library's setting. Thumbs adapt the metric around the query. Songs with a thumbs-down are
    never results, and songs with a thumbs-up ignore the limit per artist.

    Results are sorted by distance; there are fewer than `k` if no more songs qualify. Raises NotFoundError if a song is
    not in the library or has no vector.
    """
    examples = examples_of(query)
    like, unlike = ([_row_and_vector(snapshot, one) for one in some] for some in (examples.like, examples.unlike))
    if not snapshot.n_indexed or not like:
        return []
    thumbs = thumbs or Thumbs()
    fitting = frozenset(snapshot.rows_of(thumbs.fitting).tolist())
    excluded = np.unique([*snapshot.rows_of([*exclude, *thumbs.unfitting]), *(row for row, _ in [*like, *unlike])])
    excluded = excluded[excluded >= 0].astype(np.int64)
    condition = None if filters is None else condition_of(snapshot, filters)
    allowed = None if condition is None else condition.rows(snapshot.columns)
    if allowed is not None:
        allowed[excluded] = False
    n_allowed = snapshot.n_indexed - len(excluded) if allowed is None else int(allowed.sum())
    reduce = snapshot.library.settings["hub_reduction"] if hub_reduction is None else hub_reduction
    metrics = [query_metric(snapshot, vector, thumbs) for _, vector in like]
    is_plain = all(local is None for local in metrics)
    n_candidates = min(n_allowed, max(4 * k, CANDIDATES if is_plain else _METRIC_CANDIDATES))
    while n_allowed:
        candidates = [_candidates(snapshot, vector, n_candidates, condition, allowed, excluded) for _, vector in like]
        rows = candidates[0] if len(candidates) == 1 else np.unique(np.concatenate(candidates))
        measure = partial(_distances, snapshot, rows, reduce)
        distances = np.stack([measure(vector, local) for (_, vector), local in zip(like, metrics, strict=True)])
        avoided = [measure(vector, query_metric(snapshot, vector, Thumbs())) for _, vector in unlike]
        order, combined = _combine(distances, np.array(avoided))
        rows, nearest = rows[order], distances.argmin(axis=0)[order]
        chosen = limit_per_artist(snapshot, rows, k, max_per_artist, fitting)
        if len(chosen) == k or n_candidates == n_allowed:
            sources = [(row, one) for (row, _), one in zip(like, examples.like, strict=True)]
            return _hits(snapshot, sources, rows[chosen], combined[chosen], nearest[chosen])
        n_candidates = min(n_allowed, 4 * n_candidates)
    return []


def _distances(
    snapshot: Snapshot, rows: Int64Array, reduce: bool, vector: Float32Array, local: "metric.Feedback | None" = None
) -> FloatingArray:
    """Return the distances from an example to rows under the metric `local`; `reduce` applies hub reduction."""
    X = snapshot.vectors_at(rows)
    distances = np.linalg.norm(X - vector, axis=1) if local is None else local.distances(X)
    return snapshot.adjust_distances(vector, distances, rows) if reduce else distances


def _combine(like: FloatingArray, unlike: FloatingArray) -> tuple[Int64Array, FloatingArray]:
    """Sort rows by combined distance, infinite for rows much nearer to songs to avoid; return order and distances."""
    if len(like) == 1 and not len(unlike):
        order = np.argsort(like[0], kind="stable")
        return order, like[0][order]
    farther = np.mean(np.maximum(like, _SMALLEST) ** -2.0, axis=0)
    if len(unlike):
        farther = farther - _UNLIKE * np.mean(np.maximum(unlike, _SMALLEST) ** -2.0, axis=0)
    order = np.argsort(-farther, kind="stable")
    is_like = farther[order] > 0
    return order, np.power(farther[order], -0.5, out=np.full(len(order), np.inf), where=is_like)


def similarity_of(snapshot: Snapshot, query: Query, other_id: int) -> float:
    """Return a song's similarity to a query (0 to 1), as shown in a list of results without thumbs."""
    like, unlike = _pairwise(snapshot, query, other_id)
    _, (distance,) = _combine(like[:, None], unlike[:, None])
    return float(kernels.ppk_similarity(distance))


def similarities_of(snapshot: Snapshot, query: Query, other_id: int) -> tuple[list[float], list[float]]:
    """Return the similarities of a song to each example and to each song to avoid."""
    like, unlike = _pairwise(snapshot, query, other_id)
    return kernels.ppk_similarity(like).tolist(), kernels.ppk_similarity(unlike).tolist()


def _pairwise(snapshot: Snapshot, query: Query, other_id: int) -> tuple[Float64Array, Float64Array]:
    """Return the distances from a song to each example and to each song to avoid."""
    rows, reduce = np.array([snapshot.row_of(other_id)]), snapshot.library.settings["hub_reduction"]
    examples = examples_of(query)
    like, unlike = (
        np.array([_distances(snapshot, rows, reduce, _row_and_vector(snapshot, one)[1])[0] for one in some])
        for some in (examples.like, examples.unlike)
    )
    return like, unlike


def _candidates(
    snapshot: Snapshot,
    vector: Float32Array,
    n: int,
    condition: All | None,
    allowed: BoolArray | None,
    excluded: Int64Array,
) -> Int64Array:
    if allowed is not None:
        return snapshot.nearest(vector, n, allowed=allowed, condition=condition)
    # a search for a few more rows is faster than a mask of all songs
    rows = snapshot.nearest(vector, n + len(excluded), condition=condition)
    return rows[~np.isin(rows, excluded)][:n]


def _row_and_vector(snapshot: Snapshot, query: int | Example) -> tuple[int, Float32Array]:
    if isinstance(query, Example):
        return (-1 if query.song_id is None else int(snapshot.rows_of([query.song_id])[0])), query.vector
    row = snapshot.row_of(query)
    return row, snapshot.vectors_at([row])[0]


def limit_per_artist(
    snapshot: Snapshot, rows: Int64Array, k: int, max_per_artist: int | None, always: frozenset[int] = frozenset()
) -> list[int]:
    """Return the positions of the first `k` entries of `rows` that obey the limit; rows in `always` are exempt."""
    if max_per_artist is None:
        return list(range(min(k, len(rows))))
    counts: dict[int, int] = {}
    chosen = []
    groups = snapshot.columns.group.codes[rows].tolist()
    for position, (row, group) in enumerate(zip(rows.tolist(), groups, strict=True)):
        counts[group] = counts.get(group, 0) + 1
        if counts[group] <= max_per_artist or row in always:
            chosen.append(position)
            if len(chosen) == k:
                break
    return chosen


def _hits(
    snapshot: Snapshot,
    examples: Sequence[tuple[int, int | Example]],
    rows: Int64Array,
    distances: FloatingArray,
    nearest: Int64Array,
) -> list[Hit]:
    """Return results in the order of `rows`, without songs removed after the snapshot was taken.

    Each example comes with its row, or with -1 if it does not have one. `nearest` contains the index of the example
    nearest to each result; the reason is about this example.
    """
    ids = snapshot.row_ids[rows].tolist()
    example_ids = [int(snapshot.row_ids[row]) if row >= 0 else -1 for row, _ in examples]
    songs = {song.id: song for song in snapshot.songs_by_id([i for i in example_ids if i >= 0] + ids)}
    reasons: dict[int, str] = {}
    for place, (example_id, (_, example)) in enumerate(zip(example_ids, examples, strict=True)):
        song, features = songs.get(example_id), example.features if isinstance(example, Example) else None
        others = [songs[i] for i, one in zip(ids, nearest.tolist(), strict=True) if one == place and i in songs]
        texts = describe_pairs(snapshot, song, others, features)
        if len(examples) > 1:
            name = f"like {f'“{song.title}”' if song else 'your file'}"
            texts = [" · ".join(filter(None, (name, text))) for text in texts]
        reasons |= {other.id: text for other, text in zip(others, texts, strict=True)}
    return [
        Hit(songs[i], float(kernels.ppk_similarity(d)), d, reasons[i])
        for i, d in zip(ids, distances.tolist(), strict=True)
        if i in songs
    ]


def choose_songs_of(snapshot: Snapshot, artist: str) -> Examples:
    """Return a query with up to eight songs by an artist, evenly spaced; raises NotFoundError if there are none."""
    rows = np.flatnonzero(snapshot.columns.group.is_in([fold_name(artist)]))
    if not len(rows):
        raise NotFoundError(f"{snapshot.library.name}: no song by {artist[:100]!r} found.")
    return Examples(tuple(snapshot.row_ids[sample_evenly(rows, _MAX_SEEDS)].tolist()))


def sample_evenly(items: _Items, most: int) -> _Items:
    """Return at most `most` of the items, evenly spaced."""
    return items[np.unique(np.linspace(0, len(items) - 1, most).astype(int))] if len(items) else items


def find_similar_artists(
    snapshot: Snapshot,
    query: Query,
    n_artists: int,
    *,
    filters: Filters | None = None,
    exclude: Iterable[int] = (),
    thumbs: Thumbs | None = None,
) -> dict[str, list[Hit]]:
    """Return other artists with songs near a query, and these songs; artists and songs are sorted by distance."""
    rows = snapshot.rows_of(examples_of(query).song_ids)
    codes = snapshot.columns.group.codes
    own = snapshot.row_ids[np.isin(codes, codes[rows[rows >= 0]])]
    excluded, k = [*exclude, *own.tolist()], N_ENTRIES * n_artists
    while True:
        hits = find_similar(
            snapshot, query, k, max_per_artist=N_ENTRIES, filters=filters, exclude=excluded, thumbs=thumbs
        )
        by_artist: dict[str, list[Hit]] = {}
        for hit in hits:
            if hit.song.artist:
                by_artist.setdefault(hit.song.group, []).append(hit)
        if len(by_artist) >= n_artists or len(hits) < k:
            break
        k *= 2
    return {songs[0].song.by: songs for songs in list(by_artist.values())[:n_artists]}
