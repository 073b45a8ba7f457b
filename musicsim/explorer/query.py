"""Search by example: the songs most similar to a song, a file or a recording."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from musicsim.audio import analyse_sound, derivative_blocks
from musicsim.errors import AudioTooShortError, ModelError, NotFoundError
from musicsim.explorer.explain import short_reason
from musicsim.explorer.snapshot import Snapshot
from musicsim.kernels import ppk_similarity
from musicsim.library import Song
from musicsim.library.files import content_hash

__all__ = ["Example", "Filters", "Hit", "find_similar", "read_example"]


_CANDIDATES = 500  # of the nearest, from which mutual proximity takes its order


@dataclass(frozen=True, slots=True)
class Hit:
    """An answer: a song, how similar it is (0 to 1), and one short reason; the distance is adjusted for hubs."""

    song: Song
    similarity: float
    distance: float
    reason: str


@dataclass(frozen=True, slots=True)
class Filters:
    """What answers must be; an empty filter lets everything through. Years and seconds are inclusive."""

    artists: frozenset[str] = frozenset()
    genres: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    years: tuple[int, int] | None = None
    duration_s: tuple[float, float] | None = None

    def allow(self, song: Song) -> bool:
        """Whether a song passes; an unknown artist, genre or year passes only where none is asked for."""
        return (
            (not self.artists or song.artist in self.artists)
            and (not self.genres or song.genre in self.genres)
            and (not self.folders or song.folder in self.folders)
            and (
                self.years is None or (song.year is not None and self.years[0] <= song.year <= self.years[1])
            )
            and (self.duration_s is None or self.duration_s[0] <= song.duration_s <= self.duration_s[1])
        )


@dataclass(frozen=True, slots=True)
class Example:
    """Sound from outside the library, ready to be searched with.

    Attributes
    ----------
    name : str
    vector : float32 ndarray of shape (n_dimensions,)
    peaks : float32 ndarray of shape (n_bins,), in [0, 1]
    duration_s : float
    notes : tuple of str
        What was odd about the file.
    song_id : int or None
        The song of the library that has the very same bytes or sound.
    features : float32 ndarray of shape (n_features,)
    mfcc : ndarray of shape (n_frames, 13)
        As :func:`musicsim.audio.derivative_blocks` takes them.
    """

    name: str
    vector: npt.NDArray[np.float32]
    peaks: npt.NDArray[np.float32]
    duration_s: float
    features: npt.NDArray[np.float32]
    mfcc: npt.NDArray[np.floating]
    notes: tuple[str, ...] = field(default=())
    song_id: int | None = None


def read_example(snapshot: Snapshot, data: bytes, name: str) -> Example:
    """Decode a file or recording and find its vector under the model in use.

    Raises
    ------
    AudioError
        If it cannot be decoded or is too short; the message names it.
    ModelError
        If the library has no model yet.
    """
    if snapshot.model is None:
        raise ModelError("this library has no songs to compare with yet: add a folder first.")
    sound = analyse_sound(data, name=name)
    assert sound.mfcc is not None  # no file was named for them
    try:
        frames = derivative_blocks(sound.mfcc)
    except AudioTooShortError as error:
        raise AudioTooShortError(f"{name}: {error}") from error
    features = snapshot.model.features([frames])
    return Example(
        name,
        snapshot.model.vectors(features)[0],
        sound.outline,
        sound.duration_s,
        features[0],
        sound.mfcc,
        sound.notes,
        snapshot.library.song_with_sound(content_hash(data), sound.sound_hash),
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
) -> list[Hit]:
    """The `k` songs most similar to a song of the library or to an example.

    Parameters
    ----------
    snapshot : Snapshot
    query : int or Example
        A song id, or sound from outside.
    k : int
    max_per_artist : int or None, default 2
        None for no limit. Where the artist is unknown the folder stands in, as :attr:`Song.group` has it.
    filters : Filters, optional
        Only songs that pass are answers.
    exclude : iterable of int
        Song ids that are no answers; the query itself never is, nor a song with the same sound.
    hub_reduction : bool, optional
        Order the nearest candidates by mutual proximity, so that songs that are near everything do not crowd
        every list; by default as the library's settings have it.

    Returns
    -------
    list of Hit
        Nearest first; fewer than `k` when no more songs qualify.

    Raises
    ------
    NotFoundError
        If the song is not in the library or has no vector yet.
    """
    song, vector = _query_vector(snapshot, query)
    if not snapshot.indexed:
        return []
    barred = {snapshot.same_as.get(i, i) for i in exclude} | ({song.id} if song else set())
    allowed = np.array(
        [s.id not in barred and (filters is None or filters.allow(s)) for s in snapshot.indexed], dtype=bool
    )
    n_allowed = int(allowed.sum())
    reduce = snapshot.library.settings["hub_reduction"] if hub_reduction is None else hub_reduction
    reach = min(n_allowed, max(4 * k, _CANDIDATES if reduce else 0))
    while n_allowed:
        distances, rows = (
            found[0] for found in snapshot.index.query(vector[None, :], reach, allowed=allowed)
        )
        if reduce:
            distances, rows = _without_hubs(snapshot, vector, distances, rows)
        chosen = _limit_per_artist(snapshot, rows, k, max_per_artist)
        if len(chosen) == k or reach == n_allowed:
            return [_hit(snapshot, song, rows[i], distances[i]) for i in chosen]
        reach = min(n_allowed, 4 * reach)
    return []


def _without_hubs(
    snapshot: Snapshot,
    vector: npt.NDArray[np.float32],
    distances: npt.NDArray[np.floating],
    rows: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.int64]]:
    """Candidates in the order of their mutual proximity, with distances adjusted for it."""
    proximity = snapshot.proximity
    mean, deviation = proximity.moments(vector[None, :])
    adjusted = proximity.rescore(distances, rows, (mean[0], deviation[0]))
    order = np.argsort(adjusted, kind="stable")
    return adjusted[order], rows[order]


def _query_vector(snapshot: Snapshot, query: int | Example) -> tuple[Song | None, npt.NDArray[np.float32]]:
    if isinstance(query, Example):
        row = snapshot.row_of.get(query.song_id) if query.song_id else None
        return (None if row is None else snapshot.indexed[row]), query.vector
    row = snapshot.row_of.get(query)
    if row is None:
        song = snapshot.library.song(query)  # raises when there is no such song at all
        raise NotFoundError(
            f"{song.label} has not been compared yet: wait until the running job has finished."
        )
    return snapshot.indexed[row], snapshot.X[row]


def _limit_per_artist(
    snapshot: Snapshot, rows: npt.NDArray[np.int64], k: int, max_per_artist: int | None
) -> list[int]:
    """Positions in `rows` of the first `k` that keep the limit."""
    counts: dict[str, int] = {}
    chosen = []
    for position, row in enumerate(rows):
        group = snapshot.indexed[row].group
        counts[group] = counts.get(group, 0) + 1
        if max_per_artist is not None and counts[group] > max_per_artist:
            continue
        chosen.append(position)
        if len(chosen) == k:
            break
    return chosen


def _hit(snapshot: Snapshot, song: Song | None, row: int, distance: float) -> Hit:
    other = snapshot.indexed[row]
    return Hit(other, float(ppk_similarity(distance)), float(distance), short_reason(snapshot, song, other))
