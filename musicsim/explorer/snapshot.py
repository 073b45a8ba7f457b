"""A library as it stands at one revision, in memory: what pages, command line and interface ask.

Loaded piece by piece when first asked for, never changed: a new revision makes a new snapshot.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from musicsim.explorer.artifacts import load_clusters, load_map
from musicsim.explorer.same_sound import folded
from musicsim.library import Library, Song
from musicsim.library.model_store import ModelRecord, Vectors

if TYPE_CHECKING:  # scikit-learn and numba take seconds to import: only once a song is searched with
    from musicsim.explorer.similarity_model import SimilarityModel
    from musicsim.search import ExactIndex, MutualProximity

__all__ = ["Snapshot", "snapshot_under", "take_snapshot"]


@dataclass(frozen=True)
class Snapshot:
    """Songs, model, vectors, clusters and map of one revision.

    Arrays are aligned with :attr:`indexed`, the songs that have a vector. Memory: 0.6 kB a song and
    the index's norms; vectors stay on the disk until they are touched.
    """

    library: Library
    revision: int
    model_id: str | None = None
    """None for the model in use."""

    @cached_property
    def songs(self) -> list[Song]:
        """All songs, by id."""
        return self.library.songs()

    @cached_property
    def by_id(self) -> dict[int, Song]:
        """Songs by their id."""
        return {song.id: song for song in self.songs}

    @cached_property
    def same_as(self) -> dict[int, int]:
        """The song that stands for a song with the same sound, by id; only songs that another one stands for."""
        return folded(self.songs, self.library.duplicates.pairs())

    @cached_property
    def tags(self) -> dict[int, list[tuple[str, float]]]:
        """Tags with weights by song id, heaviest first."""
        return self.library.tags()

    @cached_property
    def record(self) -> ModelRecord | None:
        """The model it is seen under."""
        return self.library.models.get(self.model_id) if self.model_id else self.library.models.active()

    @cached_property
    def model(self) -> "SimilarityModel | None":
        """The model, loaded."""
        from musicsim.explorer.similarity_model import SimilarityModel

        return SimilarityModel.load(self.library.models.path(self.record.id)) if self.record else None

    @cached_property
    def _vectors(self) -> Vectors | None:
        return self.library.vectors(self.record.id) if self.record else None

    @cached_property
    def _shown(self) -> npt.NDArray[np.bool_]:
        """Which rows of the vectors are songs that are here and that no other song stands for."""
        ids = self._vectors.song_ids.tolist() if self._vectors else []
        return np.array([i in self.by_id and i not in self.same_as for i in ids], dtype=bool)

    @cached_property
    def indexed(self) -> list[Song]:
        """Songs with a vector, in the order of the vectors' rows; songs with the same sound once."""
        if self._vectors is None:
            return []
        return [self.by_id[i] for i in self._vectors.song_ids[self._shown].tolist()]

    @cached_property
    def X(self) -> npt.NDArray[np.float32]:  # noqa: N802  # the name of the field
        """Vectors of :attr:`indexed`, float32 (n_indexed, n_dimensions)."""
        if self._vectors is None:
            return np.empty((0, 0), dtype=np.float32)
        return self._vectors.X if self._shown.all() else self._vectors.X[self._shown]

    @cached_property
    def index(self) -> "ExactIndex":
        """Nearest neighbours among :attr:`X`."""
        from musicsim.search import ExactIndex

        return ExactIndex().fit(self.X)

    @cached_property
    def proximity(self) -> "MutualProximity":
        """What the songs of :attr:`X` find usual as a distance; 0.3 s for 100 000 songs."""
        from musicsim.search import MutualProximity

        return MutualProximity().fit(self.X)

    @cached_property
    def row_of(self) -> dict[int, int]:
        """Row of a song id in the arrays; a song that another one stands for has the row of that one."""
        rows = {song.id: row for row, song in enumerate(self.indexed)}
        return rows | {i: rows[other] for i, other in self.same_as.items() if other in rows}

    @cached_property
    def clusters(self) -> dict[str, npt.NDArray[np.int64]]:
        """Cluster labels (n_indexed,) by the number of clusters ("16", "64", ...); -1 for none yet."""
        if self.record is None:
            return {}
        ids, labels = load_clusters(self.library.models.path(self.record.id))
        return {name: self._aligned(ids, values, -1) for name, values in labels.items()}

    @cached_property
    def map(self) -> npt.NDArray[np.float32]:
        """Places on the map, float32 (n_indexed, 2), nan where a song has none yet."""
        if self.record is None:
            return np.empty((0, 2), dtype=np.float32)
        ids, places = load_map(self.library.models.path(self.record.id))
        return self._aligned(ids, places, np.nan)

    def _aligned(self, ids: npt.NDArray[np.int64], values: npt.NDArray, missing: float) -> npt.NDArray:
        """Rows of `values`, one a song id, in the order of :attr:`indexed`."""
        aligned = np.full((len(self.indexed), *values.shape[1:]), missing, dtype=values.dtype)
        for song_id, value in zip(ids.tolist(), values, strict=True):
            row = self.row_of.get(song_id)
            if row is not None:
                aligned[row] = value
        return aligned


def take_snapshot(library: Library, model_id: str | None = None) -> Snapshot:
    """The library as it stands, under the model in use or another one."""
    return Snapshot(library, library.revision, model_id)


def snapshot_under(library: Library, model: str | None) -> Snapshot:
    """The library as it stands, under the model of a name; None for the one in use.

    Raises
    ------
    NotFoundError
        If there is no model of the name.
    """
    return take_snapshot(library, library.models.named(model).id if model else None)
