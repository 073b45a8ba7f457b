"""Random walk restricted to the songs that are still allowed.

At each song, the walk draws an edge with an allowed member, in the model's proportions, and then one of these members.
The code draws any edge and rejects it if it has no allowed member. The distribution is the same, but fewer edges are
inspected.

Songs may have weights g, and a later song may be fixed (see the message beta in `_bridge`). Then an edge is drawn in
proportion to the mean of g * beta over its allowed members, and then a member in proportion to its own g * beta.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from musicsim._arrays import BoolArray, Float64Array, IntegerArray, IntpArray
from musicsim.playlist._bridge import Bridge, Weighing
from musicsim.playlist.edges import describe_edge
from musicsim.playlist.hypergraph import UNIFORM, Hypergraph, is_missing


def group_codes(argument: str, groups: Sequence[Hashable] | IntegerArray | None, n_songs: int) -> IntpArray | None:
    """Number the groups; None, blank, nan and negative numbers of an array become -1, which means no group."""
    if groups is None:
        return None
    if len(groups) != n_songs:
        raise ValueError(f"{argument} has {len(groups)} entries for {n_songs} songs: pass one per song")
    if isinstance(groups, np.ndarray) and groups.dtype.kind == "i":
        return np.maximum(groups, -1).astype(np.intp)
    code: dict[Hashable, int] = {}
    codes = [-1 if is_missing(group) else code.setdefault(group, len(code)) for group in groups]
    return np.array(codes, dtype=np.intp)


Versions = Callable[[int], IntpArray]
"""Function of a song that returns all songs with the same label, including the song itself."""


def find_versions(works: Sequence[Hashable] | IntegerArray | Versions | None, n_songs: int) -> Versions | None:
    """Return a function that finds the songs with the same label."""
    if callable(works):
        return works
    codes = group_codes("works", works, n_songs)
    if codes is None:
        return None
    return lambda song: np.flatnonzero(codes == codes[song]) if codes[song] >= 0 else np.array([song])


@dataclass(slots=True)
class Restrictions:
    """Masks of the songs allowed at a position of a playlist, given the songs before it and the fixed songs.

    `fixed` maps positions to songs. Songs from one `group` are at least `spacing` + 1 positions apart. A playlist has
    at most one of the versions of a song that `works` returns. The masks take two bytes per song.
    """

    n_songs: int
    fixed: Mapping[int, int] = field(default_factory=dict)
    exclude: Sequence[int] | IntpArray = ()
    group: IntpArray | None = None
    spacing: int = 0
    works: Versions | None = None
    repeat: bool = False
    _never: BoolArray = field(init=False)
    _used: int = field(init=False, default=0)
    _unused: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        self._never = np.zeros(self.n_songs, dtype=bool)
        self._never[np.asarray(self.exclude, dtype=np.intp)] = True
        self._unused = ~self._never
        if not self.repeat:
            for song in self.fixed.values():
                self._strike(song)

    def _strike(self, song: int) -> None:
        self._unused[song] = False
        if self.works is not None:
            self._unused[self.works(song)] = False

    def _find_unused(self, songs: Sequence[int]) -> BoolArray:
        """Return a mask of the songs still allowed at any position; between calls, `songs` may only grow."""
        if self.repeat:
            return ~self._never
        for song in songs[self._used :]:
            self._strike(song)
        self._used = len(songs)
        return self._unused.copy()

    def find_allowed(self, songs: Sequence[int], place: int | None = None, spacing: int | None = None) -> BoolArray:
        """Return a mask of the unused songs that respect their group's spacing at `place` (by default the next)."""
        place = len(songs) if place is None else place
        spacing = self.spacing if spacing is None else spacing
        mask = self._find_unused(songs)
        if self.repeat and place == len(songs):
            mask[list(songs[-1:])] = False  # prevents immediate repeats
        if self.group is None or not spacing:
            return mask
        near = [songs[i] for i in range(max(0, place - spacing), len(songs))]
        near += [song for at, song in self.fixed.items() if len(songs) <= at and abs(at - place) <= spacing]
        for code in {int(self.group[song]) for song in near}:
            if code >= 0:
                mask &= self.group != code
        return mask

    def explain_none(self, songs: Sequence[int]) -> str:
        """Return the reason why no song is allowed next."""
        left = int(np.count_nonzero(self._find_unused(songs)))
        if left:
            return f"the {left} remaining songs are all by artists of the last {self.spacing} songs"
        return "no songs are left"


Steering = Callable[[int, int, Float64Array], Float64Array | None]
"""Function of the position, the previous song and the walk's probabilities; returns weights of all songs, or None."""

_TRIES = 4  # number of songs drawn from an edge before all its members are checked


@dataclass(frozen=True, slots=True)
class Trial:
    """The effect of the edge that led to a song: the song's probability with all edges, and without this edge.

    Both are exact, and include the restrictions, the weights of songs and the steering of the step. `instead` is the
    song whose probability rises most without the edge, None if no probability rises.

    Examples
    --------
    >>> from musicsim.playlist import PlaylistModel, build_edges
    >>> model = PlaylistModel(build_edges(4, tags=[["calm"], ["calm"], [], []])).fit([[0, 1]] * 9)
    >>> trial = model.generate(2, first=0, random_state=0, trials=True).transitions[0].trial
    >>> bool(trial.probability > trial.without)  # the song was likely because it is calm, too
    True
    """

    probability: float
    without: float
    instead: int | None


@dataclass(frozen=True, slots=True)
class Transition:
    """A step of a playlist and the edge that explains it.

    `previous` is None for the opening song. `probability` is the model's P[edge | previous song] (P[edge] for the
    opening song) at the walk's temperature, without restrictions. If no edge of the previous song led to an allowed
    song, the edge is the uniform one (-1 if there is none) and the probability is 0. `trial` is the effect of the edge,
    if it was requested and the edge was drawn.

    Examples
    --------
    >>> from musicsim.playlist import PlaylistModel, build_edges
    >>> model = PlaylistModel(build_edges(3, tags=[["calm"], ["calm"], []], uniform=True)).fit([[0, 1]])
    >>> step = model.generate(2, first=0, random_state=0).transitions[0]
    >>> step.previous, step.song, step.name, step.reason
    (0, 1, 'tag:calm', 'both tagged calm')
    """

    previous: int | None
    song: int
    edge: int
    name: str
    probability: float
    reason: str
    trial: Trial | None = None


@dataclass(frozen=True, slots=True)
class Playlist:
    """Songs in order, with ``len(songs) - 1`` transitions that explain them.

    `opening` explains the first song if it was drawn. `note` lists the unmet conditions ("" if there are none): why the
    playlist is too short, or which songs violate the spacing.

    Examples
    --------
    >>> from musicsim.playlist import PlaylistModel, build_edges
    >>> graph = build_edges(6, tags=[["calm"], ["calm"], ["calm", "live"], ["live"], ["live"], ["calm"]])
    >>> model = PlaylistModel(graph).fit([[0, 1, 2, 3], [5, 2, 4]])
    >>> playlist = model.generate(4, first=0, random_state=0)
    >>> len(playlist.songs), len(playlist.transitions), playlist.note
    (4, 3, '')
    """

    songs: tuple[int, ...]
    transitions: tuple[Transition, ...]
    opening: Transition | None = None
    note: str = ""


def _draw(values: Float64Array, rng: np.random.Generator) -> int:
    """Draw an index in proportion to `values`; at least one value must be positive."""
    cumulative = np.cumsum(values)
    index = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
    return min(index, int(np.flatnonzero(values)[-1]))  # rounding may lead beyond the last positive value


def _compare(song: int, step: Float64Array, without: Float64Array) -> Trial:
    """Return the trial of an edge, given the probabilities of all songs with and without it."""
    rise = without - step
    rise[song] = 0.0
    instead = int(rise.argmax())
    return Trial(float(step[song]), float(without[song]), instead if rise[instead] > 0 else None)


@dataclass(slots=True, kw_only=True)
class Walker:
    """A model's walk under restrictions.

    `weigh` returns the weights of songs at a position (None if they are equal), and `steer` returns factors that depend
    on the previous song. `within` takes a song, and returns the songs that the uniform edge leads to from there (by
    default all). `bridge` is called if later songs are fixed. If `has_trials`, each step gets its :class:`Trial`.
    """

    graph: Hypergraph = field(kw_only=False)
    opening: Float64Array
    edge_probabilities: Callable[[int], tuple[IntpArray, Float64Array]]
    restrictions: Restrictions
    rng: np.random.Generator
    use_uniform: bool
    weigh: Weighing
    bridge: Callable[[], Bridge]
    steer: Steering | None = None
    within: Callable[[int], IntpArray] | None = None
    has_trials: bool = False
    _messages: dict[int, Float64Array] = field(init=False, default_factory=dict)
    _notes: list[str] = field(init=False, default_factory=list)

    def walk(self, length: int) -> tuple[list[int], list[Transition | None], str]:
        """Return `length` songs, the step that led to each (None if it is fixed), and a note on unmet conditions."""
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
            if target is not None and not self._messages:
                self._look_ahead(songs, place, target)
            step = self._step(songs, place, target)
            if step is None and target is not None:
                # the remaining fixed songs follow without a gap
                self._notes.append(f"no suitable songs are left before song {target + 1} ({target - place} missing)")
                rest = [song for at, song in sorted(fixed.items()) if target <= at < length]
                songs += rest
                steps += [None] * len(rest)
                break
            if step is None:
                reason = self.restrictions.explain_none(songs)
                self._notes.append(f"stopped at {len(songs)} of {length} songs: {reason}")
                break
            songs.append(step.song)
            steps.append(step)
            place += 1
            if place == target:
                self._messages = {}
        return songs, steps, "; ".join(self._notes)

    def _look_ahead(self, songs: list[int], place: int, target: int) -> None:
        """Compute the messages between `place` and the fixed song at `target`."""

        def weigh(at: int) -> Float64Array:
            allowed = self.restrictions.find_allowed(songs, at).astype(np.float64)
            weights = self.weigh(at)
            return allowed if weights is None else allowed * weights

        song = self.restrictions.fixed[target]
        self._messages = self.bridge().compute_messages(place - 1, target, song, weigh)

    def _step(self, songs: list[int], place: int, target: int | None) -> Transition | None:
        """Take one step; before a fixed song, reduce the spacing if no song would be allowed otherwise."""
        previous = songs[-1] if songs else None
        step = self._next(previous, self.restrictions.find_allowed(songs), place)
        if step is not None or target is None:
            return step
        for spacing in range(self.restrictions.spacing - 1, -1, -1):
            step = self._next(previous, self.restrictions.find_allowed(songs, spacing=spacing), place)
            if step is not None:
                self._notes.append(
                    f"song {place + 1} shares its artist with one of the {self.restrictions.spacing} songs next to it"
                )
                return step
        return None

    def _weigh_songs(self, place: int) -> Float64Array | None:
        """Return the weights of songs at a position, multiplied by the message; None if all are equal."""
        weights, message = self.weigh(place), self._messages.get(place)
        if weights is None or message is None:
            return weights if message is None else message
        return weights * message

    def _next(self, previous: int | None, allowed: BoolArray, place: int) -> Transition | None:
        """Take one step; return None if no song is allowed."""
        if previous is None:
            edges, probabilities = np.arange(self.graph.n_edges), self.opening
        else:
            edges, probabilities = self.edge_probabilities(previous)
        usable = probabilities.copy()
        if not self.use_uniform and self.graph.uniform_edge is not None:
            usable[edges == self.graph.uniform_edge] = 0.0
        weights = self._weigh_songs(place)
        is_plain = weights is None and (self.steer is None or previous is None)
        members = [] if is_plain and not self.has_trials else self._list_members(edges, usable, previous, is_plain)

        def weigh(left: Float64Array) -> Float64Array | None:
            """Return the steered weights of songs, if edges are drawn with the probabilities `left`."""
            if self.steer is None or previous is None:
                return weights
            free = self._free_step(members, left, allowed, weights)
            factors = self.steer(place, previous, free) if free.any() else None
            return factors if weights is None else weights if factors is None else weights * factors

        final = weigh(usable)
        if is_plain:
            choice = self._draw_unweighted(edges, usable.copy(), allowed)
        else:
            songs = allowed.astype(np.float64) if final is None else np.where(allowed, final, 0.0)
            choice = self._draw_weighted(members, usable.copy(), songs, allowed)
        if choice is None:
            return self._draw_any(previous, allowed, final)
        k, song = choice
        trial = None
        if self.has_trials:
            others = usable.copy()
            others[k] = 0.0
            step = self._free_step(members, usable, allowed, final)
            trial = _compare(song, step, self._free_step(members, others, allowed, weigh(others)))
        name = self.graph.names[edges[k]]
        reason = describe_edge(name, both=previous is not None)
        return Transition(previous, song, int(edges[k]), name, float(probabilities[k]), reason, trial)

    def _list_members(
        self, edges: IntpArray, left: Float64Array, previous: int | None, is_plain: bool
    ) -> list[IntpArray]:
        """Return the songs that each edge leads to from the previous song; none for edges with probability 0.

        A plain step, without weights, ignores `within`.
        """
        nothing = np.empty(0, dtype=np.intp)
        members = [self.graph.members(e) if p > 0 else nothing for e, p in zip(edges.tolist(), left, strict=True)]
        if self.within is not None and previous is not None and not is_plain:
            for k in np.flatnonzero((edges == self.graph.uniform_edge) & (left > 0)):
                members[int(k)] = self.within(previous)
        return members

    def _free_step(
        self, members: Sequence[IntpArray], left: Float64Array, allowed: BoolArray, weights: Float64Array | None
    ) -> Float64Array:
        """Return the probabilities of the next song; if no edge has an allowed song, any song may be next."""
        mass = self.graph.song_weight * allowed
        step = np.zeros(self.graph.n_songs)
        for songs, p in zip(members, left, strict=True):
            possible = mass[songs].sum()
            step[songs] += p / possible if possible > 0 else 0.0
        step = step if step.any() else np.ones(self.graph.n_songs)
        step *= mass if weights is None else mass * weights
        return step / (step.sum() or 1.0)

    def _draw_unweighted(self, edges: IntpArray, left: Float64Array, allowed: BoolArray) -> tuple[int, int] | None:
        """Draw edges until one has an allowed member, then draw one of its allowed members."""
        while np.any(left > 0):
            k = _draw(left, self.rng)
            edge = int(edges[k])
            # Drawing until a member is allowed gives the same distribution, and is usually faster.
            if not self.graph.weighted:
                for place in self.rng.integers(self.graph.sizes[edge], size=_TRIES):
                    song = self.graph.member(edge, int(place))
                    if allowed[song]:
                        return k, song
            members = self.graph.members(edge)
            candidates = members[allowed[members]]
            if candidates.size:
                return k, self._draw_song(candidates)
            left[k] = 0.0
        return None

    def _draw_song(self, candidates: IntpArray) -> int:
        if not self.graph.weighted:
            return int(candidates[self.rng.integers(candidates.size)])
        return int(candidates[_draw(self.graph.song_weight[candidates], self.rng)])

    def _draw_weighted(
        self, members: Sequence[IntpArray], left: Float64Array, weights: Float64Array, allowed: BoolArray
    ) -> tuple[int, int] | None:
        """Draw an edge in proportion to the mean weight of its allowed members, then a member by its own weight."""
        mass = self.graph.song_weight
        for k in np.flatnonzero(left).tolist():
            songs = members[k]
            possible = mass[songs] @ allowed[songs]
            left[k] *= (mass[songs] @ weights[songs]) / possible if possible > 0 else 0.0
        if not np.any(left > 0):
            return None
        k = _draw(left, self.rng)
        songs = members[k]
        return k, int(songs[_draw(mass[songs] * weights[songs], self.rng)])

    def _draw_any(self, previous: int | None, allowed: BoolArray, weights: Float64Array | None) -> Transition | None:
        """Draw any allowed song, because no edge leads to one; return None if there is none."""
        candidates = np.flatnonzero(allowed)
        if candidates.size == 0:
            return None
        mass = np.zeros(0) if weights is None else self.graph.song_weight[candidates] * weights[candidates]
        song = int(candidates[_draw(mass, self.rng)]) if np.any(mass > 0) else self._draw_song(candidates)
        edge = -1 if self.graph.uniform_edge is None else self.graph.uniform_edge
        return Transition(previous, song, edge, UNIFORM, 0.0, describe_edge(UNIFORM))
