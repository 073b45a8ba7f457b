"""Where similarity models and the vectors of songs under them are kept.

The store knows a model as a folder, its numbers and its rows; what the numbers mean is the
explorer's business. Rows are written to the arrays first and counted in the database after, in one
transaction: a kill between the two leaves bytes that nobody reads.
"""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from musicsim.errors import NotFoundError
from musicsim.library import schema
from musicsim.library.arrays import RowFile
from musicsim.library.database import Write

__all__ = ["ModelRecord", "ModelStore", "Vectors"]


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A stored model."""

    id: str
    name: str
    created_at: float
    n_songs_fitted: int
    n_codewords: int
    n_dimensions: int
    is_active: bool = False
    is_complete: bool = False


@dataclass(frozen=True, slots=True)
class Vectors:
    """Rows of all songs under one model, in the order in which they were added.

    Attributes
    ----------
    song_ids : int64 ndarray of shape (n_songs,)
    X : float32 ndarray of shape (n_songs, n_dimensions), a read-only memory map
    """

    model_id: str
    song_ids: npt.NDArray[np.int64]
    X: npt.NDArray[np.float32]


class ModelStore:
    """Models of one library."""

    def __init__(
        self,
        folder: Path,
        engine: sa.Engine,
        write: Write,
    ) -> None:
        self.folder, self._engine, self._write = folder, engine, write

    def path(self, model_id: str) -> Path:
        """The folder of a model."""
        return self.folder / model_id

    def all(self) -> list[ModelRecord]:
        """Every model that was finished, oldest first."""
        return [record for record in self._records() if record.is_complete]

    def _records(self) -> list[ModelRecord]:
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(schema.models).order_by(schema.models.c.created_at)).all()
        return [ModelRecord(*row) for row in rows]

    def active(self) -> ModelRecord | None:
        """The model in use, None before the first was fitted."""
        return next((record for record in self.all() if record.is_active), None)

    def get(self, model_id: str | None = None) -> ModelRecord:
        """A model by id; without one, the active model.

        Raises
        ------
        NotFoundError
        """
        if model_id is None:
            record = self.active()
            if record is None:
                raise NotFoundError("this library has no similarity model yet: add some songs first.")
            return record
        for record in self._records():
            if record.id == model_id:
                return record
        raise NotFoundError(f"there is no model {model_id!r} in this library.")

    def register(self, record: ModelRecord) -> None:
        """Enter a model that is not finished: rows can be added, nobody uses it yet."""
        with self._write() as connection:
            connection.execute(schema.models.insert().values(**asdict(record)))

    def activate(self, model_id: str) -> None:
        """Put a model with all its rows into use; one of the same name is replaced by it."""
        m = schema.models.c
        name = self.get(model_id).name
        with self._write() as connection:
            connection.execute(schema.models.delete().where(m.name == name, m.id != model_id))
            connection.execute(schema.models.update().values(is_active=False))
            connection.execute(
                schema.models.update().where(m.id == model_id).values(is_active=True, is_complete=True)
            )

    def discard_unfinished(self) -> None:
        """Forget models whose fit was cut off, and delete folders that the database does not know."""
        if any(not record.is_complete for record in self._records()):
            with self._write() as connection:
                connection.execute(schema.models.delete().where(~schema.models.c.is_complete))
        known = {record.id for record in self._records()}
        for folder in self.folder.iterdir() if self.folder.exists() else ():
            if folder.is_dir() and folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)

    def append(
        self,
        model_id: str,
        song_ids: Sequence[int],
        histograms: npt.NDArray[np.float32],
        vectors: npt.NDArray[np.float32],
    ) -> None:
        """Add the rows of songs to a model: all of them or none."""
        record = self.get(model_id)
        with self._write() as connection:
            # inside the transaction, so that two writers cannot take the same rows
            last = connection.scalar(
                sa.select(sa.func.max(schema.vectors.c.row)).where(schema.vectors.c.model_id == model_id)
            )
            start = 0 if last is None else last + 1
            self._histograms(record).append(histograms, start)
            self._vectors(record).append(vectors, start)
            connection.execute(
                schema.vectors.insert(),
                [
                    {"model_id": model_id, "row": start + i, "song_id": int(song_id)}
                    for i, song_id in enumerate(song_ids)
                ],
            )

    def _histograms(self, record: ModelRecord) -> RowFile:
        return RowFile(self.path(record.id) / "histograms.f32", record.n_codewords)

    def _vectors(self, record: ModelRecord) -> RowFile:
        return RowFile(self.path(record.id) / "vectors.f32", record.n_dimensions)

    def _read(self, record: ModelRecord, file: RowFile) -> Vectors:
        v = schema.vectors.c
        query = sa.select(v.row, v.song_id).where(v.model_id == record.id).order_by(v.row)
        with self._engine.connect() as connection:
            pairs = np.array(connection.execute(query).all(), dtype=np.int64).reshape(-1, 2)
        rows, ids = pairs[:, 0], pairs[:, 1]
        X = file.read(int(rows[-1]) + 1 if len(rows) else 0)
        # rows of songs that were deleted stay in the file, unread
        return Vectors(record.id, ids, X if len(X) == len(rows) else X[rows])

    def vectors(self, model_id: str | None = None) -> Vectors:
        """Vectors under a model (the active one by default)."""
        record = self.get(model_id)
        return self._read(record, self._vectors(record))

    def histograms(self, model_id: str | None = None) -> Vectors:
        """Codeword histograms under a model (the active one by default)."""
        record = self.get(model_id)
        return self._read(record, self._histograms(record))
