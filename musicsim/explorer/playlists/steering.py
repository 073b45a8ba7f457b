"""The songs that one playlist is generated from, and their weights for its request."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from musicsim import playlist
from musicsim._arrays import BoolArray, Float32Array, Float64Array, Int64Array
from musicsim.explorer.playlists.pace import SoundRanks, make_paced_steering, median_of
from musicsim.explorer.playlists.paths import places_of, steer_evenly, weigh_along, weigh_rising
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.filtering import filter_rows
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.importing.spelling import plain_artist, plain_title
from musicsim.library.stores.playlists import OWN_PLAYLISTS

# Paced steps depend on shares of the library, which are the same in a sample; a step among 20,000 songs takes 15 ms.
MAX_SONGS = 20_000
RESTS_S = 24 * 3600.0
"""Seconds for which songs of a saved playlist weigh less."""
_RESTED = 0.1  # their weight
_WIDEST = 4.0  # the temperature at surprise 1; its inverse at 0
_AROUND = 0.5  # surprise of the steps that define the surroundings of a song
_MIN_AROUND = 0.02  # smallest weight of a song that is far from all songs of `like`
_JUMPS_ABOVE = 0.5  # surprise


def find_allowed_rows(snapshot: Snapshot, request: PlaylistRequest) -> BoolArray:
    """Return which rows pass the request's filters and are not excluded, bool (n_indexed,)."""
    allowed = filter_rows(snapshot, request)
    if allowed is None:
        allowed = np.ones(snapshot.n_indexed, dtype=bool)
    excluded = snapshot.rows_of(request.exclude)
    allowed[excluded[excluded >= 0]] = False
    return allowed


def song_weights(snapshot: Snapshot, request: PlaylistRequest, plays: Float64Array) -> Float64Array | None:
    """Return the weight of each row by its plays (n_indexed,) and recent use; None if all are equal."""
    rested_ids = request.rested
    if request.avoid_recent:
        since = time.time() - RESTS_S
        own = snapshot.library.playlists(OWN_PLAYLISTS)
        rested_ids = rested_ids.union(*(saved.song_ids for saved in own if saved.created_at >= since))
    rested = snapshot.rows_of(rested_ids)
    rested = rested[rested >= 0]
    if not len(rested) and request.prefer == "any":
        return None
    weights = np.ones(snapshot.n_indexed)
    if request.prefer != "any":
        weights = np.sqrt(plays + 0.5)
        weights = weights if request.prefer == "familiar" else 1.0 / weights
    weights[rested] *= _RESTED
    return weights / weights.max()


def temperature_of(surprise: float) -> float:
    """Return the temperature of the walk: 1/4 for smooth, 1 in the middle, 4 for surprising."""
    return float(_WIDEST ** (2.0 * surprise - 1.0))


def works_of(snapshot: Snapshot, rows: Int64Array | None = None) -> list[tuple[str, str] | None]:
    """Return a key that all versions of a song share: plain artist and title; None for an unknown artist."""
    artists, names = snapshot.columns.artist.texts(rows), snapshot.names_at(rows)
    return [
        (plain_artist(artist), plain_title(title)[0]) if artist else None
        for artist, (title, _) in zip(artists, names, strict=True)
    ]


def is_sampled(n_songs: int) -> bool:
    """Return whether playlists of a library of this size are generated from a sample."""
    return n_songs > MAX_SONGS


def sample_rows(allowed: BoolArray, required: Sequence[int], random_state: int | None) -> Int64Array:
    """Return a random sample of at most 20,000 allowed rows, plus the required ones, ascending."""
    rows = np.flatnonzero(allowed)
    if is_sampled(len(rows)):
        rows = np.random.default_rng(random_state).choice(rows, MAX_SONGS, replace=False)
    return np.union1d(rows, np.array(required, dtype=np.int64)).astype(np.int64)


@dataclass(frozen=True)
class Pool:
    """The songs that one playlist is generated from, numbered from 0."""

    snapshot: Snapshot
    request: PlaylistRequest
    rows: Int64Array  # (n,), ascending: rows in the snapshot
    allowed: BoolArray  # (n,)
    model: playlist.PlaylistModel  # of these songs
    X: Float32Array  # (n, n_dimensions)
    ranks: SoundRanks  # used only if `is_paced`
    works: Sequence[Hashable] | None  # keys of versions; None if versions may occur together
    weights: Float64Array | None  # (n,), of songs at every place
    is_paced: bool  # ranks by sound decide how far steps go
    uses_sound: bool = True  # False: ignore the path between stops, and what rises

    def generate(self, length: int, n_left: int, random_state: int | None) -> tuple[playlist.Playlist, list[str]]:
        """Generate a playlist with the widest artist spacing that is possible, and notes on unmet options.

        `n_left` songs match the request: a playlist with all of them is not retried with a narrower spacing.
        """
        request, notes = self.request, list[str]()
        stops = [self._number(i) for i in request.stops]
        if len(stops) > length:
            notes.append(f"{len(stops)} songs rather than {length}: the playlist passes through {len(stops)} songs")
        length = max(length, len(stops))
        if len(stops) > 1:
            path = dict(zip(places_of(self.X, stops, length), stops, strict=True))
        else:
            path = {0 if request.first is not None else length - 1: stop for stop in stops}
        fixed = path | {place: self._number(i) for place, i in request.keep.items()}
        is_path = len(path) > 1 and self.uses_sound
        weigh = self._weighing(path if is_path else {}, length, fixed.get(0), notes)
        steer = self._steering(path if is_path else {})
        length = max(length, *(place + 1 for place in fixed), 1)
        excluded = np.setdiff1d(np.flatnonzero(~self.allowed), list(fixed.values())).tolist()
        groups = self.snapshot.columns.group.codes[self.rows]
        n_artists = len(np.unique(groups[self.allowed]))
        max_spacing = min(request.spacing, max(0, n_artists - 1))
        jumps = request.surprise > _JUMPS_ABOVE
        for spacing in range(max_spacing, -1, -1):
            generated = self.model.generate(
                length,
                fixed=fixed,
                exclude=excluded,
                groups=groups.tolist(),
                spacing=spacing,
                works=self.works,
                weigh=weigh,
                steer=steer,
                within=self.ranks.near if self.is_paced and not (jumps or request.along) else None,
                temperature=1.0 if self.is_paced else temperature_of(request.surprise),
                use_uniform=self.is_paced or jumps,
                random_state=random_state,
            )
            if len(generated.songs) == length or len(generated.songs) >= n_left:
                break
        if spacing < max_spacing:
            notes.append(f"only {spacing} songs between some songs by the same artist, not {max_spacing}")
        elif max_spacing < request.spacing:
            notes.append(f"artists repeat after {max_spacing} songs: there are only {n_artists} to choose from")
        if generated.note and (spacing == max_spacing or len(generated.songs) < length):
            notes.append(generated.note)
        if n_left < length:
            notes.append(f"only {n_left} song{'s match' if n_left != 1 else ' matches'} your request")
        return generated, notes

    def _number(self, song_id: int) -> int:
        return int(np.searchsorted(self.rows, self.snapshot.row_of(song_id)))

    def _weighing(
        self, path: Mapping[int, int], length: int, first: int | None, notes: list[str]
    ) -> playlist.Weighing | None:
        """Return the product of all weights of songs by place; note it if too few songs have the rising value."""
        lines = [weigh_along(self.X, path)] if path else []
        if self.request.along is not None:
            values = getattr(self.snapshot.columns, self.request.along)[self.rows]
            is_rising = self.request.direction == "rising"
            rise = weigh_rising(values if is_rising else -values, self.allowed, length, first)
            if rise is None:
                notes.append(f"too few songs have a known {self.request.along} for a {self.request.direction} playlist")
            elif self.uses_sound:
                lines.append(rise)
        same = self._same_weights
        if not lines:
            return None if same is None else lambda place: same

        def weigh(place: int) -> Float64Array | None:
            weights = [w for w in (same, *(line(place) for line in lines)) if w is not None]
            return np.prod(weights, axis=0) if weights else None

        return weigh

    def _steering(self, path: Mapping[int, int]) -> playlist.Steering | None:
        """Return how far steps go: evenly on a path, freely on a rise, otherwise by the requested surprise."""
        even = steer_evenly(self.X, path) if path else None
        if not self.is_paced or self.request.along is not None:
            return even
        paced = make_paced_steering(self.ranks.shares, median_of(self.request.surprise))

        def steer(place: int, previous: int, probabilities: Float64Array) -> Float64Array | None:
            weights = even(place, previous, probabilities) if even else None
            return paced(place, previous, probabilities) if weights is None else weights

        return steer

    @cached_property
    def _same_weights(self) -> Float64Array | None:
        """Weights of songs at every place, with those for `like`; None if all are equal."""
        if not self.request.like:
            return self.weights
        songs = [self._number(i) for i in self.request.like]
        steps = [self.model.transition_probabilities(song) for song in songs]
        if self.is_paced:
            pace = make_paced_steering(self.ranks.shares, median_of(_AROUND))
            steps = [p * pace(0, song, p) for song, p in zip(songs, steps, strict=True)]
        near = np.mean(steps, axis=0)
        top = near.max(initial=0.0)
        near[songs] = top
        around = np.maximum(near / top, _MIN_AROUND) if top > 0 else np.ones_like(near)
        return around if self.weights is None else self.weights * around
