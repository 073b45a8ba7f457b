"""Playlists of a library: the fitted walk, playlists generated for a request, and the reasons for their steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from musicsim import playlist
from musicsim._arrays import Float64Array, FloatingArray, Int64Array
from musicsim.errors import NotFoundError
from musicsim.explorer.models.artifacts import load_walk
from musicsim.explorer.playlists.edges import EDGE_FAMILIES, ClusterNames, build_hypergraph, default_weights
from musicsim.explorer.playlists.pool import Pool, SongFacts
from musicsim.explorer.playlists.reason_weights import factors_of
from musicsim.explorer.playlists.song_labels import load_sources
from musicsim.explorer.playlists.steering import median_of, temperature_of
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.search.reasons import IN_COMMON, describe_sound, describe_step
from musicsim.explorer.snapshot.filtering import describe_unknown
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.sound_words import describe_change
from musicsim.library import Song

_NEW_EDGE = 1e-6  # weight of an edge that did not exist when the weights were fitted
_SIMILAR_SIZE = 2.0  # maximum ratio of the sizes of a true and a false reason


@dataclass(frozen=True, slots=True)
class Effect:
    """The probability of a song with the edge that led to it, and without; see :class:`musicsim.playlist.Trial`."""

    probability: float
    without: float
    instead: Song | None  # the song whose probability rises most without the edge


@dataclass(frozen=True, slots=True)
class Edge:
    """A step from one song to the next, and its probability.

    `reason` is a fact that a listener can check, or "" if none is known. `label` describes the edge of the hypergraph,
    `name` is its name there.
    """

    reason: str
    probability: float
    label: str = ""
    name: str = ""
    effect: Effect | None = None  # None if it was not requested, or if no edge led to an allowed song

    def as_json(self) -> dict[str, Any]:
        """Return the edge and its effect for the command line and HTTP."""
        facts: dict[str, Any] = {"reason": self.reason or None, "edge": self.name or None}
        if self.effect is None:
            return facts | {"probability": None, "without": None, "instead": None}
        instead = self.effect.instead
        return facts | {
            "probability": self.effect.probability,
            "without": self.effect.without,
            "instead": instead.id if instead else None,
        }


@dataclass(frozen=True, slots=True)
class GeneratedPlaylist:
    """A playlist and the edge that led to each song; `notes` list the options that could not be met."""

    songs: tuple[Song, ...]
    edges: tuple[Edge | None, ...]
    notes: tuple[str, ...] = ()

    @property
    def reasons(self) -> list[str | None]:
        """The reason why each song follows, None if nothing is known."""
        return [edge.reason or None if edge else None for edge in self.edges]

    @property
    def steps(self) -> dict[tuple[int, int], Edge]:
        """The known edges, keyed by (song id, next song id)."""
        pairs = pairwise(song.id for song in self.songs)
        return {pair: edge for pair, edge in zip(pairs, self.edges[1:], strict=True) if edge is not None}

    @property
    def duration_s(self) -> float:
        """Length of the playlist in seconds."""
        return sum(song.duration_s for song in self.songs)

    def steps_as_json(self) -> list[dict[str, Any]]:
        """Return :meth:`Edge.as_json` of each song; a fixed first song has no edge."""
        return [(edge or Edge("", 0.0)).as_json() for edge in self.edges]


@dataclass(frozen=True, slots=True)
class Dialect:
    """A kind of playlist with its own weights."""

    name: str  # "" for the walk for all playlists
    n_playlists: int  # number of playlists that the weights were fitted on
    # relative gains over shuffling on held-out playlists: with its own weights, and with the weights for all playlists;
    # None if too few playlists were held out
    gain: float | None
    gain_global: float | None


class Walk:
    """Generate playlists from a snapshot, and explain their steps.

    `n_playlists` is the number of playlists that the weights were fitted on, 0 for the default weights. `n_judged` is
    the number of held-out playlists. `dialects` starts with the walk for all playlists, if it was fitted; the dialects
    follow in descending order of size.
    """

    _uses_sound = True

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self._song_facts = snapshot, SongFacts(snapshot)
        self.n_playlists = self.n_judged = 0
        self.dialects: tuple[Dialect, ...] = ()
        self._weights: dict[str, Float64Array] = {}
        self._graph: playlist.Hypergraph | None = None
        # If there are too few playlists to evaluate the fit, sound distances determine the step size.
        self._is_paced = False
        if snapshot.n_indexed and snapshot.record is not None:
            self._load(snapshot.library.models.path(snapshot.record.id))

    def _load(self, model_folder: Path) -> None:
        self._graph = build_hypergraph(self.snapshot, load_sources(self.snapshot), own=True)
        names = self._graph.names
        fitted, factors = load_walk(model_folder), factors_of(self.snapshot.library, names)
        self._is_paced = fitted is None or not fitted.facts["n_judged"]
        if fitted is None:
            self._weights[""] = default_weights(names) * factors
            return
        facts = fitted.facts
        self.n_playlists, self.n_judged = facts["n_playlists"], facts["n_judged"]
        everything = Dialect("", self.n_playlists, facts["gain"], facts["gain"])
        self.dialects = (everything, *(Dialect(**dialect) for dialect in facts["dialects"]))
        place = {name: column for column, name in enumerate(fitted.names)}
        columns = np.array([place.get(name, -1) for name in names])
        own = np.array([family == ("playlist",) for family in playlist.edge_families(names)])
        own_share = EDGE_FAMILIES["playlist"][1]
        for dialect, fitted_weights in zip(self.dialects, fitted.weights, strict=True):
            weights = np.where(columns >= 0, fitted_weights[columns], _NEW_EDGE)
            if own.any():  # the weights of the listener's own playlists are not fitted
                weights[own] = own_share / (1.0 - own_share) * weights[~own].sum() / np.count_nonzero(own)
            weights *= factors
            self._weights[dialect.name] = weights / weights.sum()

    def _model(self, dialect: str | None = None, without: Collection[str] = ()) -> playlist.PlaylistModel:
        """Return the walk of a dialect, except the edges named in `without`."""
        if self._graph is None:
            raise NotFoundError("the library has no songs for a playlist: add a folder first.")
        if dialect and dialect not in self._weights:
            known = ", ".join(f"“{d.name}”" for d in self.dialects if d.name) or "none"
            raise NotFoundError(f"this library does not have the dialect “{dialect}”. Its dialects: {known}.")
        weights = self._weights[dialect or ""]
        if without:
            kept = np.array([name not in without for name in self._graph.names])
            if not weights[kept].any():
                raise ValueError("not_because leaves out every reason: leave out fewer.")
            weights = weights * kept
        return playlist.PlaylistModel(self._graph, weights=weights)

    @cached_property
    def _cluster_names(self) -> ClusterNames:
        return ClusterNames(self.snapshot, self._song_facts.plays)

    def families(self, dialect: str | None = None) -> list[tuple[str, float]]:
        """Return edge families by descending share. A conjunction counts for each family, so the sum may exceed 1."""
        shares = self._model(dialect).family_shares()
        return sorted(((EDGE_FAMILIES[f][0], share) for f, share in shares.items()), key=lambda pair: -pair[1])

    def strongest(self, dialect: str | None = None, n: int = 12) -> list[Edge]:
        """Return the n heaviest edges with their shares of the weight, except the random jump."""
        model = self._model(dialect)
        order = [e for e in np.argsort(-model.weights_, kind="stable") if e != model.hypergraph.uniform_edge]
        labels = [self._describe(model.hypergraph.names[e]) for e in order[:n]]
        return [Edge(label, float(model.weights_[e]), label) for label, e in zip(labels, order, strict=False)]

    def step_width(self, surprise: float, dialect: str | None = None) -> float:
        """Return the average number of songs that a step chooses from at this level of surprise."""
        if self._is_paced:  # half of these songs are nearer than the median step
            return 2.0 * median_of(surprise) * (self.snapshot.n_indexed - 1)
        return self._model(dialect).step_width(temperature_of(surprise))

    def generate(
        self, request: PlaylistRequest, random_state: int | None = None, *, effects: bool = False
    ) -> GeneratedPlaylist:
        """Generate a playlist; raises NotFoundError without songs or dialect, and ValueError if positions conflict.

        `effects` adds the effect of each edge, and takes two to three times as long.
        """
        model = self._model(request.dialect, request.not_because)
        pool = Pool(
            self._song_facts, request, model, random_state,
            is_paced=self._is_paced, uses_sound=self._uses_sound, has_trials=effects,
        )  # fmt: skip
        generated, notes = pool.generate()
        notes += describe_unknown(self.snapshot, request)
        steps = [*([generated.opening] if generated.songs else []), *generated.transitions]
        songs = self.snapshot.songs_at(pool.rows[list(generated.songs)])
        described = self._edges(steps, pool.X, songs, has_near_jumps=pool.has_near_jumps)
        edges = tuple(
            replace(edge, effect=effect) if edge else None
            for edge, effect in zip(described, self._effects(steps, pool.rows), strict=True)
        )
        return GeneratedPlaylist(tuple(songs), edges, tuple(notes))

    def _effects(self, steps: Sequence[playlist.Transition | None], rows: Int64Array) -> list[Effect | None]:
        """Return the effect of the edge of each step; `rows` are the rows of the numbers in the steps."""
        trials = [step.trial if step else None for step in steps]
        numbers = [trial.instead for trial in trials if trial and trial.instead is not None]
        others = dict(zip(numbers, self.snapshot.songs_at(rows[np.array(numbers, dtype=np.intp)]), strict=True))
        return [
            Effect(trial.probability, trial.without, None if trial.instead is None else others[trial.instead])
            if trial
            else None
            for trial in trials
        ]

    def explain(
        self, song_ids: Sequence[int], known: Mapping[tuple[int, int], Edge] | None = None, dialect: str | None = None
    ) -> GeneratedPlaylist:
        """Return songs with a reason per step: the one in `known`, keyed by id pairs, otherwise the likeliest."""
        model, known = self._model(dialect), known or {}
        rows = [self.snapshot.row_of(i) for i in song_ids]
        songs = self.snapshot.songs_at(rows)
        pairs = list(pairwise(song_ids))
        steps = [
            None if pair in known else model.explain(*two) for pair, two in zip(pairs, pairwise(rows), strict=True)
        ]
        opening: list[playlist.Transition | None] = [None] * min(1, len(rows))
        edges = self._edges([*opening, *steps], self.snapshot.X, songs)
        edges[1:] = [known.get(pair, edge) for pair, edge in zip(pairs, edges[1:], strict=True)]
        return GeneratedPlaylist(tuple(songs), tuple(edges))

    def describe(self, name: str) -> str:
        """Describe an edge, such as “both tagged calm”."""
        return "similar sound" if _is_sound(name) else self._describe(name)

    def _describe(self, name: str, *, both: bool = True) -> str:
        return playlist.describe_edge(name, both=both, called=self._name_group)

    def _name_group(self, family: str, value: str) -> str:
        """Return the name of a cluster, or of the song with a neighborhood; "" for other groups."""
        if not family.startswith("near-"):
            return self._cluster_names.name(family, value)
        ((title, by),) = self.snapshot.names_at([int(value.partition(" ")[0])])
        return f"“{title}” by {by}" if by else f"“{title}”"

    def _edges(
        self,
        steps: Sequence[playlist.Transition | None],
        X: FloatingArray,
        songs: Sequence[Song],
        *,
        has_near_jumps: bool = False,
    ) -> list[Edge | None]:
        """Describe the steps to songs of X; None for songs without a step.

        A paced random jump to a near song counts as similar in sound. With `has_near_jumps`, all of them are near.
        """
        self.snapshot.tags_of(song.id for song in songs)  # one query instead of one per step
        n_shared = self.snapshot.count_shared_playlists(list(pairwise(song.id for song in songs)))
        edges: list[Edge | None] = []
        for step, previous, song in zip(steps, [None, *songs], songs, strict=False):
            if step is None:
                edges.append(None)
            elif not step.name:
                edges.append(Edge(step.reason, step.probability, step.reason))
            elif previous is None:
                edges.append(Edge("", step.probability, self._describe(step.name, both=False), step.name))
            else:
                is_sound = _is_sound(step.name)
                if self._is_paced and step.name == playlist.UNIFORM and step.previous is not None:
                    is_near = has_near_jumps and step.probability > 0  # if it is 0, no edge led to an allowed song
                    is_sound = is_near or self._is_near(X[step.previous], X[step.song])
                n = n_shared.get((previous.id, song.id), 0)
                edges.append(self._edge(step, previous, song, n, is_sound=is_sound))
        return edges

    def _is_near(self, start: FloatingArray, end: FloatingArray) -> bool:
        ranks = self._song_facts.ranks
        return ranks.share_between(start, end) <= ranks.nearest

    def _edge(self, step: playlist.Transition, previous: Song, song: Song, n_shared: int, *, is_sound: bool) -> Edge:
        label = _label_sound(describe_sound(self.snapshot, previous, song)) if is_sound else self._describe(step.name)
        reason = self._reason(step.name, previous, song, n_shared) if self._uses_sound else label
        return Edge(reason, step.probability, label, step.name)

    def _reason(self, name: str, previous: Song, song: Song, n_shared: int) -> str:
        """Return facts about two songs, first those of the edge that can be heard; if none is known, what changes."""
        parts: dict[str, list[str]] = defaultdict(list)
        for family, value in playlist.name_parts(name):
            (kind,) = playlist.edge_families([f"{family}:{value}"])[0]
            parts[kind].append(value if kind == "tag" else self._describe_part(family, value))
        tags, first = parts["tag"], ["same album"] * len(parts["album"]) + parts["lyrics"]
        reason = describe_step(
            self.snapshot, previous, song, tags=tags, first=first, also=parts["playlist"], n_shared=n_shared
        )
        if not reason and tags:  # they fit one of the songs poorly
            return f"{IN_COMMON}{', '.join(tags)}"
        return reason or next(iter(parts["company"] + parts["listeners"]), "") or describe_change(previous, song)

    def _describe_part(self, family: str, value: str) -> str:
        """Describe an edge that is not a conjunction, without group numbers."""
        called = self._name_group if family.startswith("near-") else lambda *_: None
        return playlist.describe_edge(f"{family}:{value}", called=called)

    def reasons(self, song_id: int, next_id: int, dialect: str | None = None) -> list[Edge]:
        """Return all edges from one song to another, likeliest first; edges for similar sound count as one reason."""
        rows = self.snapshot.row_of(song_id), self.snapshot.row_of(next_id)
        song, other = self.snapshot.songs_at(rows)
        sound = _label_sound(describe_sound(self.snapshot, song, other))
        probabilities: dict[str, float] = {}
        for _, name, probability in self._model(dialect).transition_edges(*rows):
            label = sound if _is_sound(name) else self._describe(name)
            probabilities[label] = probabilities.get(label, 0.0) + probability
        edges = (Edge(label, probability, label) for label, probability in probabilities.items())
        return sorted(edges, key=lambda edge: -edge.probability)

    def true_and_false_reasons(
        self, song_id: int, next_id: int, name: str, dialect: str | None = None
    ) -> tuple[Edge, list[Edge]]:
        """Return the reason that an edge states, and reasons of similar size that are true of the first song only.

        `name` is the name of the edge, which contains both songs. The edges of the false reasons have at least half and
        at most twice as many songs. A reason is left out if the two songs share edges with the same descriptions.
        Probabilities are those of the walk at the first song.
        """
        here, there = self.snapshot.row_of(song_id), self.snapshot.row_of(next_id)
        model = self._model(dialect)
        names, sizes = model.hypergraph.names, model.hypergraph.sizes
        edges, probabilities = model.edge_probabilities(here)
        is_shared = np.isin(edges, model.hypergraph.edges_of(there))
        shared = set[str]().union(*(self._facts(names[e]) for e in edges[is_shared]))
        stated = next(k for k in np.flatnonzero(is_shared).tolist() if names[edges[k]] == name)
        ratios = sizes[edges] / sizes[edges[stated]]
        is_similar = (ratios >= 1 / _SIMILAR_SIZE) & (ratios <= _SIMILAR_SIZE)
        others = np.flatnonzero(~is_shared & is_similar & (probabilities > 0)).tolist()

        def edge(k: int) -> Edge:
            label = self._describe(names[edges[k]])
            return Edge(label, float(probabilities[k]), label, names[edges[k]])

        return edge(stated), [edge(k) for k in others if not self._facts(names[edges[k]]) <= shared]

    def _facts(self, name: str) -> set[str]:
        """Return a description of each part of an edge."""
        return {self._describe(f"{family}:{value}") for family, value in playlist.name_parts(name)}


def _label_sound(shared: str) -> str:
    return f"similar sound: {shared.replace(' · ', ', ')}" if shared else "similar sound"


def _is_sound(name: str) -> bool:
    """Return whether similar sound is the only feature that an edge's songs share."""
    return bool(name) and playlist.edge_families([name]) == [("audio",)]


class ShuffleWalk(Walk):
    """A shuffle for comparison: every step is a random jump.

    Filters, fixed songs and weights by plays still apply. Everything that depends on the sound of songs is ignored:
    `like`, dialect, surprise, the path between stops, and rising values.
    """

    _uses_sound = False

    def _load(self, model_folder: Path) -> None:
        n_songs = self.snapshot.n_indexed
        self._graph = playlist.build_edges(n_songs) if n_songs > 1 else None
        self._weights[""] = np.ones(1)

    def generate(
        self, request: PlaylistRequest, random_state: int | None = None, *, effects: bool = False
    ) -> GeneratedPlaylist:
        """Generate a playlist of random songs that match the request."""
        request = replace(request, surprise=1.0, like=(), dialect=None)
        return super().generate(request, random_state, effects=effects)
