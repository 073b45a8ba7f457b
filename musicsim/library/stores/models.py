"""Where similarity models and the vectors of songs under them are kept.

The store knows a model as a folder, its numbers and its rows; what the numbers mean is the
explorer's business. Rows are written to the arrays first and counted in the database after, in one
transaction: a kill between the two leaves bytes that nobody reads.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from musicsim._arrays import Float32Array, Int64Array
from musicsim.errors import LibraryError, ModelError, NotFoundError
from musicsim.library.db import schema
from musicsim.library.db.cache import Archive, Kept
from musicsim.library.db.changes import ChangeLog, Changes
from musicsim.library.db.database import Tables, Write
from musicsim.library.disk.arrays import RowFile

MAX_NAME = 60
NATIVE_KIND, CODEWORDS_KIND = "native", "codewords"
BUILT_IN = (NATIVE_KIND, CODEWORDS_KIND)
"""Kinds of the models that every library has; there is one of each."""
_MIN_KEPT = 50_000  # songs: the rows of fewer are read in a tenth of a second
_MODELS_HELD = 8


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A stored model."""

    id: str
    name: str
    created_at: float
    n_songs_fitted: int
    n_features: int
    n_dimensions: int
    is_active: bool = False
    is_complete: bool = False
    kind: str = NATIVE_KIND  # one of BUILT_IN; others are the explorer's business
    base_id: str | None = None  # the model whose features it shares; None when it keeps its own
    settings: dict[str, Any] = field(default_factory=dict)  # JSON values: how to make it again
    is_retired: bool = False  # replaced or deleted, and kept only because other models share its features

    @property
    def features_of(self) -> str:
        """The id of the model that keeps its features."""
        return self.base_id or self.id


@dataclass(frozen=True, slots=True)
class Vectors:
    """Rows of all songs under one model, in the order in which they were added."""

    model_id: str
    song_ids: Int64Array  # (n_songs,)
    X: Float32Array  # (n_songs, n_dimensions), a read-only memory map


@dataclass(frozen=True, slots=True)
class SongRows:
    """Where the vectors and features of songs under one model lie; 16 bytes a song."""

    song_ids: Int64Array  # (n_songs,)
    # (n_songs,), ascending: rows of the files; what is left out are songs that have been forgotten
    rows: Int64Array


class ModelStore(Tables):
    """Models of one library."""

    def __init__(
        self, folder: Path, engine: sa.Engine, write: Write, log: ChangeLog, revision: Callable[[], int]
    ) -> None:
        super().__init__(engine, write)
        self.folder, self._log, self._revision = folder, log, revision
        self._listed: tuple[int, list[ModelRecord], dict[str, int]] = (-1, [], {})
        self._song_rows: dict[str, Kept[SongRows]] = {}

    def path(self, model_id: str) -> Path:
        """The folder of a model; raises LibraryError for an id that leads elsewhere: folders are deleted, too."""
        if model_id in ("", ".", "..") or "/" in model_id or "\0" in model_id:
            raise LibraryError(f"{self.folder}: the model {model_id!r} is not the name of a folder. Restore a backup.")
        return self.folder / model_id

    def all(self, *, retired: bool = False) -> list[ModelRecord]:
        """Every model that is finished, oldest first; retired ones only if asked for."""
        return [r for r in self._list()[0] if r.is_complete and (retired or not r.is_retired)]

    def _list(self) -> tuple[list[ModelRecord], dict[str, int]]:
        """All models, and the rows of those of which they are known; read once a revision."""
        revision = self._revision()
        if self._listed[0] != revision:
            rows = self._rows(sa.select(schema.models).order_by(schema.models.c.created_at))
            self._listed = (revision, [ModelRecord(*row) for row in rows], {})
        return self._listed[1:]

    def active(self) -> ModelRecord | None:
        """The model in use, None before the first was fitted."""
        return next((record for record in self.all() if record.is_active), None)

    def native(self) -> ModelRecord | None:
        """The model that no listener has taught anything, None before it was fitted."""
        return self._built_in(NATIVE_KIND)

    def codewords(self) -> ModelRecord | None:
        """The model of codewords, None before it was fitted."""
        return self._built_in(CODEWORDS_KIND)

    def _built_in(self, kind: str) -> ModelRecord | None:
        return next((record for record in self.all() if record.kind == kind), None)

    def get(self, model_id: str | None = None) -> ModelRecord:
        """A model by id; without one, the active model. Raises NotFoundError if there is none."""
        if model_id is None:
            record = self.active()
            if record is None:
                raise NotFoundError("this library has no similarity model yet: add some songs first.")
            return record
        found = next((record for record in self._list()[0] if record.id == model_id), None)
        if found is None:
            raise NotFoundError(f"there is no model {model_id!r} in this library.")
        return found

    def named(self, name: str) -> ModelRecord:
        """A model by its name, or by its id. Raises NotFoundError: it lists the names there are."""
        models = self.all()
        found = next((m for m in models if m.name == name), None)
        found = found or next((m for m in models if m.id == name), None)
        if found is None:
            names = ", ".join(repr(m.name) for m in models) or "none yet"
            raise NotFoundError(f"there is no model {name!r} in this library. There are: {names}.")
        return found

    def register(self, record: ModelRecord) -> None:
        """Enter a model that is not finished: rows can be added, nobody uses it yet.

        Raises LibraryError if it is to have the name of a built-in model and is none.
        """
        taken = {other.name for other in self.all() if other.kind in BUILT_IN}
        if record.name in taken and record.kind not in BUILT_IN:
            raise LibraryError(f"{record.name!r} is the name of a built-in model: choose another one.")
        with self._write() as connection:
            connection.execute(schema.models.insert().values(**asdict(record)))

    def finish(self, model_id: str, *, activate: bool = False) -> None:
        """Let a model with all its rows be used; one of the same name is replaced by it, in use or not.

        With `activate` it is put into use even if the one that it replaces was not.
        """
        m = schema.models.c
        name = self.get(model_id).name
        with self._write() as connection:
            same = (m.name == name, m.id != model_id, m.is_complete, m.is_retired.is_(False))
            replaced = connection.execute(sa.select(m.id, m.is_active).where(*same)).all()
            activate = activate or any(row.is_active for row in replaced)
            for row in replaced:
                self._remove(connection, row.id)
            connection.execute(schema.models.update().where(m.id == model_id).values(is_complete=True))
            if activate:
                self._activate(connection, model_id)

    def activate(self, model_id: str) -> None:
        """Put a finished model into use."""
        self.get(model_id)
        with self._write() as connection:
            self._activate(connection, model_id)

    @staticmethod
    def _activate(connection: sa.Connection, model_id: str) -> None:
        m = schema.models.c
        connection.execute(schema.models.update().values(is_active=m.id == model_id))

    def rename(self, model_id: str, name: str) -> None:
        """Give a model another name.

        Raises LibraryError if the name is empty, too long or taken, or the model is built in.
        """
        name = " ".join(name.split())
        if self.get(model_id).kind in BUILT_IN:
            raise LibraryError("the built-in models cannot be renamed: rename the models you made.")
        if not 0 < len(name) <= MAX_NAME:
            raise LibraryError(f"a model's name should have 1 to {MAX_NAME} letters, not {len(name)}.")
        if any(other.name == name and other.id != model_id for other in self.all()):
            raise LibraryError(f"{name!r} is the name of another model: choose another one.")
        with self._write() as connection:
            connection.execute(schema.models.update().where(schema.models.c.id == model_id).values(name=name))

    def delete(self, model_id: str) -> None:
        """Forget a model; when it was in use, the native one is from now on.

        Raises LibraryError if it is a built-in model.
        """
        record = self.get(model_id)
        if record.kind in BUILT_IN:
            raise LibraryError("the built-in models cannot be deleted: the others are built on them.")
        native = self.native()
        with self._write() as connection:
            is_gone = self._remove(connection, model_id)
            if record.is_active and native is not None:
                self._activate(connection, native.id)
        if is_gone:
            shutil.rmtree(self.path(model_id), ignore_errors=True)
        self._sweep(keep_unfinished=True)

    @staticmethod
    def _remove(connection: sa.Connection, model_id: str) -> bool:
        """Delete a model, or retire it while others share its features; True when it is gone."""
        m = schema.models.c
        shared = connection.scalar(sa.select(sa.func.count()).where(m.base_id == model_id))
        which = schema.models.update().where(m.id == model_id)
        if shared:
            connection.execute(which.values(is_retired=True, is_active=False))
        else:
            connection.execute(schema.models.delete().where(m.id == model_id))
        return not shared

    def discard_unfinished(self) -> None:
        """Forget models whose fit was cut off or that nobody needs, and folders that the database does not know.

        For the one process that changes the library: another one may be making a model.
        """
        self._sweep(keep_unfinished=False)
        for folder in self.orphans():
            shutil.rmtree(folder, ignore_errors=True)

    def orphans(self) -> list[Path]:
        """Folders of models that are not finished, or that the database does not know."""
        known = {record.id for record in self._list()[0] if record.is_complete}
        folders = self.folder.iterdir() if self.folder.exists() else ()
        return [folder for folder in folders if folder.is_dir() and folder.name not in known]

    def _sweep(self, *, keep_unfinished: bool) -> None:
        """Forget retired models that nobody needs, and unless they are kept those that are not finished."""
        records = self._list()[0]
        needed = {r.base_id for r in records if r.is_complete or keep_unfinished}
        gone = [r.id for r in records if r.is_retired and r.id not in needed]
        gone += [] if keep_unfinished else [r.id for r in records if not r.is_complete]
        if gone:
            with self._write() as connection:
                connection.execute(schema.models.delete().where(schema.models.c.id.in_(gone)))
        for model_id in gone:
            shutil.rmtree(self.path(model_id), ignore_errors=True)

    def append(
        self, model_id: str, song_ids: Sequence[int], features: Float32Array | None, vectors: Float32Array
    ) -> None:
        """Add the rows of songs to a model: all of them or none; `features` of one that shares them are None.

        Raises ModelError if the rows that it has are gone from its files, or some of them.
        """
        record = self.get(model_id)
        with self._write() as connection:
            # inside the transaction, so that two writers cannot take the same rows
            start = _n_rows(connection, model_id)
            added = [] if features is None else [(self._feature_file(record), features)]
            added.append((self._vector_file(record), vectors))
            for file, _ in added:
                _read_rows(record, file, start)  # what is added to a file that was cut off has zeros before it
            for file, block in added:
                file.append(block, start)
            rows = [{"model_id": model_id, "row": row, "song_id": int(i)} for row, i in enumerate(song_ids, start)]
            connection.execute(schema.vectors.insert(), rows)

    def _feature_file(self, record: ModelRecord) -> RowFile:
        return RowFile(self.path(record.id) / "histograms.f32", record.n_features)

    def _vector_file(self, record: ModelRecord) -> RowFile:
        return RowFile(self.path(record.id) / "vectors.f32", record.n_dimensions)

    def row_bytes(self, record: ModelRecord) -> dict[Path, int]:
        """The files of a model that grow, and how many of their bytes count."""
        files = [self._vector_file(record), *([] if record.base_id else [self._feature_file(record)])]
        with self._engine.connect() as connection:
            n_rows = _n_rows(connection, record.id)
        return {file.path: n_rows * file.width * 4 for file in files}

    def is_whole(self, record: ModelRecord) -> bool:
        """Whether the vectors of a model are all there: somebody may have deleted its files, or a disk lost them."""
        n_rows = self._list()[1]
        if record.id not in n_rows:
            with self._engine.connect() as connection:
                n_rows[record.id] = _n_rows(connection, record.id)
        return self._vector_file(record).holds(n_rows[record.id])

    def song_rows(self, model_id: str) -> SongRows:
        """The rows of a model; the very same object until rows come or go.

        The first time 2 s for a million songs; from 50,000 songs on they are kept in ``rows.npz`` beside the model
        from one process to the next.
        """
        keeper = self._song_rows.pop(model_id, None) or self._keeper(model_id)
        self._song_rows[model_id] = keeper  # the one used last stands last
        for other in list(self._song_rows)[:-_MODELS_HELD]:
            self._song_rows.pop(other, None)
        return keeper.get()

    def _keeper(self, model_id: str) -> Kept[SongRows]:
        def read(connection: sa.Connection, after: int = -1) -> SongRows:
            v = schema.vectors.c
            query = sa.select(v.row, v.song_id).where(v.model_id == model_id, v.row > after).order_by(v.row)
            found = chain.from_iterable(connection.execute(query))
            pairs = np.fromiter(found, dtype=np.int64).reshape(-1, 2)
            return SongRows(pairs[:, 1].copy(), pairs[:, 0].copy())

        def update(connection: sa.Connection, known: SongRows, changes: Changes) -> SongRows | None:
            if model_id in changes.shrunk:
                return None
            if model_id not in changes.grown:
                return known
            new = read(connection, int(known.rows[-1]) if len(known.rows) else -1)
            return SongRows(np.concatenate([known.song_ids, new.song_ids]), np.concatenate([known.rows, new.rows]))

        archive = Archive(
            self.path(model_id) / "rows.npz",
            lambda known: {"song_ids": known.song_ids, "rows": known.rows},
            lambda arrays: SongRows(arrays["song_ids"], arrays["rows"]),
            lambda known: len(known.rows) >= _MIN_KEPT,
        )
        return Kept(self._engine, self._log, read, update, archive)

    def vector_file(self, model_id: str, known: SongRows) -> Float32Array:
        """A model's file of vectors up to the last row that is known, a read-only memory map.

        Raises ModelError if the file is gone, or cut off.
        """
        record = self.get(model_id)
        return _known_rows(record, self._vector_file(record), known)

    def vectors(self, model_id: str | None = None) -> Vectors:
        """Vectors under a model (the active one by default); raises as :meth:`vector_file`."""
        record = self.get(model_id)
        return self._read(record, self._vector_file(record))

    def features(self, model_id: str | None = None) -> Vectors:
        """Features under a model (the active one by default): codeword histograms, or what it has instead.

        Raises ModelError if their file is gone, or cut off.
        """
        owner = self.get(self.get(model_id).features_of)
        return self._read(owner, self._feature_file(owner))

    def feature_file(self, model_id: str) -> tuple[SongRows, Float32Array]:
        """The rows of the features of a model and their file, a read-only memory map; raises as :meth:`features`."""
        owner = self.get(self.get(model_id).features_of)
        known = self.song_rows(owner.id)
        return known, _known_rows(owner, self._feature_file(owner), known)

    def _read(self, record: ModelRecord, file: RowFile) -> Vectors:
        known = self.song_rows(record.id)
        X = _known_rows(record, file, known)
        # rows of songs that were deleted stay in the file, unread
        return Vectors(record.id, known.song_ids, X if len(X) == len(known.rows) else X[known.rows])


def _n_rows(connection: sa.Connection, model_id: str) -> int:
    v = schema.vectors.c
    last = connection.scalar(sa.select(sa.func.max(v.row)).where(v.model_id == model_id))
    return 0 if last is None else int(last) + 1


def _known_rows(record: ModelRecord, file: RowFile, known: SongRows) -> Float32Array:
    return _read_rows(record, file, int(known.rows[-1]) + 1 if len(known.rows) else 0)


def _read_rows(record: ModelRecord, file: RowFile, n_rows: int) -> Float32Array:
    try:
        return file.read(n_rows)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"the files of the model {record.name!r} are gone or damaged ({file.path}): choose another "
            "model, or refit this one."
        ) from error
