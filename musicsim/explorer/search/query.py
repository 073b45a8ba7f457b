"""Search by example: the songs most similar to a song, a file or a recording."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from musicsim import kernels
from musicsim.audio import SongFrames, Sound, analyse_sound
from musicsim.errors import AudioTooShortError, ModelError, NotFoundError
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.feedback import Thumbs, bent, thumbs_by_id
from musicsim.explorer.snapshot.filtering import passing
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song
from musicsim.library.genres import genre_key
from musicsim.library.scan.files import content_hash

__all__ = [
    "Example",
    "Hit",
    "example_of",
    "find_requested",
    "find_similar",
    "model_to_compare_with",
    "read_example",
    "short_reason",
    "similarity_of",
]


# Of the nearest, from which mutual proximity takes its order, and the limit of songs an artist its choice: an artist
# may have hundreds of songs in one place, and to ask a second time costs more than to ask for more at once.
_CANDIDATES = 500
# Of the nearest by one metric for all songs, from which the nearest by the metric of the query are taken.
_BENT_CANDIDATES = 5_000
_TAGS_COMPARED = 8  # of a song, the heaviest
_SAME_TEMPO = 1.04  # few listeners tell tempos within 4 % apart, and no estimate of them does


@dataclass(frozen=True, slots=True)
class Hit:
    """An answer: a song, how similar it is (0 to 1), and one short reason; the distance is adjusted for hubs."""

    song: Song
    similarity: float
    distance: float
    reason: str


@dataclass(frozen=True, slots=True)
class Example:
    """Sound from outside the library, ready to be searched with.

    Attributes
    ----------
    vector : float32 ndarray of shape (n_dimensions,)
    peaks : float32 ndarray of shape (n_bins,), in [0, 1]
    notes : tuple of str
        What was odd about the file.
    song_id : int or None
        The song of the library that has the very same bytes or sound.
    features : float32 ndarray of shape (n_features,)
    frames : SongFrames
    is_cut : bool
        Whether the sound goes on behind what was analysed.
    """

    name: str
    vector: npt.NDArray[np.float32]
    peaks: npt.NDArray[np.float32]
    duration_s: float
    features: npt.NDArray[np.float32]
    frames: SongFrames
    notes: tuple[str, ...] = field(default=())
    song_id: int | None = None
    is_cut: bool = False


def read_example(snapshot: Snapshot, source: Path | bytes, name: str) -> Example:
    """Decode a file or its bytes in this process and find its vector under the model in use.

    A server lets :func:`musicsim.explorer.search.uploads.hear` decode instead.

    Raises
    ------
    AudioError
        If it cannot be decoded or is too short; the message names it.
    ModelError
        If the library has no model yet.
    """
    model_to_compare_with(snapshot)
    return example_of(snapshot, analyse_sound(source, name=name), content_hash(source), name)


def model_to_compare_with(snapshot: Snapshot) -> SimilarityModel:
    """The model in use; raises :class:`ModelError` where the library has none yet."""
    if snapshot.model is None:
        raise ModelError("this library has no songs to compare with yet: add a folder first.")
    return snapshot.model


def example_of(snapshot: Snapshot, sound: Sound, digest: str, name: str) -> Example:
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


def find_requested(
    snapshot: Snapshot, query: int | Example, request: SearchRequest, thumbs: Thumbs | None = None
) -> list[Hit]:
    """:func:`find_similar` as it was asked for, with the thumbs of the request unless others are given."""
    if thumbs is None:
        thumbs = thumbs_by_id(snapshot.library, request.fits, request.does_not_fit)
    return find_similar(
        snapshot,
        query,
        request.k,
        max_per_artist=request.per_artist or None,
        filters=request,
        hub_reduction=request.hub_reduction,
        thumbs=thumbs,
    )


def find_similar(
    snapshot: Snapshot,
    query: int | Example,
    k: int = 10,
    *,
    max_per_artist: int | None = 2,
    filters: Filters | None = None,
    exclude: Iterable[int] = (),
    hub_reduction: bool | None = None,
    thumbs: Thumbs | None = None,
) -> list[Hit]:
    """The `k` songs most similar to a song of the library or to an example.

    Parameters
    ----------
    query : int or Example
        A song id, or sound from outside.
    max_per_artist : int or None, default 2
        None for no limit. Where the artist is unknown the folder stands in, as :attr:`Song.group` has it.
    filters : Filters, optional
        Only songs that pass are answers.
    exclude : iterable of int
        Song ids that are no answers; the query itself never is, nor a song with the same sound.
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
    row, vector = _query_vector(snapshot, query)
    if not snapshot.n_indexed:
        return []
    unfitting = [] if thumbs is None else thumbs.unfitting
    fitting = frozenset(snapshot.rows_of([] if thumbs is None else thumbs.fitting).tolist())
    barred = np.unique(np.append(snapshot.rows_of([*exclude, *unfitting]), row))
    barred = barred[barred >= 0]
    allowed = None if filters is None else passing(snapshot, filters)
    if allowed is not None:
        allowed[barred] = False
    n_allowed = snapshot.n_indexed - len(barred) if allowed is None else int(allowed.sum())
    reduce = snapshot.library.settings["hub_reduction"] if hub_reduction is None else hub_reduction
    bending = bent(snapshot, vector, thumbs or Thumbs())
    reach = min(n_allowed, max(4 * k, _CANDIDATES if bending is None else _BENT_CANDIDATES))
    while n_allowed:
        distances, rows = _candidates(snapshot, vector, reach, allowed, barred)
        if bending is not None:
            distances = bending.distances(snapshot.vectors_at(rows))
            order = np.argsort(distances, kind="stable")
            distances, rows = distances[order], rows[order]
        if reduce:
            distances = snapshot.adjusted(vector, distances, rows)
            order = np.argsort(distances, kind="stable")
            distances, rows = distances[order], rows[order]
        chosen = _limit_per_artist(snapshot, rows, k, max_per_artist, fitting)
        if len(chosen) == k or reach == n_allowed:
            return _hits(snapshot, row, rows[chosen], distances[chosen])
        reach = min(n_allowed, 4 * reach)
    return []


def similarity_of(snapshot: Snapshot, query: int | Example, other_id: int) -> float:
    """The similarity of a song to a query, 0 to 1, as a list of results has it without thumbs.

    Raises
    ------
    NotFoundError
        If a song is not in the library or has no vector yet.
    """
    _, vector = _query_vector(snapshot, query)
    row, other = _query_vector(snapshot, other_id)
    distances = np.array([np.linalg.norm(vector.astype(np.float64) - other)])
    if snapshot.library.settings["hub_reduction"]:
        distances = snapshot.adjusted(vector, distances, np.array([row]))
    return float(kernels.ppk_similarity(distances[0]))


def _candidates(
    snapshot: Snapshot,
    vector: npt.NDArray[np.float32],
    reach: int,
    allowed: npt.NDArray[np.bool_] | None,
    barred: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.int64]]:
    """The `reach` nearest rows that are allowed and not barred, with their distances."""
    n_asked = reach if allowed is not None else reach + len(barred)
    distances, rows = (found[0] for found in snapshot.index.query(vector[None, :], n_asked, allowed=allowed))
    if allowed is None:  # a few more were asked for, as a mask of all songs would cost more
        kept = np.flatnonzero(~np.isin(rows, barred))[:reach]
        distances, rows = distances[kept], rows[kept]
    return distances, rows


def _query_vector(snapshot: Snapshot, query: int | Example) -> tuple[int, npt.NDArray[np.float32]]:
    """The row of the query, -1 where the library does not have it, and its vector."""
    if isinstance(query, Example):
        return (-1 if query.song_id is None else int(snapshot.rows_of([query.song_id])[0])), query.vector
    row = int(snapshot.rows_of([query])[0])
    if row < 0:
        song = snapshot.library.song(query)  # raises when there is no such song at all
        raise NotFoundError(
            f"{song.label} has not been compared yet: wait until the running job has finished."
        )
    return row, snapshot.vectors_at([row])[0]


def _limit_per_artist(
    snapshot: Snapshot,
    rows: npt.NDArray[np.int64],
    k: int,
    max_per_artist: int | None,
    always: frozenset[int],
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
    snapshot: Snapshot, row: int, rows: npt.NDArray[np.int64], distances: npt.NDArray[np.floating]
) -> list[Hit]:
    """Answers in the order of `rows`; a song that has gone since this moment is left out."""
    asked = [int(snapshot.row_ids[row])] if row >= 0 else []
    ids = snapshot.row_ids[rows].tolist()
    songs = {song.id: song for song in snapshot.songs_by_id(asked + ids)}
    song = songs.get(asked[0]) if asked else None
    tags = snapshot.tags_of(songs) if song else {}
    return [
        Hit(songs[i], float(kernels.ppk_similarity(d)), float(d), short_reason(tags, song, songs[i]))
        for i, d in zip(ids, distances, strict=True)
        if i in songs
    ]


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
