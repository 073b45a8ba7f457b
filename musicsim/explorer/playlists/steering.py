"""The pool of songs that a playlist is generated from, and the song weights that steer its steps.

A library with too few playlists to learn from uses *paced* steps: the distance in sound determines the step size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np

from musicsim import playlist
from musicsim._arrays import BoolArray, Float32Array, Float64Array, FloatingArray, Int64Array, IntpArray
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.filtering import filter_rows
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import OWN_PLAYLISTS
from musicsim.library.importing.spelling import plain_artist, plain_title

_NEAR_LINE = 0.03  # share of the songs that count as near a line
_MIN_NEAR = 8
_NARROW, _FEW = 0.02, 2  # deviation for rising values: a share of the songs, or a number of songs if that is larger
_FLOOR = 1e-4  # minimum weight of a song, so that the walk never gets stuck
# Median rank of the next song, as a share of the library, at surprise 0 and 1. Artist spacing leaves some steps without
# a near song, so 0.017 is needed to keep half of the steps within 0.02.
_SMOOTH, _SURPRISING = 0.017, 0.25
_MIN_EXPONENT, _MAX_EXPONENT = -3.0, 6.0  # range of the exponent for paced steps; the maximum is divided by the median
_HALVINGS = 25
_ROUNDING = 1e-6  # rounding error of squared distances, as a share of the squared norms
_CACHED_RANKS = 32  # number of songs whose ranks are cached; 160 kB each
_NEAR_SONG = 0.1  # share of the library that counts as similar to a song
# Paced steps depend on shares of the library, so they are the same in a sample. A step among 20,000 songs takes 3 ms.
MAX_PLAYLIST_SONGS = 20_000
RESTS_S = 24 * 3600.0  # songs in playlists that were saved within this time have less weight
_RESTED = 0.1  # weight of songs in recently saved playlists
_MAX_TEMPERATURE = 4.0  # temperature at surprise 1; the inverse applies at surprise 0
_AROUND = 0.2  # share of the songs that a playlist chooses from if it stays around a song
_PER_PLACE = 3  # minimum number of songs to choose from, per song of the playlist
_USUAL, _ANYWHERE = 0.3, 0.9  # surprise up to which this share applies, and from which all songs are near
_JUMPS_ABOVE = 0.5  # surprise above which random jumps are allowed
_NEAR_S = 45.0  # acceptable difference in duration
_SEVERAL = 5  # minimum number of songs to choose from, if possible


def places_of(X: FloatingArray, rows: Sequence[int], length: int) -> list[int]:
    """Return positions in a playlist for rows of X, first to last; the gaps are proportional to the rows' distances."""
    far = np.linalg.norm(np.diff(X[list(rows)].astype(np.float64), axis=0), axis=1)
    far = far if far.sum() > 0 else np.ones_like(far)
    shares = (length - 1) * far / far.sum()
    steps = np.maximum(np.floor(shares).astype(int), 1)
    while steps.sum() < length - 1:
        steps[np.argmax(shares - steps)] += 1
    while steps.sum() > length - 1:  # very short stretches were each rounded up to one step
        steps[np.argmax(steps)] -= 1
    return [0, *np.cumsum(steps).tolist()]


def weigh_along(X: FloatingArray, fixed: Mapping[int, int]) -> playlist.Weighing:
    """Return a function from positions to song weights, which are large near the line between two fixed songs.

    A song at distance d from the position's point on the line has weight exp(-(d^2 - a^2) / (b^2 - a^2)). Here, a is
    the distance of the nearest song, and b is the distance of the k-th nearest song, where k is 3% of the songs. In
    many dimensions all distances are large, and only their differences matter. Other positions have no weights.
    """
    places = sorted(fixed)
    squared_distances = _distances_from(X)
    k = _n_near(len(X))

    def weigh(place: int) -> Float64Array | None:
        before = [p for p in places if p < place]
        after = [p for p in places if p > place]
        if not before or not after:
            return None
        start, stop = before[-1], after[0]
        t = (place - start) / (stop - start)
        point = (1 - t) * X[fixed[start]].astype(np.float64) + t * X[fixed[stop]].astype(np.float64)
        return _nearest_first(squared_distances(point), k)

    return weigh


def steer_evenly(X: FloatingArray, fixed: Mapping[int, int]) -> playlist.Steering:
    """Return weights for the songs between two fixed ones that keep both the next step and later steps short.

    The cost of a song y after x is max(d(x, y), d(y, z) / (m - 1)), with m steps left to the fixed song z. This is the
    longest step if all later steps are equal. The weights are as in :func:`weigh_along`, with costs instead of
    distances. Songs that cost no more than a usual step have equal weights. Otherwise some steps would be needlessly
    short, and the largest would be conspicuous. A usual step is the mean distance from fixed songs to their k-th
    nearest song, or the largest distance to their nearest song if that is larger. Positions that are not between fixed
    songs have no weights.
    """
    places = sorted(fixed)
    squared_distances = _distances_from(X)
    k = _n_near(len(X))
    near = [min(1, k), k]
    distances = np.sqrt([np.partition(squared_distances(X[row]), near)[near] for row in fixed.values()])
    usual = max(distances[:, 0].max(), distances[:, 1].mean()) ** 2

    def steer(place: int, previous: int, probabilities: Float64Array) -> Float64Array | None:
        del probabilities
        stop = next((p for p in places if p > place), None)
        if stop is None or place < places[0]:
            return None
        last = squared_distances(X[fixed[stop]]) / (stop - place) ** 2
        return _nearest_first(np.maximum(np.maximum(squared_distances(X[previous]), last), usual), k)

    return steer


def _distances_from(X: FloatingArray) -> Callable[[FloatingArray], Float64Array]:
    """Return a function from a vector to its squared distances from the rows of X, (n_songs,)."""
    squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return lambda vector: np.maximum(squares - 2.0 * (X @ vector) + vector @ vector, 0.0)


def _n_near(n_songs: int) -> int:
    return min(max(_MIN_NEAR, round(_NEAR_LINE * n_songs)), n_songs - 1)


def _nearest_first(squares: Float64Array, k: int) -> Float64Array | None:
    """Return weights that fall with squared distance, to 1/e at the k-th nearest song; None if all are equally near."""
    squares = squares - squares.min()
    width = np.partition(squares, k)[k] or squares[squares > 0].min(initial=np.inf)
    return np.maximum(np.exp(-squares / width), _FLOOR) if 0 < width < np.inf else None


def weigh_rising(
    values: FloatingArray, allowed: BoolArray, length: int, first: int | None = None
) -> playlist.Weighing | None:
    """Return song weights per position that make a value rise along a playlist; None if fewer than two songs have one.

    Let r be the share of the allowed songs with a smaller value. A song has weight exp(-((r - t) / s)^2 / 2) at the
    position with target share t. The targets increase evenly over `length` positions, from 0 (or the share of the song
    `first`) to 1. Every position therefore has about the same number of songs to choose from. The deviation s is 0.02,
    or 2 divided by the number of known values if that is larger. `values` (n_songs,) are nan if unknown;
    negate them for a falling playlist.
    """
    known = np.sort(values[allowed & np.isfinite(values)].astype(np.float64))
    if len(known) < 2:
        return None
    # songs with equal values all get the middle of their shares
    below, upto = (np.searchsorted(known, values, side) for side in ("left", "right"))
    shares = np.where(np.isfinite(values), (below + upto) / (2 * len(known)), np.nan)
    start = 0.0 if first is None or not np.isfinite(shares[first]) else float(shares[first])
    width = max(_NARROW, _FEW / len(known))

    def weigh(place: int) -> Float64Array:
        wanted = start + (1 - start) * min(place / max(length - 1, 1), 1.0)
        weights = np.exp(-0.5 * np.square((shares - wanted) / width))
        return np.maximum(np.nan_to_num(weights), _FLOOR)

    return weigh


def median_of(surprise: float) -> float:
    """Return the median rank of the next song, as a share of the songs: 2% at surprise 0, 7% at 0.5, 25% at 1."""
    return float(_SMOOTH * (_SURPRISING / _SMOOTH) ** surprise)


def share_around(surprise: float) -> float:
    """Return the share of the songs that count as near a song to stay around: a fifth, and more above surprise 0.3."""
    return float(_AROUND ** (1.0 - np.clip((surprise - _USUAL) / (_ANYWHERE - _USUAL), 0.0, 1.0)))


def _order(values: Float64Array) -> IntpArray:
    """Return the order of a stable sort, but in a sixth of its time if no two values are equal."""
    order = np.argsort(values)
    ascending = values[order]
    return np.argsort(values, kind="stable") if np.any(ascending[1:] == ascending[:-1]) else order


class SoundRanks:
    """Ranks the songs X by distance from one of them; `nearest` is the share of songs that count as near."""

    def __init__(self, X: FloatingArray) -> None:
        self._X = X
        self.nearest = max(_NEAR_SONG, 1.0 / max(1, len(X) - 1))

    @cached_property
    def _squared_distances(self) -> Callable[[FloatingArray], Float64Array]:
        return _distances_from(self._X)

    @cached_property
    def shares(self) -> Callable[[int], Float64Array]:
        """Function of a song that returns each song's rank as a fraction: 0 for the song itself, 1 for the farthest.

        Each step needs the same ranks three times, and playlists of different lengths begin with the same songs.
        """
        X, squared_distances = self._X, self._squared_distances

        @lru_cache(_CACHED_RANKS)
        def shares(row: int) -> Float64Array:
            distance = squared_distances(X[row])
            distance[row] = -np.inf
            ranks = np.empty(len(distance))
            ranks[_order(distance)] = np.linspace(0.0, 1.0, len(distance))
            return ranks

        return shares

    def share_between(self, start: FloatingArray, end: FloatingArray) -> float:
        """Return the share of the songs that are nearer to the vector `start` than `end` is."""
        limit = np.square(end - start).sum() - _ROUNDING * (start @ start + end @ end)
        return np.count_nonzero(self._squared_distances(start) < limit) / max(1, len(self._X) - 1)

    def near(self, row: int) -> IntpArray:
        """Return the songs near a song, and the song itself, in ascending order."""
        return np.flatnonzero(self.shares(row) <= self.nearest)


def make_paced_steering(
    shares: Callable[[int], Float64Array], median: float
) -> Callable[[int, int, Float64Array], Float64Array]:
    """Return steering for `PlaylistModel.generate` that makes `median` the median rank of the next song.

    `shares` is :meth:`SoundRanks.shares`. The steering multiplies the probability of each song by exp(-x rank). Among
    all distributions with the same mean rank, this is the closest to the walk's own (by Kullback-Leibler divergence).
    Bisection finds the exponent x. Its range ensures that the walk can choose from at least a few songs.
    """

    def steer(place: int, previous: int, probabilities: Float64Array) -> Float64Array:
        del place
        ranks = shares(previous)
        possible = np.flatnonzero(probabilities)
        rank, p = ranks[possible], probabilities[possible]
        is_near = rank <= median
        low, high = _MIN_EXPONENT, _MAX_EXPONENT / median
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            weighed = p * np.exp(-middle * (rank - rank.min()))
            low, high = (middle, high) if weighed[is_near].sum() < weighed.sum() / 2 else (low, middle)
        return np.exp(-high * np.maximum(ranks - rank.min(), 0.0))

    return steer


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


def temperature_of(surprise: float) -> float:
    """Return the temperature of the walk: 1/4 at surprise 0, 1 at 0.5, and 4 at 1."""
    return float(_MAX_TEMPERATURE ** (2.0 * surprise - 1.0))


def works_of(snapshot: Snapshot, rows: Int64Array) -> list[tuple[str, str] | None]:
    """Return a key per row that all versions of a song share: plain artist and title; None without an artist."""
    artists, names = snapshot.columns.artist.texts(rows), snapshot.names_at(rows)
    return [
        (plain_artist(artist), plain_title(title)[0]) if artist else None
        for artist, (title, _) in zip(artists, names, strict=True)
    ]


def number_artists(snapshot: Snapshot) -> IntpArray:
    """Return a number per row that spellings of an artist share, (n_indexed,); -1 for rows without an artist."""
    artist = snapshot.columns.artist
    numbers: dict[str, int] = {}
    of_name = [numbers.setdefault(plain_artist(name), len(numbers)) if name else -1 for name in artist.names]
    return np.array([*of_name, -1], np.intp)[artist.codes]  # code -1 selects the last number


def make_version_finder(snapshot: Snapshot, artists: IntpArray, rows: Int64Array) -> playlist.Versions:
    """Return a function that finds the versions of a song, which have the same plain artist and title.

    `artists` are those of the `rows`, from :func:`number_artists`. Songs are positions in `rows`. The first call for an
    artist takes 10 µs per song of the artist.
    """

    @cache
    def titles_of(artist: int) -> tuple[IntpArray, list[str]]:
        songs = np.flatnonzero(artists == artist)
        return songs, [plain_title(title)[0] for title, _ in snapshot.names_at(rows[songs])]

    def versions_of(song: int) -> IntpArray:
        if artists[song] < 0:
            return np.array([song], np.intp)
        songs, titles = titles_of(int(artists[song]))
        own = titles[int(np.searchsorted(songs, song))]
        return songs[[title == own for title in titles]]

    return versions_of


def is_sampled(n_songs: int) -> bool:
    """Return whether playlists for a library of this size are generated from a sample."""
    return n_songs > MAX_PLAYLIST_SONGS


def sample_rows(allowed: BoolArray, required: Sequence[int], random_state: int | None) -> Int64Array:
    """Return a random sample of at most 20,000 allowed rows, plus the required ones, ascending."""
    rows = np.flatnonzero(allowed)
    if is_sampled(len(rows)):
        rows = np.random.default_rng(random_state).choice(rows, MAX_PLAYLIST_SONGS, replace=False)
    return np.union1d(rows, np.array(required, dtype=np.int64)).astype(np.int64)


@dataclass(frozen=True)
class Pool:
    """The songs that one playlist is generated from, numbered from 0."""

    snapshot: Snapshot
    request: PlaylistRequest
    rows: Int64Array  # (n,), ascending: rows in the snapshot
    allowed: BoolArray  # (n,)
    model: playlist.PlaylistModel  # the walk restricted to these songs
    X: Float32Array  # (n, n_dimensions)
    ranks: SoundRanks  # used only if `is_paced`
    versions: (
        playlist.Versions | None
    )  # from :func:`make_version_finder`; None if versions of a song may occur together
    weights: Float64Array | None  # (n,): song weights that apply at every position
    is_paced: bool  # whether ranks by sound distance determine the step size
    uses_sound: bool = True  # False to ignore the path between stops, and rising values
    has_trials: bool = False  # whether each step is compared with the same step without its edge
    candidates: BoolArray | None = None  # (n,): further restricts the allowed songs for positions that are not fixed

    def generate(self, length: int, n_left: int, random_state: int | None) -> tuple[playlist.Playlist, list[str]]:
        """Generate a playlist with the widest possible artist spacing; `n_left` songs match the request.

        Also returns notes about options that could not be met.
        """
        request, notes = self.request, list[str]()
        stops = [self.number(i) for i in request.stops]
        if len(stops) > length:
            notes.append(f"{len(stops)} songs instead of {length}: the playlist passes through {len(stops)} songs")
        length = max(length, len(stops))
        if len(stops) > 1:
            path = dict(zip(places_of(self.X, stops, length), stops, strict=True))
        else:
            path = {0 if request.first is not None else length - 1: stop for stop in stops}
        fixed = path | {place: self.number(i) for place, i in request.keep.items()}
        if not set(path.values()) <= set(fixed.values()):
            notes.append("pinned songs replace some of the songs to pass through")
        line = path if len(path) > 1 and self.uses_sound else {}
        weigh, steer = self._weighing(line, length, fixed.get(0), notes), self._steering(line)
        length = max(length, *(place + 1 for place in fixed), 1)
        is_excluded = ~self._near(length)
        is_excluded[list(fixed.values())] = False
        excluded = np.flatnonzero(is_excluded)
        groups = self.snapshot.columns.group.codes[self.rows]
        n_artists = int(np.count_nonzero(np.bincount(groups[self.allowed] + 1)))  # songs without a group count as one
        max_spacing = min(request.spacing, max(0, n_artists - 1))
        for spacing in range(max_spacing, -1, -1):
            generated = self.model.generate(
                length,
                fixed=fixed,
                exclude=excluded,
                groups=groups,
                spacing=spacing,
                works=self.versions,
                weigh=weigh,
                steer=steer,
                within=self.ranks.near if self.has_near_jumps else None,
                temperature=1.0 if self.is_paced else temperature_of(request.surprise),
                use_uniform=self.is_paced or self._has_jumps,
                trials=self.has_trials,
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

    @property
    def _has_jumps(self) -> bool:
        return self.request.surprise > _JUMPS_ABOVE

    @property
    def has_near_jumps(self) -> bool:
        """True if random jumps lead only to songs that are similar in sound."""
        return self.is_paced and not (self._has_jumps or self.request.along)

    def number(self, song_id: int) -> int:
        """Return the number of a song in the pool."""
        return int(np.searchsorted(self.rows, self.snapshot.row_of(song_id)))

    def _weighing(
        self, path: Mapping[int, int], length: int, first: int | None, notes: list[str]
    ) -> playlist.Weighing | None:
        """Return the product of all song weights per position; add a note if too few songs have the value to follow."""
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
        """Return steering for even steps on a path, and for paced steps elsewhere; None if neither is needed."""
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
        """Weights of songs at every position, including the weights for `like`; None if all are equal."""
        if self._squared_distances is None:
            return self.weights
        k = min(len(self.X) - 1, max(_MIN_NEAR, round(median_of(self.request.surprise) * len(self.X))))
        near = _nearest_first(self._squared_distances, k)
        return near if self.weights is None or near is None else self.weights * near

    @cached_property
    def _squared_distances(self) -> Float64Array | None:
        """Squared distance of each song from the nearest song of `like`; None without such songs."""
        if not self.request.like:
            return None
        squared_distances = _distances_from(self.X)
        nearest: Float64Array = np.minimum.reduce(
            [squared_distances(self.X[self.number(i)]) for i in self.request.like]
        )
        return nearest

    def _near(self, length: int) -> BoolArray:
        """Return the allowed songs that are near the songs of `like`."""
        allowed = self.allowed if self.candidates is None else self.allowed & self.candidates
        n_near = max(round(share_around(self.request.surprise) * np.count_nonzero(allowed)), _PER_PLACE * length)
        if self._squared_distances is None or n_near >= np.count_nonzero(allowed):
            return allowed
        return allowed & (self._squared_distances <= np.partition(self._squared_distances[allowed], n_near)[n_near])


@dataclass(frozen=True)
class Exchange:
    """A position in a playlist, and a mask (n,) of the pool's songs that can replace the song at that position."""

    place: int
    songs: BoolArray


def find_exchange(pool: Pool, songs: Sequence[int], durations: FloatingArray, gap_s: float) -> Exchange | None:
    """Return the one-song swap that brings a playlist closest to a duration, or None if it is close enough.

    `songs` are numbers in the pool, `durations` (n,) covers the whole pool, and `gap_s` is the missing time in seconds.
    The last position with several suitable songs is preferred, because each song depends on the songs before it.
    Positions that the request fixes keep their songs.
    """
    if abs(gap_s) <= _NEAR_S:
        return None
    numbers = list(songs)
    groups = pool.snapshot.columns.group.codes[pool.rows]
    free = pool.allowed.copy()
    free[numbers] = False
    if pool.versions is not None:
        free[np.concatenate([pool.versions(number) for number in numbers])] = False
    fixed = {pool.number(i) for i in (*pool.request.stops, *pool.request.keep.values())}
    best: Exchange | None = None
    best_gap = abs(gap_s)
    for spacing in (pool.request.spacing, 0):  # drop the spacing if nothing else comes close enough
        for place in reversed([place for place, number in enumerate(numbers) if number not in fixed]):
            around = [*numbers[max(0, place - spacing) : place], *numbers[place + 1 : place + 1 + spacing]]
            gaps = np.abs(gap_s + durations[numbers[place]] - durations)
            gaps[~free | (np.isin(groups, groups[around]) & (groups >= 0))] = np.inf
            if np.count_nonzero(gaps <= _NEAR_S) >= _SEVERAL:
                return Exchange(place, gaps <= _NEAR_S)
            nearest = gaps.min(initial=np.inf)
            if nearest < best_gap:
                best, best_gap = Exchange(place, gaps <= max(nearest, _NEAR_S)), nearest
        if best_gap <= _NEAR_S:
            break
    return best
