"""Songs as vertices, sets of songs as edges (thesis, section 7.5).

Conventions: a song is a row number, an edge a column number. An edge is named ``family:value``, such
as ``tag:calm``; a conjunction joins the names of its parts with `` & ``. Inside an edge songs are drawn
in proportion to their weight, which is the same for all songs unless weights are given.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from musicsim._arrays import Float64Array, IntpArray

UNIFORM = "uniform:all"
"""The name of the edge that holds every song."""

# Values may hold " & " themselves (artist:Simon & Garfunkel): only one before "family:" joins two names.
_JOINT = re.compile(r" & (?=[a-z]+(?:-[^\s:&]+)?:\S)")
# P[y | e, x] divides by mass(e) - p_x; beyond this ratio of weights that difference has no digits left.
_MAX_WEIGHT_RATIO = 1e9


def is_missing(value: Any) -> bool:
    """Tell whether a label is None, blank or nan (how tables mark an empty cell)."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or (isinstance(value, str) and not value.strip())


def name_parts(name: str) -> list[tuple[str, str]]:
    """Split an edge's name into its (family, value) pairs: one, or one a part of a conjunction."""
    parts = (part.partition(":") for part in _JOINT.split(name))
    return [(family, value) for family, _, value in parts]


def _check_song_weight(song_weight: npt.ArrayLike | None, n_songs: int) -> Float64Array:
    if song_weight is None:
        return np.ones(n_songs)
    weight = np.array(song_weight, dtype=np.float64)
    if weight.shape != (n_songs,):
        raise ValueError(f"song_weight has shape {weight.shape}; it must be ({n_songs},), one weight a song")
    if not np.all(np.isfinite(weight)) or np.any(weight <= 0):
        raise ValueError("song_weight must be positive and finite; add 0.5 to counts that may be 0")
    if n_songs and weight.max() > _MAX_WEIGHT_RATIO * weight.min():
        raise ValueError(
            f"song_weight spans a ratio of {weight.max() / weight.min():.1e}; "
            f"at most {_MAX_WEIGHT_RATIO:.0e} can be told apart. Raise the smallest weights."
        )
    return weight


class Hypergraph:
    """Sets of songs with names: all that a playlist model knows of a song.

    Parameters
    ----------
    incidence : sparse or dense matrix of shape (n_songs, n_edges)
        Entry (x, e) is non-zero when song x belongs to edge e.
    names : sequence of str, one an edge, all different
    song_weight : array of shape (n_songs,), positive, or None
        None: each member of an edge is equally likely, P[x|e] = 1/|e|. Otherwise
        P[x|e] = p_x / (sum of p over the members of e). Largest over smallest weight: at most 1e9.

    Attributes
    ----------
    incidence : scipy.sparse.csr_array of shape (n_songs, n_edges), bool, indices sorted
    families : list of str
        The part of each name before the colon; ``tag & decade`` for a conjunction.
    n_songs, n_edges : int
    n_dropped : int
        Edges left out because they hold fewer than 2 songs (`build_edges` adds those below its
        `min_size`): no transition can pass through them, (|e| - 1) being 0.
    sizes : ndarray of shape (n_edges,), int
    mass : ndarray of shape (n_edges,), float64
        Sum of the song weights of the members; equal to `sizes` without song weights.
    song_weight : ndarray of shape (n_songs,), float64
        Ones when no weights were given.
    weighted : bool
        Whether song weights were given.
    uniform_edge : int or None
        The edge that holds every song: the one called ``uniform:all``, else the first that does.

    Raises
    ------
    ValueError
        If some song belongs to no edge, since a walk could neither reach nor leave it. A collection of
        fewer than two songs has no edges and is legal: it is what a new library looks like.

    Notes
    -----
    Memory: 5 bytes a membership, held by song and again by edge; 100 000 songs in 30 edges each take
    30 MB.
    """

    def __init__(self, incidence: Any, names: Sequence[str], song_weight: npt.ArrayLike | None = None) -> None:
        matrix = sparse.csr_array(incidence, dtype=bool, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        names = list(names)
        if matrix.ndim != 2 or matrix.shape[1] != len(names):
            raise ValueError(f"incidence has shape {matrix.shape}, but there are {len(names)} names of edges")
        if len(set(names)) != len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise ValueError(f"names of edges must differ; {twice!r} is there more than once")
        sizes = np.bincount(matrix.indices, minlength=len(names))
        kept = np.flatnonzero(sizes >= 2)
        self.n_dropped = len(names) - kept.size
        self.incidence = matrix if self.n_dropped == 0 else sparse.csr_array(matrix[:, kept])
        self.names = [names[e] for e in kept]
        self.families = [" & ".join(family for family, _ in name_parts(name)) for name in self.names]
        self.sizes = sizes[kept]
        self.n_songs, self.n_edges = self.incidence.shape
        self._check_covered()
        self.weighted = song_weight is not None
        self.song_weight = _check_song_weight(song_weight, self.n_songs)
        self._by_edge = sparse.csc_array(self.incidence)
        self.mass = np.asarray(self.incidence.T @ self.song_weight, dtype=np.float64)
        self.uniform_edge = self._find_uniform()

    def _check_covered(self) -> None:
        alone = int(np.count_nonzero(np.diff(self.incidence.indptr) == 0))
        if alone and self.n_songs >= 2:
            raise ValueError(
                f"{alone} of {self.n_songs} songs belong to no edge of two songs or more; "
                f"add the edge {UNIFORM!r} that holds every song"
            )

    def _find_uniform(self) -> int | None:
        full = np.flatnonzero(self.sizes == self.n_songs)
        named = [int(e) for e in full if self.names[e] == UNIFORM]
        return next(iter(named), int(full[0]) if full.size else None)

    def edges_of(self, song: int) -> IntpArray:
        """Return the edges that hold `song`, ascending; at least one."""
        start, stop = self.incidence.indptr[song : song + 2]
        return self.incidence.indices[start:stop].astype(np.intp)

    def members(self, edge: int) -> IntpArray:
        """Return the songs of `edge`, ascending; at least two."""
        start, stop = self._by_edge.indptr[edge : edge + 2]
        return self._by_edge.indices[start:stop].astype(np.intp)

    def member(self, edge: int, place: int) -> int:
        """Return the song at a place of `members`, without making the others."""
        return int(self._by_edge.indices[self._by_edge.indptr[edge] + place])

    def __repr__(self) -> str:
        return f"Hypergraph({self.n_songs} songs, {self.n_edges} edges, {self.incidence.nnz} memberships)"
