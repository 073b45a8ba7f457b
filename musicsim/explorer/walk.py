"""Playlists of a library: its hypergraph, the fitted walk, and lists drawn from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from musicsim.errors import NotFoundError
from musicsim.explorer.artifacts import load_walk, save_walk
from musicsim.explorer.snapshot import Snapshot, take_snapshot
from musicsim.library import Library, Song
from musicsim.playlist import Hypergraph, PlaylistModel, build_edges, describe_edge

__all__ = ["ARTIST_SPACING", "SURPRISE", "DrawnPlaylist", "Edge", "Walk", "fit_walk"]

ARTIST_SPACING = 5
SURPRISE = 0.2
# Share of each family before any playlist was seen: sound first, then what people say of the songs.
_SHARES = {"cluster": 0.55, "tag": 0.15, "artist": 0.1, "year": 0.04, "decade": 0.06, "uniform": 0.1}
_NEW_EDGE = 1e-6  # weight of an edge that was not there when the weights were fitted


@dataclass(frozen=True, slots=True)
class Edge:
    """Why one song may follow another: words, and how probable the walk holds it."""

    reason: str
    probability: float


@dataclass(frozen=True, slots=True)
class DrawnPlaylist:
    """A drawn list and, for each song, the edge it was reached by (the first: the edge it was drawn from)."""

    songs: tuple[Song, ...]
    edges: tuple[Edge | None, ...]
    note: str = ""

    @property
    def duration_s(self) -> float:
        """Length of the whole list in seconds."""
        return sum(song.duration_s for song in self.songs)


def _family(name: str) -> str:
    return name.split(":", 1)[0].split("-", 1)[0]


def _build(snapshot: Snapshot) -> Hypergraph:
    songs = snapshot.indexed
    return build_edges(
        len(songs),
        clusters=snapshot.clusters,
        artists=[song.artist for song in songs],
        tags=[[tag for tag, _ in snapshot.tags.get(song.id, ())] for song in songs],
        years=[song.year for song in songs],
    )


def _default_weights(names: Sequence[str]) -> npt.NDArray[np.float64]:
    """Weights by family, equal within one, for a library without playlists."""
    families = [_family(name) for name in names]
    counts = {family: families.count(family) for family in set(families)}
    weights = np.array([_SHARES[family] / counts[family] for family in families])
    return weights / weights.sum()


def _rows(snapshot: Snapshot) -> list[list[int]]:
    """The library's playlists as rows; songs without a vector are passed over."""
    playlists = snapshot.library.playlists()
    row_of = snapshot.row_of if playlists else {}  # which reads every song
    lists = ([row_of[i] for i in p.song_ids if i in row_of] for p in playlists)
    return [rows for rows in lists if len(rows) > 1]


def fit_walk(library: Library, model_id: str) -> None:
    """Fit the walk's weights on the library's playlists and keep them beside a model."""
    snapshot = take_snapshot(library, model_id)
    if snapshot.record is None:
        return
    playlists = _rows(snapshot)
    if not playlists:
        return
    hypergraph = _build(snapshot)
    model = PlaylistModel(hypergraph).fit(playlists)
    folder = library.models.path(snapshot.record.id)
    save_walk(folder, hypergraph.names, model.weights_, len(playlists))


class Walk:
    """Draws playlists from a library as it stands.

    Parameters
    ----------
    snapshot : Snapshot

    Attributes
    ----------
    n_playlists : int
        Playlists the weights were fitted on; 0 when they are the defaults by family.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.n_playlists = 0
        self._model: PlaylistModel | None = None
        if not snapshot.indexed or snapshot.record is None:
            return
        hypergraph = _build(snapshot)
        fitted, self.n_playlists = load_walk(snapshot.library.models.path(snapshot.record.id))
        if fitted:
            weights = np.array([fitted.get(name, _NEW_EDGE) for name in hypergraph.names])
        else:
            weights = _default_weights(hypergraph.names)
        self._model = PlaylistModel(hypergraph, weights=weights / weights.sum())

    def _with_surprise(self, surprise: float) -> PlaylistModel:
        """The model with the weight of "anywhere" scaled; 1 leaves it as it was fitted."""
        model = self._needed()
        uniform = model.hypergraph.uniform_edge
        if surprise == 1.0 or uniform is None:
            return model
        weights = np.array(model.weights_)
        # never 0: a song that shares no edge with an allowed song has to go on somewhere
        weights[uniform] *= max(surprise, 1e-6)
        return PlaylistModel(model.hypergraph, weights=weights / weights.sum())

    def _needed(self) -> PlaylistModel:
        if self._model is None:
            raise NotFoundError("there are no songs to make a playlist of: add a folder first.")
        return self._model

    def draw(
        self,
        length: int,
        *,
        first: int | None = None,
        keep: Sequence[int] = (),
        exclude: Sequence[int] = (),
        spacing: int = ARTIST_SPACING,
        surprise: float = SURPRISE,
        random_state: int | None = None,
    ) -> DrawnPlaylist:
        """Draw a playlist of `length` songs.

        Parameters
        ----------
        length : int
        first : int, optional
            Id of the first song; drawn like the others by default.
        keep : sequence of int
            Ids of songs that already stand; the walk goes on after them.
        exclude : sequence of int
            Ids of songs that must not come.
        spacing : int
            How many songs must lie between two of one artist (fewer where the collection has fewer artists).
        surprise : float in [0, 1]
            How freely a step may go anywhere in the collection: 1 as often as in the playlists the weights
            were fitted on, 0 only where nothing else leads on.
        random_state : int, optional

        Raises
        ------
        NotFoundError
            If the library has no songs, or none of this id.
        ValueError
            If `surprise` is out of range.
        """
        if not 0.0 <= surprise <= 1.0:
            raise ValueError(f"surprise={surprise} should be between 0 and 1.")
        model = self._with_surprise(surprise)
        songs = self.snapshot.indexed
        artists = [song.group for song in songs]
        fixed = [self._row(i) for i in keep] or ([self._row(first)] if first is not None else [])
        drawn = model.generate(
            length,
            prefix=fixed,
            groups=artists,
            spacing=min(spacing, max(0, len(set(artists)) - 1)),
            exclude=[self.snapshot.row_of[i] for i in exclude if i in self.snapshot.row_of],
            random_state=random_state,
        )
        steps = [
            *([drawn.opening] if drawn.opening else [None] * min(1, len(drawn.songs))),
            *drawn.transitions,
        ]
        edges = tuple(step and Edge(step.reason, step.probability) for step in steps)
        return DrawnPlaylist(tuple(songs[row] for row in drawn.songs), edges, drawn.note)

    def explain(
        self, song_ids: Sequence[int], taken: Mapping[tuple[int, int], Edge] | None = None
    ) -> DrawnPlaylist:
        """A list as it stands: each transition with the edge that was taken, or the likeliest one.

        Parameters
        ----------
        song_ids : sequence of int
        taken : mapping of (song id, next song id) to Edge, optional
            Edges that the walk took, for pairs that still follow each other.
        """
        model = self._needed()
        rows = [self._row(i) for i in song_ids]
        edges: list[Edge | None] = [None] * min(1, len(rows))
        for here, there in pairwise(range(len(rows))):
            known = (taken or {}).get((song_ids[here], song_ids[there]))
            likeliest = model.explain(rows[here], rows[there])
            edges.append(known or Edge(likeliest.reason, likeliest.probability))
        return DrawnPlaylist(tuple(self.snapshot.indexed[row] for row in rows), tuple(edges))

    def reasons(self, song_id: int, next_id: int) -> list[Edge]:
        """All that can have led from one song to another, likeliest first; probabilities sum to 1."""
        common = self._needed().transition_edges(self._row(song_id), self._row(next_id))
        return [Edge(describe_edge(name), probability) for _, name, probability in common]

    def _row(self, song_id: int) -> int:
        row = self.snapshot.row_of.get(song_id)
        if row is None:
            raise NotFoundError(f"song {song_id} is not in this library, or has not been compared yet.")
        return row
