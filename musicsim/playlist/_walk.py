"""The restricted random walk: the model's walk over the songs that may still be played.

At each song an edge is drawn among those that still have an allowed member, with probabilities in
the model's proportions, then a song among these members. Drawing an edge and striking it out when it
has none left gives the same distribution, and looks only at the edges that are drawn.

Where songs weigh differently (g), or a song is fixed further on (the message beta of `_bridge`), an edge counts in
proportion to the mean of g * beta over its allowed members, and a member to its own.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from musicsim._arrays import BoolArray, Float64Array, IntpArray
from musicsim.playlist._bridge import Bridge, Weighing
from musicsim.playlist.edges import describe_edge
from musicsim.playlist.hypergraph import UNIFORM, Hypergraph, is_missing


def group_codes(argument: str, groups: Sequence[Hashable] | None, n_songs: int) -> IntpArray | None:
    """Number the groups; -1 for None, blank and nan, which collide with nothing."""
    if groups is None:
        return None
    if len(groups) != n_songs:
        raise ValueError(f"{argument} has {len(groups)} entries for {n_songs} songs; give one a song")
    code: dict[Hashable, int] = {}
    codes = [-1 if is_missing(group) else code.setdefault(group, len(code)) for group in groups]
    return np.array(codes, dtype=np.intp)


@dataclass(slots=True)
class Restrictions:
    """Masks of the songs allowed at a place of a playlist, given the songs before it and those fixed behind it.

    `fixed` are songs by their place; `group` keeps songs apart by `spacing`, `work` for good. Memory: two
    masks of one byte a song.
    """

    n_songs: int
    fixed: Mapping[int, int] = field(default_factory=dict)
    exclude: Sequence[int] = ()
    group: IntpArray | None = None
    spacing: int = 0
    work: IntpArray | None = None
    repeat: bool = False
    _never: BoolArray = field(init=False)
    _used: int = field(init=False, default=0)
    _unused: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        self._never = np.zeros(self.n_songs, dtype=bool)
        self._never[list(self.exclude)] = True
        self._unused = ~self._never
        if not self.repeat:
            for song in self.fixed.values():
                self._strike(song)

    def _strike(self, song: int) -> None:
        self._unused[song] = False
        if self.work is not None and self.work[song] >= 0:
            self._unused[self.work == self.work[song]] = False

    def unused(self, songs: Sequence[int]) -> BoolArray:
        """The songs that may still come, wherever; `songs` are those placed so far and only grow."""
        if self.repeat:
            return ~self._never
        for song in songs[self._used :]:
            self._strike(song)
        self._used = len(songs)
        return self._unused.copy()

    def allowed(self, songs: Sequence[int], place: int | None = None, spacing: int | None = None) -> BoolArray:
        """The unused songs that are no closer than the spacing to one of their group.

        `place` is one further on than the next, whose neighbours before it are not all known; `spacing` is less than
        what was asked, where that cannot be kept.
        """
        place = len(songs) if place is None else place
        spacing = self.spacing if spacing is None else spacing
        mask = self.unused(songs)
        if self.repeat and place == len(songs):
            mask[list(songs[-1:])] = False  # not twice at once
        if self.group is None or not spacing:
            return mask
        near = [songs[i] for i in range(max(0, place - spacing), len(songs))]
        near += [song for at, song in self.fixed.items() if len(songs) <= at and abs(at - place) <= spacing]
        for code in {int(self.group[song]) for song in near}:
            if code >= 0:
                mask &= self.group != code
        return mask

    def why_none(self, songs: Sequence[int]) -> str:
        """Say why no song may come next."""
        left = int(np.count_nonzero(self.unused(songs)))
        if left:
            return f"the {left} songs left are all by artists of the last {self.spacing} songs"
        return "no songs are left"


EdgeProbabilities = Callable[[int], tuple[IntpArray, Float64Array]]

Steering = Callable[[int, int, Float64Array], Float64Array | None]
"""Weights of all songs at a place, given the song before it and the walk's own probabilities of the next; or None."""

_TRIES = 4  # draws of a song before all members of an edge are looked at


@dataclass(frozen=True, slots=True)
class Transition:
    """One step of a playlist, and the edge that explains it.

    `previous` is None for the opening song; `probability` is the model's P[edge | previous song] (of
    the edge itself for the opening song) at the temperature of the walk, before any restriction. A step that
    no edge of the previous song allowed has the uniform edge (index -1 if there is none) and probability 0.
    """

    previous: int | None
    song: int
    edge: int
    name: str
    probability: float
    reason: str


@dataclass(frozen=True, slots=True)
class Playlist:
    """Songs in order, with ``len(songs) - 1`` transitions that explain them.

    `opening` explains the first song where it was drawn, None where it was given. `note` says what could not be
    met: why the playlist is shorter than asked for, or where songs of a group stand closer; "" if all was.
    """

    songs: tuple[int, ...]
    transitions: tuple[Transition, ...]
    opening: Transition | None = None
    note: str = ""


def _draw(values: Float64Array, rng: np.random.Generator) -> int:
    """Draw an index in proportion to `values`, which may hold zeros but not only zeros."""
    cumulated = np.cumsum(values)
    place = int(np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right"))
    return min(place, int(np.flatnonzero(values)[-1]))  # rounding may reach the very end


@dataclass(slots=True, kw_only=True)
class Walker:
    """A model's walk under restrictions: its edges, how it leaves a song, and its source of chance.

    `weigh` gives the weights of songs at a place (None: all alike), `steer` what the song before adds to them;
    `within` the songs that the uniform edge leads to from a song (None: all); `bridge` is asked for where songs are
    fixed further on.
    """

    graph: Hypergraph = field(kw_only=False)
    opening: Float64Array
    edge_probabilities: EdgeProbabilities
    restrictions: Restrictions
    rng: np.random.Generator
    use_uniform: bool
    weigh: Weighing
    bridge: Callable[[], Bridge]
    steer: Steering | None = None
    within: Callable[[int], IntpArray] | None = None
    _towards: dict[int, Float64Array] = field(init=False, default_factory=dict)
    _notes: list[str] = field(init=False, default_factory=list)

    def walk(self, length: int) -> tuple[list[int], list[Transition | None], str]:
        """Fill the places up to `length` that are not fixed.

        Return the songs, a step for each (None where it was fixed), and what could not be met.
        """
        songs: list[int] = []
        steps: list[Transition | None] = []
        fixed = self.restrictions.fixed
        ahead = sorted(place for place in fixed if place < length)
        place = 0
        while place < length:
            if place in fixed:
                songs.append(fixed[place])
                steps.append(None)
                place += 1
                continue
            target = next((p for p in ahead if p > place), None)
            if target is not None and not self._towards:
                self._look_ahead(songs, place, target)
            step = self._step(songs, place, target)
            if step is None and target is not None:
                self._notes.append(f"{target - place} songs are missing before song {target + 1}: none are left")
                self._towards = {}
                return self._without_gap(songs, steps, place, target, length)
            if step is None:
                why = self.restrictions.why_none(songs)
                self._notes.append(f"stopped at {len(songs)} of {length} songs: {why}")
                break
            songs.append(step.song)
            steps.append(step)
            place += 1
            if place == target:
                self._towards = {}
        return songs, steps, "; ".join(self._notes)

    def _without_gap(
        self, songs: list[int], steps: list[Transition | None], place: int, target: int, length: int
    ) -> tuple[list[int], list[Transition | None], str]:
        """Close a gap that no song is left for: what is fixed behind it follows at once."""
        rest = [song for at, song in sorted(self.restrictions.fixed.items()) if target <= at < length]
        return [*songs, *rest], [*steps, *([None] * len(rest))], "; ".join(self._notes)

    def _look_ahead(self, songs: list[int], place: int, target: int) -> None:
        """Work out the messages of the stretch from `place` to the fixed song at `target`."""

        def weigh(at: int) -> Float64Array:
            weights = self.restrictions.allowed(songs, at).astype(np.float64)
            given = self.weigh(at)
            return weights if given is None else weights * given

        song = self.restrictions.fixed[target]
        self._towards = self.bridge().messages(place - 1, target, song, weigh)

    def _step(self, songs: list[int], place: int, target: int | None) -> Transition | None:
        """Take one step; where a fixed song waits, come closer than the spacing rather than stop."""
        previous = songs[-1] if songs else None
        step = self._next(previous, self.restrictions.allowed(songs), place)
        if step is not None or target is None:
            return step
        for spacing in range(self.restrictions.spacing - 1, -1, -1):
            step = self._next(previous, self.restrictions.allowed(songs, spacing=spacing), place)
            if step is not None:
                self._notes.append(f"song {place + 1} has an artist of the {self.restrictions.spacing} beside it")
                return step
        return None

    def _pulled(self, place: int) -> Float64Array | None:
        """Weights of songs at a place, with where the walk has to go; None where all weigh the same."""
        given, towards = self.weigh(place), self._towards.get(place)
        if given is None or towards is None:
            return given if towards is None else towards
        return given * towards

    def _next(self, previous: int | None, allowed: BoolArray, place: int) -> Transition | None:
        """Take one step; None when nothing at all is allowed."""
        if previous is None:
            edges, probabilities = np.arange(self.graph.n_edges), self.opening
        else:
            edges, probabilities = self.edge_probabilities(previous)
        left = probabilities.copy()
        if not self.use_uniform and self.graph.uniform_edge is not None:
            left[edges == self.graph.uniform_edge] = 0.0
        pulled = self._pulled(place)
        if pulled is None and (self.steer is None or previous is None):
            chosen = self._struck_out(edges, left, allowed)
        else:
            members = self._members(edges, left, previous)
            if self.steer is not None and previous is not None:
                free = self._free_step(members, left, allowed, pulled)
                added = self.steer(place, previous, free) if free.any() else None
                pulled = added if pulled is None else pulled if added is None else pulled * added
            wanted = allowed.astype(np.float64) if pulled is None else np.where(allowed, pulled, 0.0)
            chosen = self._weighed(members, left, wanted, allowed)
        if chosen is not None:
            k, song = chosen
            name = self.graph.names[edges[k]]
            reason = describe_edge(name, both=previous is not None)
            return Transition(previous, song, int(edges[k]), name, float(probabilities[k]), reason)
        return self._anywhere(previous, allowed, pulled)

    def _members(self, edges: IntpArray, left: Float64Array, previous: int | None) -> list[IntpArray]:
        """The songs that each edge leads to from a song; none of those that are left out."""
        nobody = np.empty(0, dtype=np.intp)
        found = [self.graph.members(e) if p > 0 else nobody for e, p in zip(edges.tolist(), left, strict=True)]
        if self.within is not None and previous is not None:
            for k in np.flatnonzero((edges == self.graph.uniform_edge) & (left > 0)):
                found[int(k)] = self.within(previous)
        return found

    def _free_step(
        self, members: Sequence[IntpArray], left: Float64Array, allowed: BoolArray, pulled: Float64Array | None
    ) -> Float64Array:
        """Probabilities of the next song without steering: of any allowed one where no edge leads on."""
        mass = self.graph.song_weight * allowed
        step = np.zeros(self.graph.n_songs)
        for songs, p in zip(members, left, strict=True):
            possible = mass[songs].sum()
            step[songs] += p / possible if possible > 0 else 0.0
        step = step if step.any() else np.ones(self.graph.n_songs)
        step *= mass if pulled is None else mass * pulled
        return step / (step.sum() or 1.0)

    def _struck_out(self, edges: IntpArray, left: Float64Array, allowed: BoolArray) -> tuple[int, int] | None:
        """Draw an edge, and strike it out where it has no allowed member, until one has."""
        while np.any(left > 0):
            k = _draw(left, self.rng)
            song = self._tried(int(edges[k]), allowed)
            if song is not None:
                return k, song
            members = self.graph.members(int(edges[k]))
            candidates = members[allowed[members]]
            if candidates.size:
                return k, self._song_of(candidates)
            left[k] = 0.0
        return None

    def _tried(self, edge: int, allowed: BoolArray) -> int | None:
        """A member of the edge, if one of a few draws is allowed: the same as drawing among those allowed."""
        if self.graph.weighted:
            return None
        for place in self.rng.integers(self.graph.sizes[edge], size=_TRIES):
            song = self.graph.member(edge, int(place))
            if allowed[song]:
                return song
        return None

    def _song_of(self, candidates: IntpArray) -> int:
        if not self.graph.weighted:
            return int(candidates[self.rng.integers(candidates.size)])
        return int(candidates[_draw(self.graph.song_weight[candidates], self.rng)])

    def _weighed(
        self, members: Sequence[IntpArray], left: Float64Array, pulled: Float64Array, allowed: BoolArray
    ) -> tuple[int, int] | None:
        """Draw an edge by the mean weight of its allowed members, and one of them by its own."""
        mass = self.graph.song_weight
        for k in np.flatnonzero(left).tolist():
            songs = members[k]
            possible = mass[songs] @ allowed[songs]
            left[k] *= (mass[songs] @ pulled[songs]) / possible if possible > 0 else 0.0
        if not np.any(left > 0):
            return None
        chosen = _draw(left, self.rng)
        songs = members[chosen]
        return chosen, int(songs[_draw(mass[songs] * pulled[songs], self.rng)])

    def _anywhere(self, previous: int | None, allowed: BoolArray, pulled: Float64Array | None) -> Transition | None:
        """Any allowed song of the collection, where no edge leads on."""
        candidates = np.flatnonzero(allowed)
        if candidates.size == 0:
            return None
        weights = np.zeros(0) if pulled is None else self.graph.song_weight[candidates] * pulled[candidates]
        song = int(candidates[_draw(weights, self.rng)]) if np.any(weights > 0) else self._song_of(candidates)
        edge = -1 if self.graph.uniform_edge is None else self.graph.uniform_edge
        return Transition(previous, song, edge, UNIFORM, 0.0, describe_edge(UNIFORM))
