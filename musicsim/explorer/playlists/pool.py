"""The songs that a playlist is generated from: those that a request allows, with their weights and fixed places.

A library with too few playlists to learn from uses *paced* steps: the distance in sound determines the step size.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache, cached_property

import numpy as np

from musicsim import playlist
from musicsim._arrays import BoolArray, Float32Array, Float64Array, FloatingArray, Int64Array, IntpArray
from musicsim.explorer.playlists import steering
from musicsim.explorer.requests.playlist import DEFAULT_MINUTES, PlaylistRequest
from musicsim.explorer.snapshot.filtering import filter_rows
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.song_numbers import play_counts
from musicsim.library import OWN_PLAYLISTS
from musicsim.library.importing.spelling import plain_artist, plain_title

# Paced steps depend on shares of the library, so they are the same in a sample. A step among 20,000 songs takes 3 ms.
MAX_PLAYLIST_SONGS = 20_000
RESTS_S = 24 * 3600.0  # songs in playlists that were saved within this time have less weight
_RESTED = 0.1  # weight of songs in recently saved playlists
_JUMPS_ABOVE = 0.5  # surprise above which random jumps are allowed
_MAX_TRIES = 6  # maximum number of playlist lengths to try for a given duration
_MAX_EXCHANGES = 4  # maximum number of songs to swap for a given duration
_TOLERANCE_S = 120.0
_NEAR_S = 45.0  # acceptable difference in duration
_SEVERAL = 5  # minimum number of songs to choose from, if possible


def find_allowed_rows(snapshot: Snapshot, request: PlaylistRequest) -> BoolArray:
    """Return a mask of the rows that pass the request's filters, except excluded songs and songs with thumbs down."""
    allowed = filter_rows(snapshot, request)
    if allowed is None:
        allowed = np.ones(snapshot.n_indexed, dtype=bool)
    if request.only is not None:
        chosen = snapshot.rows_of(request.only)
        allowed &= np.isin(np.arange(snapshot.n_indexed), chosen)
    disliked = (song_id for song_id, thumb in snapshot.library.feedback().items() if thumb < 0)
    excluded = snapshot.rows_of([*request.exclude, *disliked])
    allowed[excluded[excluded >= 0]] = False
    return allowed


def song_weights(snapshot: Snapshot, request: PlaylistRequest, plays: Float64Array) -> Float64Array | None:
    """Return each row's weight, from its `plays` (n_indexed,) and recent use; None if all are equal."""
    rested_ids = request.rested
    if request.avoid_recent:
        since = time.time() - RESTS_S
        own = snapshot.library.playlists(OWN_PLAYLISTS)
        rested_ids = rested_ids.union(*(saved.song_ids for saved in own if saved.created_at >= since))
    rested = snapshot.rows_of([*rested_ids, *snapshot.library.player_plays.often_skipped()])
    rested = rested[rested >= 0]
    if not len(rested) and request.prefer == "any":
        return None
    weights = np.ones(snapshot.n_indexed)
    if request.prefer != "any":
        weights = np.sqrt(plays + 0.5)
        weights = weights if request.prefer == "familiar" else 1.0 / weights
    weights[rested] *= _RESTED
    return weights / weights.max()


def works_of(snapshot: Snapshot, rows: Int64Array) -> list[tuple[str, str] | None]:
    """Return a key per row that all versions of a song share: plain artist and title; None without an artist."""
    artists, names = snapshot.columns.artist.texts(rows), snapshot.names_at(rows)
    return [
        (plain_artist(artist), plain_title(title)[0]) if artist else None
        for artist, (title, _) in zip(artists, names, strict=True)
    ]


def _is_sampled(n_songs: int) -> bool:
    """Return whether playlists for a library of this size are generated from a sample."""
    return n_songs > MAX_PLAYLIST_SONGS


def _sample_rows(allowed: BoolArray, required: Sequence[int], random_state: int | None) -> Int64Array:
    """Return a random sample of at most 20,000 allowed rows, plus the required ones, ascending."""
    rows = np.flatnonzero(allowed)
    if _is_sampled(len(rows)):
        rows = np.random.default_rng(random_state).choice(rows, MAX_PLAYLIST_SONGS, replace=False)
    return np.union1d(rows, np.array(required, dtype=np.int64)).astype(np.int64)


class SongFacts:
    """Facts about the songs of a snapshot that the pools of all requests share; each is computed on first use."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    @cached_property
    def plays(self) -> Float64Array:
        return play_counts(self.snapshot)

    @cached_property
    def ranks(self) -> steering.SoundRanks:
        """Ranks of all songs by distance, or of a sample if the library is large."""
        n = self.snapshot.n_indexed
        if not _is_sampled(n):
            return self.rank(self.snapshot.X)
        return self.rank(self.snapshot.vectors_at(_sample_rows(np.ones(n, np.bool_), [], 0)))

    def rank(self, X: Float32Array) -> steering.SoundRanks:
        if len(X):
            self.snapshot.index_of(X)  # raises ModelError if the vectors are damaged
        return steering.SoundRanks(X)

    @cached_property
    def _artists(self) -> IntpArray:
        """A number per row that spellings of an artist share, (n_indexed,); -1 for rows without an artist."""
        artist = self.snapshot.columns.artist
        numbers: dict[str, int] = {}
        of_name = [numbers.setdefault(plain_artist(name), len(numbers)) if name else -1 for name in artist.names]
        return np.array([*of_name, -1], np.intp)[artist.codes]  # code -1 selects the last number

    @cached_property
    def versions(self) -> playlist.Versions:
        """Function that finds the versions of a song among all songs."""
        return self.versions_among(np.arange(self.snapshot.n_indexed))

    def versions_among(self, rows: Int64Array) -> playlist.Versions:
        """Return a function that finds the versions of a song, which have the same plain artist and title.

        Songs are positions in `rows`. The first call for an artist takes 10 µs per song of the artist.
        """
        artists = self._artists[rows]

        @cache
        def titles_of(artist: int) -> tuple[IntpArray, list[str]]:
            songs = np.flatnonzero(artists == artist)
            return songs, [plain_title(title)[0] for title, _ in self.snapshot.names_at(rows[songs])]

        def versions_of(song: int) -> IntpArray:
            if artists[song] < 0:
                return np.array([song], np.intp)
            songs, titles = titles_of(int(artists[song]))
            own = titles[int(np.searchsorted(songs, song))]
            return songs[[title == own for title in titles]]

        return versions_of


class Pool:
    """The songs that the playlist of one request is generated from, numbered from 0.

    `model` is the walk over all songs of the snapshot. A paced playlist of a large library is generated from a sample.
    `rows` (n,), ascending, are the rows of the pool's songs in the snapshot, and `X` (n, n_dimensions) their vectors.
    Without `uses_sound`, the path between stops and rising values are ignored. With `has_trials`, each step is compared
    with the same step without its edge.
    """

    def __init__(
        self,
        facts: SongFacts,
        request: PlaylistRequest,
        model: playlist.PlaylistModel,
        random_state: int | None,
        *,
        is_paced: bool,
        uses_sound: bool,
        has_trials: bool,
    ) -> None:
        snapshot = facts.snapshot
        self._snapshot, self._request, self._random_state = snapshot, request, random_state
        self._is_paced, self._uses_sound, self._has_trials = is_paced, uses_sound, has_trials
        allowed = find_allowed_rows(snapshot, request)
        required = [snapshot.row_of(i) for i in (*request.stops, *request.keep.values())]
        self._n_left = int(np.count_nonzero(allowed)) + sum(not allowed[row] for row in set(required))
        if is_paced and _is_sampled(snapshot.n_indexed):
            like = [snapshot.row_of(i) for i in request.like]
            self.rows = _sample_rows(allowed, [*required, *like], random_state)
            self._model, self.X = model.restrict(self.rows), snapshot.vectors_at(self.rows)
            self._ranks = facts.rank(self.X)
            self._versions = facts.versions_among(self.rows) if request.versions_apart else None
        else:
            self.rows = np.arange(snapshot.n_indexed)
            self._model, self.X, self._ranks = model, snapshot.X, facts.ranks
            self._versions = facts.versions if request.versions_apart else None
        self._allowed = allowed[self.rows]
        weights = song_weights(snapshot, request, facts.plays)
        self._weights = None if weights is None else weights[self.rows]
        self._groups = snapshot.columns.group.codes[self.rows]

    @property
    def _has_jumps(self) -> bool:
        return self._request.surprise > _JUMPS_ABOVE

    @property
    def has_near_jumps(self) -> bool:
        """True if random jumps lead only to songs that are similar in sound."""
        return self._is_paced and not (self._has_jumps or self._request.along)

    def generate(self) -> tuple[playlist.Playlist, list[str]]:
        """Generate a playlist of the requested length or duration, and notes about options that could not be met."""
        request = self._request
        if request.minutes is None and request.length is not None:
            return self._generate_songs(request.length, self._n_left, request.keep)
        return self._generate_minutes(60.0 * (request.minutes or DEFAULT_MINUTES))

    def _number(self, song_id: int) -> int:
        return int(np.searchsorted(self.rows, self._snapshot.row_of(song_id)))

    def _generate_songs(
        self, length: int, n_left: int, keep: Mapping[int, int], candidates: BoolArray | None = None
    ) -> tuple[playlist.Playlist, list[str]]:
        """Generate a playlist with the widest possible artist spacing; `n_left` songs match the request.

        `keep` maps positions to song ids. `candidates` (n,) further restricts the allowed songs at other positions.
        """
        request, notes = self._request, list[str]()
        stops = [self._number(i) for i in request.stops]
        if len(stops) > length:
            notes.append(f"{len(stops)} songs instead of {length}: the playlist passes through {len(stops)} songs")
        length = max(length, len(stops))
        if len(stops) > 1:
            path = dict(zip(steering.places_of(self.X, stops, length), stops, strict=True))
        else:
            path = {0 if request.first is not None else length - 1: stop for stop in stops}
        fixed = path | {place: self._number(i) for place, i in keep.items()}
        if not set(path.values()) <= set(fixed.values()):
            notes.append("pinned songs replace some of the songs to pass through")
        stops_on_path = path if len(path) > 1 and self._uses_sound else {}
        weigh, steer = self._weighing(length, fixed.get(0), notes), self._steering(stops_on_path)
        length = max(length, *(place + 1 for place in fixed), 1)
        is_excluded = ~self._near(length, candidates)
        is_excluded[list(fixed.values())] = False
        excluded = np.flatnonzero(is_excluded)
        # songs without a group count as one
        n_artists = int(np.count_nonzero(np.bincount(self._groups[self._allowed] + 1)))
        max_spacing = min(request.spacing, max(0, n_artists - 1))
        for spacing in range(max_spacing, -1, -1):
            generated = self._model.generate(
                length,
                fixed=fixed,
                exclude=excluded,
                groups=self._groups,
                spacing=spacing,
                works=self._versions,
                weigh=weigh,
                steer=steer,
                within=self._ranks.near if self.has_near_jumps else None,
                temperature=1.0 if self._is_paced else steering.temperature_of(request.surprise),
                use_uniform=self._is_paced or self._has_jumps,
                trials=self._has_trials,
                random_state=self._random_state,
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

    def _weighing(self, length: int, first: int | None, notes: list[str]) -> playlist.Weighing | None:
        """Return the product of all song weights per position; add a note if too few songs have the value to follow."""
        request = self._request
        rise: playlist.Weighing | None = None
        if request.along is not None:
            values = getattr(self._snapshot.columns, request.along)[self.rows]
            is_rising = request.direction == "rising"
            rise = steering.weigh_rising(values if is_rising else -values, self._allowed, length, first)
            if rise is None:
                notes.append(f"too few songs have a known {request.along} for a {request.direction} playlist")
        same = self._same_weights
        if rise is None or not self._uses_sound:
            return None if same is None else lambda place: same
        return steering.multiply(rise, same)

    def _steering(self, path: Mapping[int, int]) -> playlist.Steering | None:
        """Return steering along a path, and for paced steps elsewhere; None if neither is needed."""
        along = steering.steer_to_stops(self._ranks.shares, path, len(self.X)) if path else None
        if not self._is_paced or self._request.along is not None:
            return along
        paced = steering.make_paced_steering(self._ranks.shares, steering.median_of(self._request.surprise))

        def steer(place: int, previous: int, probabilities: Float64Array) -> Float64Array | None:
            weights = along(place, previous, probabilities) if along else None
            return paced(place, previous, probabilities) if weights is None else weights

        return steer

    @cached_property
    def _like_distances(self) -> Float64Array | None:
        """Squared distance of each song from the nearest song of `like`; None without such songs."""
        like = [self._number(i) for i in self._request.like]
        return steering.distances_around(self.X, like) if like else None

    @cached_property
    def _same_weights(self) -> Float64Array | None:
        """Weights of songs at every position, including the weights for `like`; None if all are equal."""
        if self._like_distances is None:
            return self._weights
        near = steering.weigh_around(self._like_distances, self._request.surprise)
        return near if self._weights is None or near is None else self._weights * near

    def _near(self, length: int, candidates: BoolArray | None) -> BoolArray:
        """Return the allowed songs that are near the songs of `like`."""
        allowed = self._allowed if candidates is None else self._allowed & candidates
        if self._like_distances is None:
            return allowed
        return steering.find_around(self._like_distances, allowed, self._request.surprise, length)

    def _generate_minutes(self, wanted_s: float) -> tuple[playlist.Playlist, list[str]]:
        """Generate the number of songs that comes closest to a duration, then swap songs to come closer."""
        keep = self._request.keep
        durations = self._snapshot.columns.duration_s[self.rows]

        def duration_of(generated: playlist.Playlist) -> float:
            return float(durations[list(generated.songs)].sum())

        usual = max(float(durations[self._allowed].mean()) if self._allowed.any() else 240.0, 1.0)
        tried = dict[int, tuple[playlist.Playlist, list[str]]]()
        min_length = max(1, len({*self._request.stops, *keep.values()}), *(place + 1 for place in keep))
        length = max(min_length, min(self._n_left, round(wanted_s / usual)))
        while length not in tried and len(tried) < _MAX_TRIES:
            tried[length] = self._generate_songs(length, self._n_left, keep)
            generated = tried[length][0]
            if len(generated.songs) < length:  # no more songs match
                break
            length = max(min_length, length + round((wanted_s - duration_of(generated)) / usual))
            if length in tried:  # the length alternates, because some songs are several times as long as others
                short = max((n for n, (one, _) in tried.items() if duration_of(one) <= wanted_s), default=min_length)
                length = (short + min((n for n in tried if n > short), default=short)) // 2
        best, notes = min(tried.values(), key=lambda one: abs(duration_of(one[0]) - wanted_s))
        for _ in range(_MAX_EXCHANGES):
            exchange = self._find_exchange(best.songs, durations, wanted_s - duration_of(best))
            if exchange is None:
                break
            place, songs = exchange
            ids = self._snapshot.row_ids[self.rows[list(best.songs)]].tolist()
            others = {other: song_id for other, song_id in enumerate(ids) if other != place}
            exchanged, more_notes = self._generate_songs(len(ids), len(ids), others, songs)
            if len(exchanged.songs) < len(ids):  # every candidate violates another condition
                break
            best, notes = exchanged, list(dict.fromkeys([*notes, *more_notes]))
        if abs(duration_of(best) - wanted_s) > _TOLERANCE_S:
            notes = [*notes, f"{duration_of(best) / 60:.0f} minutes instead of {wanted_s / 60:.0f}: no closer match"]
        return best, notes

    def _find_exchange(
        self, songs: Sequence[int], durations: FloatingArray, gap_s: float
    ) -> tuple[int, BoolArray] | None:
        """Return the position to change, and a mask (n,) of the songs for it, to come closest to a duration.

        Returns None if the duration is close enough, or no song comes closer. `songs` are numbers in the pool,
        `durations` (n,) covers the whole pool, and `gap_s` is the missing time in seconds. The last position with
        several suitable songs is preferred, because each song depends on the songs before it. Positions that the
        request fixes keep their songs.
        """
        if abs(gap_s) <= _NEAR_S or not songs:
            return None
        request, groups, numbers = self._request, self._groups, list(songs)
        free = self._allowed.copy()
        free[numbers] = False
        if self._versions is not None:
            free[np.concatenate([self._versions(number) for number in numbers])] = False
        fixed = {self._number(i) for i in (*request.stops, *request.keep.values())}
        best: tuple[int, BoolArray] | None = None
        best_gap = abs(gap_s)
        for spacing in (request.spacing, 0):  # drop the spacing if nothing else comes close enough
            for place in reversed([place for place, number in enumerate(numbers) if number not in fixed]):
                around = [*numbers[max(0, place - spacing) : place], *numbers[place + 1 : place + 1 + spacing]]
                gaps = np.abs(gap_s + durations[numbers[place]] - durations)
                gaps[~free | (np.isin(groups, groups[around]) & (groups >= 0))] = np.inf
                if np.count_nonzero(gaps <= _NEAR_S) >= _SEVERAL:
                    return place, gaps <= _NEAR_S
                nearest = gaps.min(initial=np.inf)
                if nearest < best_gap:
                    best, best_gap = (place, gaps <= max(nearest, _NEAR_S)), nearest
            if best_gap <= _NEAR_S:
                break
        return best
