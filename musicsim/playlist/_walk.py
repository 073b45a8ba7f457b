"""The restricted random walk: the model's walk over the songs that may still be played.

At each song an edge is drawn among those that still have an allowed member, with probabilities in
the model's proportions, then a song among these members. Drawing an edge and striking it out when it
has none left gives the same distribution, and looks only at the edges that are drawn.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from musicsim.playlist.edges import describe_edge
from musicsim.playlist.hypergraph import UNIFORM, Hypergraph, is_missing

__all__ = ["Playlist", "Restrictions", "Transition", "Walker", "group_codes"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
EdgeProbabilities = Callable[[int], tuple[IntArray, FloatArray]]


@dataclass(frozen=True, slots=True)
class Transition:
    """One step of a playlist, and the edge that explains it.

    `previous` is None for the opening song; `probability` is the model's P[edge | previous song] (of
    the edge itself for the opening song), before any restriction. A step that no edge of the
    previous song allowed has the uniform edge (index -1 if there is none) and probability 0.
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

    `opening` explains the first song where it was drawn, None where it was given. `note` says why the
    playlist is shorter than asked for, "" if it is not.
    """

    songs: tuple[int, ...]
    transitions: tuple[Transition, ...]
    opening: Transition | None = None
    note: str = ""


def group_codes(groups: Sequence[Hashable] | None, n_songs: int) -> IntArray:
    """Number the groups; -1 for None, blank and nan, which collide with nothing."""
    if groups is None:
        return np.full(n_songs, -1, dtype=np.intp)
    if len(groups) != n_songs:
        raise ValueError(f"groups has {len(groups)} entries for {n_songs} songs; give one a song")
    code: dict[Hashable, int] = {}
    codes = [-1 if is_missing(group) else code.setdefault(group, len(code)) for group in groups]
    return np.array(codes, dtype=np.intp)


@dataclass(slots=True)
class Restrictions:
    """Which songs may come next."""

    n_songs: int
    exclude: Iterable[int] = ()
    group: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    spacing: int = 0
    repeat: bool = False

    def unused(self, songs: list[int]) -> npt.NDArray[np.bool_]:
        """Return the mask of songs that are neither excluded nor already in the playlist."""
        mask = np.ones(self.n_songs, dtype=bool)
        mask[list(self.exclude)] = False
        mask[songs[-1:] if self.repeat else songs] = False
        return mask

    def allowed(self, songs: list[int]) -> npt.NDArray[np.bool_]:
        """Return the mask of unused songs of another group than the last `spacing` songs."""
        mask = self.unused(songs)
        for code in {int(self.group[song]) for song in songs[-self.spacing :]} if self.spacing else ():
            if code >= 0:
                mask &= self.group != code
        return mask

    def why_none(self, songs: list[int]) -> str:
        """Say why no song may come next."""
        left = int(np.count_nonzero(self.unused(songs)))
        if left:
            return f"the {left} songs left are all by artists of the last {self.spacing} songs"
        return "no songs are left"


def _draw(values: FloatArray, rng: np.random.Generator) -> int:
    """Draw an index in proportion to `values`, which may hold zeros but not only zeros."""
    cumulated = np.cumsum(values)
    place = int(np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right"))
    return min(place, int(np.flatnonzero(values)[-1]))  # rounding may reach the very end


def _draw_song(graph: Hypergraph, candidates: IntArray, rng: np.random.Generator) -> int:
    if not graph.weighted:
        return int(candidates[rng.integers(candidates.size)])
    return int(candidates[_draw(graph.song_weight[candidates], rng)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Walker:
    """A model's walk under restrictions: its edges, how it leaves a song, and its source of chance."""

    graph: Hypergraph = field(kw_only=False)
    opening: FloatArray
    edge_probabilities: EdgeProbabilities
    restrictions: Restrictions
    rng: np.random.Generator
    use_uniform: bool

    def walk(self, length: int, given: list[int]) -> tuple[list[Transition], str]:
        """Go on from the songs `given` until there are `length`; also say why not, if not.

        Where no songs are given, the opening step is among the steps (its `previous` is None).
        """
        songs, steps = list(given), list[Transition]()
        while len(songs) < length:
            step = self._next(songs[-1] if songs else None, self.restrictions.allowed(songs))
            if step is None:
                return (
                    steps,
                    f"stopped at {len(songs)} of {length} songs: {self.restrictions.why_none(songs)}",
                )
            songs.append(step.song)
            steps.append(step)
        return steps, ""

    def _next(self, previous: int | None, allowed: npt.NDArray[np.bool_]) -> Transition | None:
        """Take one step; None when nothing at all is allowed."""
        graph = self.graph
        if previous is None:
            edges, probabilities = np.arange(graph.n_edges), self.opening
        else:
            edges, probabilities = self.edge_probabilities(previous)
        left = probabilities.copy()
        if not self.use_uniform and graph.uniform_edge is not None:
            left[edges == graph.uniform_edge] = 0.0
        while np.any(left > 0):
            k = _draw(left, self.rng)
            members = graph.members(int(edges[k]))
            candidates = members[allowed[members]]
            if candidates.size:
                song, name = _draw_song(graph, candidates, self.rng), graph.names[edges[k]]
                reason = describe_edge(name, both=previous is not None)
                return Transition(previous, song, int(edges[k]), name, float(probabilities[k]), reason)
            left[k] = 0.0
        anywhere = np.flatnonzero(allowed)
        if anywhere.size == 0:
            return None
        edge = -1 if graph.uniform_edge is None else graph.uniform_edge
        song = _draw_song(graph, anywhere, self.rng)
        return Transition(previous, song, edge, UNIFORM, 0.0, describe_edge(UNIFORM))
