"""Hypergraph with songs as vertices and sets of songs as edges (thesis, section 7.5).

A song is a row number, and an edge is a column number. An edge has a name ``family:value``, such as ``tag:calm``; the
name of a conjunction joins the names of its parts with `` & ``. Within an edge, songs are drawn in proportion to their
weights, which are equal by default.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from musicsim._arrays import Float64Array, IntpArray

UNIFORM = "uniform:all"
"""Name of the edge with all songs."""

# Values may contain " & " (artist:Simon & Garfunkel), so it separates names only if "family:" follows.
_JOINT = re.compile(r" & (?=[a-z]+(?:-[^\s:&]+)?:\S)")
# P[y | e, x] divides by mass(e) - p_x. With a larger ratio of weights, this difference would lose all precision.
_MAX_WEIGHT_RATIO = 1e9


def is_missing(value: Any) -> bool:
    """Return whether a label is None, blank or nan, like an empty cell of a table."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or (isinstance(value, str) and not value.strip())


def name_parts(name: str) -> list[tuple[str, str]]:
    """Split an edge's name into (family, value) pairs: one pair, or one per part of a conjunction.

    Examples
    --------
    >>> from musicsim.playlist import name_parts
    >>> name_parts("tag:calm & year:1994")
    [('tag', 'calm'), ('year', '1994')]
    """
    parts = (part.partition(":") for part in _JOINT.split(name))
    return [(family, value) for family, _, value in parts]


def _check_song_weight(song_weight: npt.ArrayLike | None, n_songs: int) -> Float64Array:
    if song_weight is None:
        return np.ones(n_songs)
    weight = np.array(song_weight, dtype=np.float64)
    if weight.shape != (n_songs,):
        raise ValueError(f"song_weight has shape {weight.shape}; it must be ({n_songs},), with one weight per song")
    if not np.all(np.isfinite(weight)) or np.any(weight <= 0):
        raise ValueError("song_weight must be positive and finite: add 0.5 to counts that may be 0")
    if n_songs and weight.max() > _MAX_WEIGHT_RATIO * weight.min():
        raise ValueError(
            f"song_weight has a ratio of {weight.max() / weight.min():.1e} between the largest and smallest weight; "
            f"it must be at most {_MAX_WEIGHT_RATIO:.0e}. Raise the smallest weights."
        )
    return weight


class Hypergraph:
    """Named sets of songs: everything that a playlist model knows about songs. They take 10 bytes per membership.

    Parameters
    ----------
    incidence : sparse or dense matrix of shape (n_songs, n_edges); entry (x, e) is non-zero if song x belongs to edge e
    names : sequence of str, one per edge, all different
    song_weight : array of shape (n_songs,), positive, or None
        With None, members of an edge are equally likely: P[x|e] = 1/|e|. Otherwise, P[x|e] = p_x / (sum of p over the
        members of e). The largest weight must be at most 1e9 times the smallest.

    Attributes
    ----------
    incidence : scipy.sparse.csr_array of shape (n_songs, n_edges), bool, indices sorted
    n_songs, n_edges : int
    n_dropped : int
        Number of dropped edges: those with fewer than 2 songs, and in `build_edges` also those below `min_size`.
    sizes : ndarray of shape (n_edges,), int
    mass : ndarray of shape (n_edges,), float64
        Sum of the members' song weights; equal to `sizes` if no song weights were given.
    song_weight : ndarray of shape (n_songs,), float64; ones if no weights were given
    weighted : bool; whether song weights were given
    uniform_edge : int or None; the edge with all songs: ``uniform:all``, otherwise the first such edge

    Raises
    ------
    ValueError
        If a song belongs to no edge, because a walk could not reach it. Hypergraphs with fewer than two songs, as in a
        new library, are legal and have no edges.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.playlist import Hypergraph
    >>> graph = Hypergraph(np.array([[1, 0, 1], [1, 1, 1], [0, 1, 1]]), ["tag:calm", "tag:loud", "uniform:all"])
    >>> graph.n_songs, graph.sizes, graph.uniform_edge
    (3, array([2, 2, 3]), 2)
    >>> graph.edges_of(0), graph.members(1)
    (array([0, 2]), array([1, 2]))
    """

    def __init__(self, incidence: Any, names: Sequence[str], song_weight: npt.ArrayLike | None = None) -> None:
        matrix = sparse.csr_array(incidence, dtype=bool, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        names = list(names)
        if matrix.ndim != 2 or matrix.shape[1] != len(names):
            raise ValueError(
                f"incidence has shape {matrix.shape}, but names has {len(names)} entries: pass one per edge"
            )
        if len(set(names)) != len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise ValueError(f"names must be distinct, but {twice!r} occurs more than once")
        sizes = np.bincount(matrix.indices, minlength=len(names))
        kept = np.flatnonzero(sizes >= 2)
        self.n_dropped = len(names) - kept.size
        self.incidence = matrix if self.n_dropped == 0 else sparse.csr_array(matrix[:, kept])
        self.names = [names[e] for e in kept]
        self.sizes = sizes[kept]
        self.n_songs, self.n_edges = self.incidence.shape
        n_alone = int(np.count_nonzero(np.diff(self.incidence.indptr) == 0))
        if n_alone and self.n_songs >= 2:
            raise ValueError(
                f"{n_alone} of {self.n_songs} songs belong to no edge with two or more songs: "
                f"add the edge {UNIFORM!r} with all songs"
            )
        self.weighted = song_weight is not None
        self.song_weight = _check_song_weight(song_weight, self.n_songs)
        self._by_edge = sparse.csc_array(self.incidence)
        self.mass = np.asarray(self.incidence.T @ self.song_weight, dtype=np.float64)
        full = np.flatnonzero(self.sizes == self.n_songs)
        named = [int(e) for e in full if self.names[e] == UNIFORM]
        self.uniform_edge = next(iter(named), int(full[0]) if full.size else None)

    def edges_of(self, song: int) -> IntpArray:
        """Return the edges that contain `song`, in ascending order; there is at least one."""
        start, stop = self.incidence.indptr[song : song + 2]
        return self.incidence.indices[start:stop].astype(np.intp)

    def members(self, edge: int) -> IntpArray:
        """Return the songs of `edge`, in ascending order; there are at least two."""
        start, stop = self._by_edge.indptr[edge : edge + 2]
        return self._by_edge.indices[start:stop].astype(np.intp)

    def member(self, edge: int, place: int) -> int:
        """Return the entry at `place` in :meth:`members`, without copying all members."""
        return int(self._by_edge.indices[self._by_edge.indptr[edge] + place])

    def __repr__(self) -> str:
        return f"Hypergraph({self.n_songs} songs, {self.n_edges} edges, {self.incidence.nnz} memberships)"
