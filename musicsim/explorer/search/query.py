"""Search by example: the songs most similar to a song, a file or a recording, or to several of them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from musicsim import audio, kernels, metric
from musicsim._arrays import BoolArray, Float32Array, Float64Array, FloatingArray, Int64Array
from musicsim.audio import SongFrames
from musicsim.errors import AudioTooShortError, ModelError, NotFoundError
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.search.feedback import Thumbs, bent
from musicsim.explorer.snapshot.conditions import All
from musicsim.explorer.snapshot.filtering import condition_of
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song
from musicsim.library.scan.files import content_hash
from musicsim.library.stores.genres import genre_key

# Of the nearest, from which mutual proximity takes its order, and the limit of songs an artist its choice: an artist
# may have hundreds of songs in one place, and to ask a second time costs more than to ask for more at once.
_CANDIDATES = 500
# Of the nearest by one metric for all songs, from which the nearest by the metric of the query are taken.
_BENT_CANDIDATES = 5_000
_TAGS_COMPARED = 8  # of a song, the heaviest
# Of several examples: how much those count that results should not be like, and a distance that counts as none.
_UNLIKE, _SMALLEST = 0.5, 1e-6
_SAME_TEMPO = 1.04  # few listeners tell tempos within 4 % apart, and no estimate of them does


@dataclass(frozen=True, slots=True)
class Hit:
    """An answer: a song, how similar it is (0 to 1), and one short reason; the distance is adjusted for hubs.

    What words alone have found is similar to nothing: None.
    """

    song: Song
    similarity: float | None
    distance: float
    reason: str


@dataclass(frozen=True, slots=True)
class Example:
    """Sound from outside the library, ready to be searched with."""

    name: str
    vector: Float32Array  # (n_dimensions,)
    peaks: Float32Array  # (n_bins,), in [0, 1]
    duration_s: float
    features: Float32Array  # (n_features,)
    frames: SongFrames
    notes: tuple[str, ...] = field(default=())  # what was odd about the file
    song_id: int | None = None  # the song of the library that has the very same bytes or sound
    is_cut: bool = False  # whether the sound goes on behind what was analysed
    starts_s: float = 0.0  # where it begins in the song or file that it is a part of


@dataclass(frozen=True, slots=True)
class Examples:
    """Several examples at once."""

    # song ids and sound from outside that results should be like; at least one
    like: tuple[int | Example, ...]
    unlike: tuple[int, ...] = ()  # ids of songs that results should not be like


Query = int | Example | Examples
"""What is searched with: a song id, sound from outside the library, or several of them."""


def examples_of(query: Query) -> Examples:
    """Any query as examples."""
    return query if isinstance(query, Examples) else Examples((query,))


def read_example(snapshot: Snapshot, source: Path | bytes, name: str) -> Example:
    """Decode a file or its bytes in this process and find its vector under the model in use.

    A server lets :func:`musicsim.explorer.search.uploads.decode_upload` decode instead.

    Raises AudioError if it cannot be decoded or is too short; the message names it; ModelError if the library
    has no model yet.
    """
    model_to_compare_with(snapshot)
    return make_example(snapshot, audio.analyse_sound(source, name=name), content_hash(source), name)


def model_to_compare_with(snapshot: Snapshot) -> SimilarityModel:
    """The model in use; raises :class:`ModelError` where the library has none yet."""
    if snapshot.model is None:
        raise ModelError("this library has no songs to compare with yet: add a folder first.")
    return snapshot.model


def make_example(snapshot: Snapshot, sound: "audio.Sound", digest: str, name: str) -> Example:
    """Sound that was decoded, with its vector under the model in use.

    Parameters
    ----------
    sound : Sound
        With its coefficients.
    digest : str
        Hash of the file's bytes.
    name : str
        What messages call it.

    Raises
    ------
    AudioTooShortError
        If it is too short; the message names it.
    ModelError
        If the library has no model yet.
    """
    model = model_to_compare_with(snapshot)
    if sound.mfcc is None:
        raise ValueError("sound.mfcc is None: read the coefficients from their file.")
    frames = SongFrames(sound.mfcc, sound.fluctuation)
    try:
        features = model.features([frames])
    except AudioTooShortError as error:
        raise AudioTooShortError(f"{name}: {error}") from error
    return Example(
        name,
        model.vectors(features)[0],
        sound.outline,
        sound.duration_s,
        features[0],
        frames,
        sound.notes,
        snapshot.library.song_with_sound(digest, sound.sound_hash),
        sound.is_cut,
    )


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
    """The `k` songs most similar to a song of the library, to sound from outside, or to several of them.

    Parameters
    ----------
    query : Query
        Of several examples the mean of the inverse squares of the distances counts, less half of the same mean of what
        results should not be like: songs near one example come before songs that are half-way between all.
    max_per_artist : int or None, default 2
        None for no limit. Where the artist is unknown the folder stands in, as :attr:`Song.group` has it.
    filters : Filters, optional
        Only songs that pass are answers.
    exclude : iterable of int
        Song ids that are no answers; examples themselves never are, nor songs with the same sound.
    hub_reduction : bool, optional
        Order the nearest candidates by mutual proximity, so that songs that are near everything do not crowd
        every list; by default as the library's settings have it.
    thumbs : Thumbs, optional
        What was said of answers: songs that do not fit are no answers, those that do pass the limit an artist, and
        the metric is bent around the query (:func:`musicsim.explorer.search.feedback.bent`).

    Returns
    -------
    list of Hit
        Nearest first; fewer than `k` when no more songs qualify.

    Raises
    ------
    NotFoundError
        If the song is not in the library or has no vector yet.
    """
    examples = examples_of(query)
    like, unlike = ([_query_vector(snapshot, one) for one in some] for some in (examples.like, examples.unlike))
    if not snapshot.n_indexed or not like:
        return []
    thumbs = thumbs or Thumbs()
    fitting = frozenset(snapshot.rows_of(thumbs.fitting).tolist())
    barred = np.unique([*snapshot.rows_of([*exclude, *thumbs.unfitting]), *(row for row, _ in [*like, *unlike])])
    barred = barred[barred >= 0].astype(np.int64)
    condition = None if filters is None else condition_of(snapshot, filters)
    allowed = None if condition is None else condition.rows(snapshot.columns)
    if allowed is not None:
        allowed[barred] = False
    n_allowed = snapshot.n_indexed - len(barred) if allowed is None else int(allowed.sum())
    reduce = snapshot.library.settings["hub_reduction"] if hub_reduction is None else hub_reduction
    bendings = [bent(snapshot, vector, thumbs) for _, vector in like]
    is_bent = any(bending is not None for bending in bendings)
    reach = min(n_allowed, max(4 * k, _BENT_CANDIDATES if is_bent else _CANDIDATES))
    while n_allowed:
        found = [_candidates(snapshot, vector, reach, condition, allowed, barred) for _, vector in like]
        rows = found[0] if len(found) == 1 else np.unique(np.concatenate(found))
        distances = np.stack(
            [
                _distances(snapshot, vector, rows, bending, reduce)
                for (_, vector), bending in zip(like, bendings, strict=True)
            ]
        )
        away = [_distances(snapshot, vector, rows, bent(snapshot, vector, Thumbs()), reduce) for _, vector in unlike]
        order, together = _in_order(distances, np.array(away))
        rows, nearest = rows[order], distances.argmin(axis=0)[order]
        chosen = limited_per_artist(snapshot, rows, k, max_per_artist, fitting)
        if len(chosen) == k or reach == n_allowed:
            return _hits(snapshot, [row for row, _ in like], rows[chosen], together[chosen], nearest[chosen])
        reach = min(n_allowed, 4 * reach)
    return []


def _distances(
    snapshot: Snapshot, vector: Float32Array, rows: Int64Array, bending: "metric.Feedback | None", reduce: bool
) -> FloatingArray:
    """Distances of rows from one example, by the metric around it, adjusted for hubs where these are reduced."""
    X = snapshot.vectors_at(rows)
    distances = np.linalg.norm(X - vector, axis=1) if bending is None else bending.distances(X)
    return snapshot.adjusted(vector, distances, rows) if reduce else distances


def _in_order(like: FloatingArray, unlike: FloatingArray) -> tuple[Int64Array, FloatingArray]:
    """The order of rows by their distances from examples, (n, n_rows) each, and one distance each in this order.

    It is infinite where a row is rather like what it should not be.
    """
    if len(like) == 1 and not len(unlike):
        order = np.argsort(like[0], kind="stable")
        return order, like[0][order]
    nearness = np.mean(np.maximum(like, _SMALLEST) ** -2.0, axis=0)
    if len(unlike):
        nearness = nearness - _UNLIKE * np.mean(np.maximum(unlike, _SMALLEST) ** -2.0, axis=0)
    order = np.argsort(-nearness, kind="stable")
    is_like = nearness[order] > 0
    return order, np.power(nearness[order], -0.5, out=np.full(len(order), np.inf), where=is_like)


def similarity_of(snapshot: Snapshot, query: Query, other_id: int) -> float:
    """The similarity of a song to a query, 0 to 1, as a list of results has it without thumbs.

    Raises NotFoundError if a song is not in the library or has no vector yet.
    """
    like, unlike = _pairwise(snapshot, query, other_id)
    _, (distance,) = _in_order(like[:, None], unlike[:, None])
    return float(kernels.ppk_similarity(distance))


def similarities_of(snapshot: Snapshot, query: Query, other_id: int) -> tuple[list[float], list[float]]:
    """The similarity of a song to each example, and to each that results should not be like; raises as above."""
    like, unlike = _pairwise(snapshot, query, other_id)
    return kernels.ppk_similarity(like).tolist(), kernels.ppk_similarity(unlike).tolist()


def _pairwise(snapshot: Snapshot, query: Query, other_id: int) -> tuple[Float64Array, Float64Array]:
    """Distances of a song from each example, and from each that results should not be like."""
    row, _ = _query_vector(snapshot, other_id)
    rows, reduce = np.array([row]), snapshot.library.settings["hub_reduction"]
    examples = examples_of(query)
    like, unlike = (
        np.array([_distances(snapshot, _query_vector(snapshot, one)[1], rows, None, reduce)[0] for one in some])
        for some in (examples.like, examples.unlike)
    )
    return like, unlike


def _candidates(
    snapshot: Snapshot,
    vector: Float32Array,
    reach: int,
    condition: All | None,
    allowed: BoolArray | None,
    barred: Int64Array,
) -> Int64Array:
    """The `reach` nearest rows that are allowed and not barred."""
    n_asked = reach if allowed is not None else reach + len(barred)
    rows = snapshot.nearest(vector, n_asked, allowed=allowed, condition=condition)
    # without a mask, which of all songs would cost more, a few more were asked for
    return rows[~np.isin(rows, barred)][:reach] if allowed is None else rows


def _query_vector(snapshot: Snapshot, query: int | Example) -> tuple[int, Float32Array]:
    """The row of the query, -1 where the library does not have it, and its vector."""
    if isinstance(query, Example):
        return (-1 if query.song_id is None else int(snapshot.rows_of([query.song_id])[0])), query.vector
    row = int(snapshot.rows_of([query])[0])
    if row < 0:
        song = snapshot.library.song(query)  # raises when there is no such song at all
        raise NotFoundError(f"{song.label} has not been compared yet: wait until the running job has finished.")
    return row, snapshot.vectors_at([row])[0]


def limited_per_artist(
    snapshot: Snapshot, rows: Int64Array, k: int, max_per_artist: int | None, always: frozenset[int] = frozenset()
) -> list[int]:
    """Positions in `rows` of the first `k` that keep the limit, or that are asked for `always`."""
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
    snapshot: Snapshot, examples: Sequence[int], rows: Int64Array, distances: FloatingArray, nearest: Int64Array
) -> list[Hit]:
    """Answers in the order of `rows`, each with its reason by the nearest of the rows of examples (-1: from outside).

    A song that has gone since this moment is left out.
    """
    asked = [int(snapshot.row_ids[row]) if row >= 0 else -1 for row in examples]
    ids = snapshot.row_ids[rows].tolist()
    songs = {song.id: song for song in snapshot.songs_by_id([i for i in asked if i >= 0] + ids)}
    tags = snapshot.tags_of(songs) if max(asked) >= 0 else {}
    hits = []
    for i, d, example in zip(ids, distances.tolist(), nearest.tolist(), strict=True):
        if i in songs:
            song = songs.get(asked[example])
            reason = short_reason(tags, song, songs[i])
            if len(examples) > 1:
                reason = f"like {f'“{song.title}”' if song else 'your file'} · {reason}"
            hits.append(Hit(songs[i], float(kernels.ppk_similarity(d)), d, reason))
    return hits


def short_reason(tags_of: Mapping[int, Sequence[tuple[str, float]]], song: Song | None, other: Song) -> str:
    """At most two things that a query and an answer share; "close in sound" when nothing else is known.

    Parameters
    ----------
    tags_of : mapping of song id to tags with weights, heaviest first
        As :meth:`Snapshot.tags_of` gives them; a song without tags may be left out.
    song : Song or None
        The query; None for sound that is not in the library.
    other : Song
        The answer.
    """
    facts = []
    if song is not None:
        if song.artist and song.artist == other.artist:
            facts.append("same artist")
        tags = [tag for tag, _ in tags_of.get(song.id, ())[:_TAGS_COMPARED]]
        others = {tag for tag, _ in tags_of.get(other.id, ())[:_TAGS_COMPARED]}
        facts += [f"both {tag}" for tag in tags if tag in others]
        if (
            song.genre
            and other.genre
            and genre_key(song.genre) == genre_key(other.genre)
            and f"both {song.genre.lower()}" not in facts
        ):
            facts.append(f"both {song.genre}")
        if song.year and other.year and abs(song.year - other.year) <= 1:
            facts.append("same years")
        if song.key and (song.key, song.mode) == (other.key, other.mode):
            facts.append(f"both in {song.key} {song.mode}")
        if song.tempo and other.tempo and abs(math.log(song.tempo / other.tempo)) <= math.log(_SAME_TEMPO):
            facts.append(f"both about {song.tempo:.0f} beats/min")
    return " · ".join(facts[:2]) or "close in sound"
