"""Playlists of a library: the fitted walk, lists drawn from it as asked, and the reasons of their steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from musicsim import playlist
from musicsim._arrays import BoolArray, Float32Array, Float64Array, FloatingArray
from musicsim.errors import NotFoundError
from musicsim.explorer.models.artifacts import load_walk
from musicsim.explorer.playlists.cluster_names import ClusterNames
from musicsim.explorer.playlists.edges import FAMILIES, build_hypergraph, default_weights
from musicsim.explorer.playlists.pace import SoundRanks, at_pace, median_of
from musicsim.explorer.playlists.paths import along, evenly, places_of, rising
from musicsim.explorer.playlists.song_labels import load_sources, play_counts
from musicsim.explorer.playlists.steering import (
    Pool,
    allowed_rows,
    is_sampled,
    sample_of,
    song_weights,
    temperature_of,
    works_of,
)
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song

_NEW_EDGE = 1e-6  # share of an edge that was not there, or had no weight, when the weights were fitted
_AROUND = 0.5  # surprise of the steps that say what is around a song
_SEEDED = 0.02  # share of the weight that any song keeps beside what the seeds lead to
_MAX_TRIES = 5
_STRONGEST = 12
_JUMPS_ABOVE = 0.5  # surprise
_NOBODY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Edge:
    """Why one song may follow another: words, and how probable the walk holds it."""

    reason: str
    probability: float


@dataclass(frozen=True, slots=True)
class DrawnPlaylist:
    """A drawn list and, for each song, the edge it was reached by (the first: the edge it was drawn from).

    `notes` say what could not be met.
    """

    songs: tuple[Song, ...]
    edges: tuple[Edge | None, ...]
    notes: tuple[str, ...] = ()

    @property
    def duration_s(self) -> float:
        """Length of the whole list in seconds."""
        return sum(song.duration_s for song in self.songs)


@dataclass(frozen=True, slots=True)
class Dialect:
    """A kind of playlist with a walk of its own."""

    name: str  # "" for the walk of all playlists
    n_playlists: int  # playlists it was fitted on
    # relative gain over shuffling on playlists that were kept back, of its own walk and of the one of all;
    # None where too few were
    gain: float | None
    gain_global: float | None


class Walk:
    """Draws playlists from a library as it stands.

    Attributes
    ----------
    n_playlists : int
        Playlists the weights were fitted on; 0 when they are the defaults by family.
    n_judged : int
        Playlists that were kept back to measure the gains.
    dialects : tuple of Dialect
        The walk of all playlists first (where there is one), then its dialects by falling size.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.n_playlists = self.n_judged = 0
        self.dialects: tuple[Dialect, ...] = ()
        self._weights: dict[str, Float64Array] = {}
        self._graph: playlist.Hypergraph | None = None
        # sound says how far steps go where too few playlists do: what they gain could not be judged
        self._is_paced = False
        if snapshot.n_indexed and snapshot.record is not None:
            self._load()

    def _load(self) -> None:
        """Build the edges and find the weights."""
        snapshot = self.snapshot
        assert snapshot.record is not None
        self._graph = build_hypergraph(snapshot, load_sources(snapshot), own=True)
        fitted = load_walk(snapshot.library.models.path(snapshot.record.id))
        self._is_paced = fitted is None or not fitted.facts["n_judged"]
        if fitted is None:
            self._weights[""] = default_weights(self._graph.names)
            return
        self.n_playlists, self.n_judged = fitted.facts["n_playlists"], fitted.facts["n_judged"]
        kinds = fitted.facts["dialects"]
        self.dialects = (
            Dialect("", self.n_playlists, fitted.facts["gain"], fitted.facts["gain"]),
            *(Dialect(**kind) for kind in kinds),
        )
        place = {name: column for column, name in enumerate(fitted.names)}
        columns = np.array([place.get(name, -1) for name in self._graph.names])
        own = np.array([family == ("playlist",) for family in playlist.edge_families(self._graph.names)])
        for dialect, weights in zip(self.dialects, fitted.weights, strict=True):
            known = np.where(columns >= 0, weights[columns], _NEW_EDGE)
            self._weights[dialect.name] = self._with_own(known, own)

    @staticmethod
    def _with_own(weights: Float64Array, own: BoolArray) -> Float64Array:
        """The listener's own playlists, which are not fitted, get their share of the weight."""
        if own.any():
            share = FAMILIES["playlist"][1]
            weights[own] = share / (1.0 - share) * weights[~own].sum() / np.count_nonzero(own)
        return weights / weights.sum()

    def _needed(self) -> playlist.Hypergraph:
        if self._graph is None:
            raise NotFoundError("there are no songs to make a playlist of: add a folder first.")
        return self._graph

    @cached_property
    def _ranks(self) -> SoundRanks:
        """Of all songs, or of a sample of many."""
        n = self.snapshot.n_indexed
        if not is_sampled(n):
            return self._ranks_of(self.snapshot.X)
        return self._ranks_of(self.snapshot.vectors_at(sample_of(np.ones(n, np.bool_), _NOBODY, 0)))

    def _ranks_of(self, X: Float32Array) -> SoundRanks:
        """Ranks by distance in sound; raises ModelError if the vectors are damaged."""
        if len(X):
            self.snapshot.index_of(X)
        return SoundRanks(X)

    def _pool(self, request: PlaylistRequest, allowed: BoolArray, seed: int | None) -> Pool:
        """The songs that a list is drawn from."""
        snapshot, model = self.snapshot, self._model(request.dialect)
        groups = snapshot.columns.group.codes
        if not self._is_paced or not is_sampled(snapshot.n_indexed):
            works = self._works if request.versions_apart else None
            return Pool(np.arange(snapshot.n_indexed), model, snapshot.X, self._ranks, groups, works)
        named = [*self._named(request), *(self._row(i) for i in request.like)]
        rows = sample_of(allowed, np.array(named, dtype=np.int64), seed)
        X = snapshot.vectors_at(rows)
        works = works_of(snapshot, rows) if request.versions_apart else None
        return Pool(rows, model.among(rows), X, self._ranks_of(X), groups[rows], works)

    def _model(self, dialect: str | None = None) -> playlist.PlaylistModel:
        graph = self._needed()
        if dialect and dialect not in self._weights:
            known = ", ".join(f"“{d.name}”" for d in self.dialects if d.name) or "none"
            raise NotFoundError(f"there is no dialect “{dialect}” in this library; there are: {known}.")
        return playlist.PlaylistModel(graph, weights=self._weights[dialect or ""])

    @cached_property
    def _works(self) -> list[tuple[str, str] | None]:
        return works_of(self.snapshot)

    @cached_property
    def _plays(self) -> Float64Array:
        return play_counts(self.snapshot)

    def families(self, dialect: str | None = None) -> list[tuple[str, float]]:
        """Share of the weight by family of edges, in words, the largest first.

        As in figure 7.5 of the thesis a conjunction counts for each of its families: the sum may be above 1.
        """
        shares = self._model(dialect).family_shares()
        return sorted(((FAMILIES[f][0], share) for f, share in shares.items()), key=lambda pair: -pair[1])

    def strongest(self, dialect: str | None = None, n: int = _STRONGEST) -> list[Edge]:
        """The edges that weigh most, anywhere left out, each with its share of the weight."""
        model = self._model(dialect)
        order = [e for e in np.argsort(-model.weights_, kind="stable") if e != model.hypergraph.uniform_edge]
        return [Edge(self._described(model.hypergraph.names[e]), float(model.weights_[e])) for e in order[:n]]

    def step_width(self, surprise: float, dialect: str | None = None) -> float:
        """Among how many songs a step chooses, on average, at a place of the slider from smooth to surprising.

        Half of them are nearer than the usual step, where steps go by sound.
        """
        if self._is_paced:
            return 2.0 * median_of(surprise) * (self.snapshot.n_indexed - 1)
        return self._model(dialect).step_width(temperature_of(surprise))

    def draw(self, request: PlaylistRequest, random_state: int | None = None) -> DrawnPlaylist:
        """Draw a playlist as it is asked for.

        Raises NotFoundError if the library has no songs, none of an id, or no dialect of the name; ValueError
        if songs are to stand at places that the list does not have.
        """
        self._model(request.dialect)  # says what is wrong with it
        allowed = allowed_rows(self.snapshot, request)
        with_fixed = allowed.copy()
        with_fixed[self._named(request)] = True
        n_left = int(with_fixed.sum())
        pool = self._pool(request, allowed, random_state)
        allowed = allowed[pool.rows]
        if request.minutes is None:
            return self._of_length(pool, request, request.length, allowed, random_state, n_left)
        return self._of_minutes(pool, request, allowed, random_state, n_left)

    def _named(self, request: PlaylistRequest) -> list[int]:
        """Rows of all songs that a request names to come."""
        ids = [*([request.first] if request.first is not None else []), *request.through, *request.keep.values()]
        return [self._row(i) for i in ids]

    def _of_minutes(
        self, pool: Pool, request: PlaylistRequest, allowed: BoolArray, seed: int | None, n_left: int
    ) -> DrawnPlaylist:
        """Try lengths until the list is as long as whole songs allow."""
        assert request.minutes is not None
        lengths = self.snapshot.columns.duration_s[pool.rows[allowed]]
        usual = float(lengths.mean()) if len(lengths) else 240.0
        wanted, tried = 60.0 * request.minutes, dict[int, DrawnPlaylist]()
        length = max(
            1, round(wanted / max(usual, 1.0)), *(place + 1 for place in request.keep), len(self._named(request))
        )
        while length not in tried and len(tried) < _MAX_TRIES:
            tried[length] = self._of_length(pool, request, length, allowed, seed, n_left)
            got = tried[length]
            length = max(1, length + round((wanted - got.duration_s) / max(usual, 1.0)))
            length = max(length, *(place + 1 for place in request.keep), len(self._named(request)))
            if len(got.songs) < max(tried):  # no more songs than these
                break
        best = min(tried.values(), key=lambda drawn: abs(drawn.duration_s - wanted))
        if abs(best.duration_s - wanted) > max(usual, 0.1 * wanted):
            said = f"{best.duration_s / 60:.0f} minutes rather than {request.minutes:.0f}: no closer match"
            return replace(best, notes=(*best.notes, said))
        return best

    def _of_length(
        self, pool: Pool, request: PlaylistRequest, length: int, allowed: BoolArray, seed: int | None, n_left: int
    ) -> DrawnPlaylist:
        fixed, weigh, steer, notes = self._steering(pool, request, length, allowed)
        length = max(length, *(place + 1 for place in fixed), 1)
        excluded = np.setdiff1d(np.flatnonzero(~allowed), list(fixed.values())).tolist()
        n_artists = len(np.unique(pool.groups[allowed]))
        asked = min(request.spacing, max(0, n_artists - 1))
        jumps = request.surprise > _JUMPS_ABOVE
        for spacing in range(asked, -1, -1):
            drawn = pool.model.generate(
                length,
                fixed=fixed,
                exclude=excluded,
                groups=pool.groups.tolist(),
                spacing=spacing,
                works=pool.works,
                weigh=weigh,
                steer=steer,
                within=pool.ranks.near if self._is_paced and not (jumps or request.along) else None,
                temperature=1.0 if self._is_paced else temperature_of(request.surprise),
                use_uniform=self._is_paced or jumps,
                random_state=seed,
            )
            if len(drawn.songs) == length or len(drawn.songs) >= n_left:
                break
        if spacing < asked:
            notes.append(f"only {spacing} songs between some songs by the same artist, not {asked}")
        elif asked < request.spacing:
            notes.append(f"artists repeat after {asked} songs: there are only {n_artists} to choose from")
        notes += [drawn.note] if drawn.note and (spacing == asked or len(drawn.songs) < length) else []
        if n_left < length:
            notes.append(f"only {n_left} song{'s match' if n_left != 1 else ' matches'} your request")
        steps = [*([drawn.opening] if drawn.songs else []), *drawn.transitions]
        edges = tuple(self._edge(step, pool.X) if step else None for step in steps)
        rows = pool.rows[list(drawn.songs)]
        return DrawnPlaylist(tuple(self.snapshot.songs_at(rows)), edges, tuple(notes))

    def _steering(
        self, pool: Pool, request: PlaylistRequest, length: int, allowed: BoolArray
    ) -> tuple[dict[int, int], playlist.Weighing | None, playlist.Steering | None, list[str]]:
        """Songs by place, weights of songs by place, and what the song before adds to them."""
        notes: list[str] = []

        def song(song_id: int) -> int:
            return pool.place_of(self._row(song_id))

        fixed = {place: song(i) for place, i in request.keep.items()}
        path: dict[int, int] = {}
        stops = [*([request.first] if request.first is not None else []), *request.through]
        if request.through and len(stops) > 1:
            songs = [song(i) for i in stops]
            if length < len(songs):
                notes.append(f"{len(songs)} songs rather than {length}: so many were named to pass through")
            length = max(length, len(songs))
            path = dict(zip(places_of(pool.X, songs, length), songs, strict=True))
        elif request.through:
            path = {length - 1: song(request.through[0])}
        elif request.first is not None:
            path = {0: song(request.first)}
        fixed = path | fixed
        path = path if len(path) > 1 else {}
        lines = [along(pool.X, path)] if path else []
        if request.along is not None:
            values = getattr(self.snapshot.columns, request.along)[pool.rows]
            values = values if request.direction == "rising" else -values
            rise = rising(values, allowed, length, fixed.get(0))
            lines += [rise] if rise else []
            notes += [] if rise else [f"{request.along} is not known of enough songs to be {request.direction}"]
        return fixed, self._weighing(pool, request, lines), self._stepping(pool, request, path), notes

    def _stepping(self, pool: Pool, request: PlaylistRequest, path: Mapping[int, int]) -> playlist.Steering | None:
        """How far steps go: evenly on a path, freely on a rise, elsewhere as smooth or surprising as asked for."""
        even = evenly(pool.X, path) if path else None
        if not self._is_paced or request.along is not None:
            return even
        paced = at_pace(pool.ranks.shares, median_of(request.surprise))

        def steer(place: int, previous: int, probabilities: Float64Array) -> Float64Array | None:
            wanted = even(place, previous, probabilities) if even else None
            return paced(place, previous, probabilities) if wanted is None else wanted

        return steer

    def _weighing(
        self, pool: Pool, request: PlaylistRequest, lines: Sequence[playlist.Weighing]
    ) -> playlist.Weighing | None:
        """All that makes one song more wanted than another, as one product a place."""
        same = song_weights(self.snapshot, request, self._plays)
        same = None if same is None else same[pool.rows]
        if request.like:
            towards = self._around(pool, [pool.place_of(self._row(i)) for i in request.like])
            same = towards if same is None else same * towards
        if not lines:
            return None if same is None else lambda place: same

        def weigh(place: int) -> Float64Array | None:
            found = [weights for weights in (same, *(line(place) for line in lines)) if weights is not None]
            return np.prod(found, axis=0) if found else None

        return weigh

    def _around(self, pool: Pool, songs: Sequence[int]) -> Float64Array:
        """How readily the walk goes from some songs to each song, on average; any song keeps a little."""
        steps = [pool.model.transition_probabilities(song) for song in songs]
        if self._is_paced:
            pace = at_pace(pool.ranks.shares, median_of(_AROUND))
            steps = [p * pace(0, song, p) for song, p in zip(songs, steps, strict=True)]
        reached = np.mean(steps, axis=0)
        reached[list(songs)] = reached.max(initial=0.0)
        top = reached.max(initial=0.0)
        return np.maximum(reached / top, _SEEDED) if top > 0 else np.ones_like(reached)

    def explain(
        self, song_ids: Sequence[int], taken: Mapping[tuple[int, int], Edge] | None = None, dialect: str | None = None
    ) -> DrawnPlaylist:
        """A list as it stands: each transition with the edge that was taken, or the likeliest one.

        `taken` are edges that the walk took, by song id and next song id, for pairs that still follow each other;
        `dialect` is whose walk says what is likely.
        """
        model = self._model(dialect)
        rows = [self._row(i) for i in song_ids]
        edges: list[Edge | None] = [None] * min(1, len(rows))
        for (here, there), pair in zip(pairwise(rows), pairwise(song_ids), strict=True):
            known = (taken or {}).get(pair)
            likeliest = model.explain(here, there)
            edges.append(known or self._edge(likeliest, self.snapshot.X))
        return DrawnPlaylist(tuple(self.snapshot.songs_at(rows)), tuple(edges))

    @cached_property
    def _cluster_names(self) -> ClusterNames:
        return ClusterNames(self.snapshot, self._plays)

    def _described(self, name: str, *, both: bool = True) -> str:
        return playlist.describe_edge(name, both=both, called=self._cluster_names.name)

    def _edge(self, step: playlist.Transition, X: FloatingArray) -> Edge:
        """A step between songs of X in words: one through the edge of all songs was taken for its sound, if near."""
        reason = self._described(step.name, both=step.previous is not None) if step.name else step.reason
        if self._is_paced and step.name == playlist.UNIFORM and step.previous is not None:
            share = self._ranks.share_between(X[step.previous], X[step.song])
            if share <= self._ranks.nearest:
                reason = f"both with similar sound (among the nearest {max(1, math.ceil(100 * share))} %)"
        return Edge(reason, step.probability)

    def reasons(self, song_id: int, next_id: int, dialect: str | None = None) -> list[Edge]:
        """All that can have led from one song to another, likeliest first; probabilities sum to 1."""
        common = self._model(dialect).transition_edges(self._row(song_id), self._row(next_id))
        return [Edge(self._described(name), probability) for _, name, probability in common]

    def _row(self, song_id: int) -> int:
        row = int(self.snapshot.rows_of([song_id])[0])
        if row < 0:
            raise NotFoundError(f"song {song_id} is not in this library, or has not been compared yet.")
        return row


class ShuffleWalk(Walk):
    """The control: the walk whose only edge is the one of all songs.

    It keeps to what a request allows and fixes, but not to its `like`, dialect and surprise, nor to the line through
    its waypoints or along which it rises, which would let it know how songs sound.
    """

    def _load(self) -> None:
        n_songs = self.snapshot.n_indexed
        self._graph = playlist.build_edges(n_songs) if n_songs > 1 else None
        self._weights[""] = np.ones(1)

    def draw(self, request: PlaylistRequest, random_state: int | None = None) -> DrawnPlaylist:
        """Draw a playlist of any songs that are as asked."""
        return super().draw(replace(request, surprise=1.0, like=(), dialect=None), random_state)

    def _weighing(
        self, pool: Pool, request: PlaylistRequest, lines: Sequence[playlist.Weighing]
    ) -> playlist.Weighing | None:
        return super()._weighing(pool, request, ())

    def _stepping(self, pool: Pool, request: PlaylistRequest, path: Mapping[int, int]) -> playlist.Steering | None:
        return None
