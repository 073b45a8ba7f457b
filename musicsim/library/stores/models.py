"""Similarity models, and the vectors and features that songs have in them: folders of arrays for the explorer.

Rows are written to the arrays before they are listed in the database, so bytes left by a killed process are never read.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from musicsim._arrays import Float32Array, Int64Array
from musicsim.errors import LibraryError, ModelError, NotFoundError
from musicsim.library.db import Archive, CachedValue, Changes, Tables, Write, schema
from musicsim.library.disk.arrays import RowFile

MAX_NAME = 60
NATIVE_KIND = "native"
CODEWORDS_KIND = "codewords"
BUILT_IN = (NATIVE_KIND, CODEWORDS_KIND)
"""Kinds of the built-in models; every library has one model of each kind."""
MIN_ARCHIVED = 50_000  # minimum number of songs for a cache file; reading fewer rows takes only a tenth of a second
_MAX_IN_MEMORY = 8  # models


@dataclass(frozen=True, slots=True)
class ModelRecord:
    id: str
    name: str
    created_at: float
    n_songs_fitted: int
    n_features: int
    n_dimensions: int
    is_active: bool = False
    is_complete: bool = False
    kind: str = NATIVE_KIND  # one of BUILT_IN, or a kind that the explorer defines
    base_id: str | None = None  # the model whose features it shares; None if it has its own
    settings: dict[str, Any] = field(default_factory=dict)  # JSON values from which the model can be refitted
    is_retired: bool = False  # True for a replaced or deleted model that is kept only because others share its features

    @property
    def features_of(self) -> str:
        """Id of the model that stores its features."""
        return self.base_id or self.id


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors of all songs in one model, in the order in which they were added."""

    model_id: str
    song_ids: Int64Array  # (n_songs,)
    X: Float32Array  # (n_songs, n_dimensions), a read-only memory map


@dataclass(frozen=True, slots=True)
class SongRows:
    """The row of each song in one model's files; 16 bytes per song."""

    song_ids: Int64Array  # (n_songs,)
    rows: Int64Array  # (n_songs,), ascending; rows of deleted songs are missing


class ModelStore(Tables):
    def __init__(self, folder: Path, engine: sa.Engine, write: Write, revision: Callable[[], int]) -> None:
        super().__init__(engine, write)
        self.folder, self._revision = folder, revision
        self._cache: tuple[int, list[ModelRecord], dict[str, int]] = (-1, [], {})
        self._rows_of = lru_cache(_MAX_IN_MEMORY)(self._cache_rows)

    def path(self, model_id: str) -> Path:
        """Return a model's folder, which callers may delete. Raises LibraryError if the id points outside `folder`."""
        if model_id in ("", ".", "..") or "/" in model_id or "\0" in model_id:
            raise LibraryError(f"{self.folder}: the model {model_id!r} is not the name of a folder. Restore a backup.")
        return self.folder / model_id

    def all(self, *, retired: bool = False) -> list[ModelRecord]:
        """Return all finished models, oldest first; `retired` includes retired ones."""
        return [r for r in self._records()[0] if r.is_complete and (retired or not r.is_retired)]

    def _records(self) -> tuple[list[ModelRecord], dict[str, int]]:
        """Return all models, and the known row counts, keyed by model id; read once per revision."""
        revision = self._revision()
        if self._cache[0] != revision:
            rows = self._rows(sa.select(schema.models).order_by(schema.models.c.created_at))
            self._cache = (revision, [ModelRecord(*row) for row in rows], {})
        return self._cache[1:]

    def active(self) -> ModelRecord | None:
        """Return the model in use; None before the first fit."""
        return next((record for record in self.all() if record.is_active), None)

    def native(self) -> ModelRecord | None:
        """Return the built-in model Sound; None before it is fitted."""
        return next((record for record in self.all() if record.kind == NATIVE_KIND), None)

    def codewords(self) -> ModelRecord | None:
        """Return the built-in model Codewords; None before it is fitted."""
        return next((record for record in self.all() if record.kind == CODEWORDS_KIND), None)

    def get(self, model_id: str | None = None) -> ModelRecord:
        """Return a model by id; by default, the active one. Raises NotFoundError if it does not exist."""
        if model_id is None:
            record = self.active()
            if record is None:
                raise NotFoundError("this library does not have a similarity model yet: add some songs first.")
            return record
        record = next((record for record in self._records()[0] if record.id == model_id), None)
        if record is None:
            raise NotFoundError(f"this library does not have a model {model_id!r}.")
        return record

    def find(self, name: str) -> ModelRecord:
        """Find a model by its name first, then by its id. Raises NotFoundError, which lists the names."""
        models = self.all()
        for record in (*(m for m in models if m.name == name), *(m for m in models if m.id == name)):
            return record
        names = ", ".join(repr(m.name) for m in models) or "none yet"
        raise NotFoundError(f"this library does not have a model {name!r}. It has: {names}.")

    def register(self, record: ModelRecord) -> None:
        """Store an unfinished model. Raises LibraryError if it has a built-in model's name but is not built in."""
        reserved = {other.name for other in self.all() if other.kind in BUILT_IN}
        if record.name in reserved and record.kind not in BUILT_IN:
            raise LibraryError(f"{record.name!r} is the name of a built-in model: choose another name.")
        self._execute(schema.models.insert().values(**asdict(record)))

    def finish(self, model_id: str, *, activate: bool = False) -> None:
        """Finish a model and replace any other with the same name; `activate` is implied if that one was active."""
        m = schema.models.c
        name = self.get(model_id).name
        with self._write() as connection:
            same = (m.name == name, m.id != model_id, m.is_complete, m.is_retired.is_(False))
            replaced = connection.execute(sa.select(m.id, m.is_active).where(*same)).all()
            for row in replaced:
                self._remove(connection, row.id)
            connection.execute(schema.models.update().where(m.id == model_id).values(is_complete=True))
            if activate or any(row.is_active for row in replaced):
                self._activate(connection, model_id)

    def activate(self, model_id: str) -> None:
        self.get(model_id)
        with self._write() as connection:
            self._activate(connection, model_id)

    @staticmethod
    def _activate(connection: sa.Connection, model_id: str) -> None:
        m = schema.models.c
        connection.execute(schema.models.update().values(is_active=m.id == model_id))

    def rename(self, model_id: str, name: str) -> None:
        """Rename a model. Raises LibraryError if the name is empty, too long or taken, or the model is built in."""
        name = " ".join(name.split())
        if self.get(model_id).kind in BUILT_IN:
            raise LibraryError("built-in models cannot be renamed; only models that you made can.")
        if not 0 < len(name) <= MAX_NAME:
            raise LibraryError(f"a model's name must have 1 to {MAX_NAME} characters, not {len(name)}.")
        if any(other.name == name and other.id != model_id for other in self.all()):
            raise LibraryError(f"{name!r} is the name of another model: choose another name.")
        self._execute(schema.models.update().where(schema.models.c.id == model_id).values(name=name))

    def delete(self, model_id: str) -> None:
        """Delete a model; if it is active, activate the model Sound. Raises LibraryError if it is built in."""
        record = self.get(model_id)
        if record.kind in BUILT_IN:
            raise LibraryError("built-in models cannot be deleted, because other models are based on them.")
        native = self.native()
        with self._write() as connection:
            is_deleted = self._remove(connection, model_id)
            if record.is_active and native is not None:
                self._activate(connection, native.id)
        if is_deleted:
            shutil.rmtree(self.path(model_id), ignore_errors=True)
        self._sweep(keep_unfinished=True)

    @staticmethod
    def _remove(connection: sa.Connection, model_id: str) -> bool:
        """Delete a model, or retire it while others share its features; return whether it was deleted."""
        m = schema.models.c
        if connection.scalar(sa.select(sa.func.count()).where(m.base_id == model_id)):
            retire = schema.models.update().where(m.id == model_id)
            connection.execute(retire.values(is_retired=True, is_active=False))
            return False
        connection.execute(schema.models.delete().where(m.id == model_id))
        return True

    def discard_unfinished(self) -> None:
        """Delete unfinished models, unneeded retired models, and folders without a model; requires the writer lock."""
        self._sweep(keep_unfinished=False)
        for folder in self.orphans():
            shutil.rmtree(folder, ignore_errors=True)

    def orphans(self) -> list[Path]:
        """Return the folders of models that are unfinished or not in the database."""
        known = {record.id for record in self._records()[0] if record.is_complete}
        folders = self.folder.iterdir() if self.folder.exists() else ()
        return [folder for folder in folders if folder.is_dir() and folder.name not in known]

    def _sweep(self, *, keep_unfinished: bool) -> None:
        records = self._records()[0]
        needed = {r.base_id for r in records if r.is_complete or keep_unfinished}
        unneeded = [r.id for r in records if r.is_retired and r.id not in needed]
        unneeded += [] if keep_unfinished else [r.id for r in records if not r.is_complete]
        if unneeded:
            self._execute(schema.models.delete().where(schema.models.c.id.in_(unneeded)))
        for model_id in unneeded:
            shutil.rmtree(self.path(model_id), ignore_errors=True)

    def append(
        self, model_id: str, song_ids: Sequence[int], features: Float32Array | None, vectors: Float32Array
    ) -> None:
        """Add all rows or none; `features` is None if another model stores them. May raise ModelError."""
        record = self.get(model_id)
        with self._write() as connection:
            # inside the transaction, so that two writers cannot use the same rows
            start = _n_rows(connection, model_id)
            blocks = [] if features is None else [(self._feature_file(record), features)]
            blocks.append((self._vector_file(record), vectors))
            for file, _ in blocks:
                _read_rows(record, file, start)  # appending to a truncated file would leave zeros in the gap
            for file, block in blocks:
                file.append(block, start)
            rows = [{"model_id": model_id, "row": row, "song_id": int(i)} for row, i in enumerate(song_ids, start)]
            connection.execute(schema.vectors.insert(), rows)

    def _feature_file(self, record: ModelRecord) -> RowFile:
        return RowFile(self.path(record.id) / "histograms.f32", record.n_features)

    def _vector_file(self, record: ModelRecord) -> RowFile:
        return RowFile(self.path(record.id) / "vectors.f32", record.n_dimensions)

    def row_bytes(self, record: ModelRecord) -> dict[Path, int]:
        """Return the number of valid bytes in each growing file of a model."""
        files = [self._vector_file(record), *([] if record.base_id else [self._feature_file(record)])]
        with self._engine.connect() as connection:
            n_rows = _n_rows(connection, record.id)
        return {file.path: n_rows * file.width * 4 for file in files}

    def is_whole(self, record: ModelRecord) -> bool:
        """Return whether a model's vector file is complete, that is, neither missing nor truncated."""
        n_rows = self._records()[1]
        if record.id not in n_rows:
            with self._engine.connect() as connection:
                n_rows[record.id] = _n_rows(connection, record.id)
        return self._vector_file(record).holds(n_rows[record.id])

    def song_rows(self, model_id: str) -> SongRows:
        """Return a model's rows, as the same object until they change. The first call may take several seconds."""
        return self._rows_of(model_id).get()

    def _cache_rows(self, model_id: str) -> CachedValue[SongRows]:
        def read(connection: sa.Connection, after: int = -1) -> SongRows:
            v = schema.vectors.c
            query = sa.select(v.row, v.song_id).where(v.model_id == model_id, v.row > after).order_by(v.row)
            pairs = np.fromiter(chain.from_iterable(connection.execute(query)), dtype=np.int64).reshape(-1, 2)
            return SongRows(pairs[:, 1].copy(), pairs[:, 0].copy())

        def update(connection: sa.Connection, old: SongRows, changes: Changes) -> SongRows | None:
            if model_id in changes.shrunk:
                return None
            if model_id not in changes.grown:
                return old
            new = read(connection, int(old.rows[-1]) if len(old.rows) else -1)
            return SongRows(np.concatenate([old.song_ids, new.song_ids]), np.concatenate([old.rows, new.rows]))

        archive = Archive(
            self.path(model_id) / "rows.npz",
            lambda song_rows: {"song_ids": song_rows.song_ids, "rows": song_rows.rows},
            lambda arrays: SongRows(arrays["song_ids"], arrays["rows"]),
            lambda song_rows: len(song_rows.rows) >= MIN_ARCHIVED,
        )
        return CachedValue(self._engine, read, update, archive)

    def vector_file(self, model_id: str, known: SongRows) -> Float32Array:
        """Map the vectors up to the last row of `known`. Raises ModelError if the file is missing or truncated."""
        record = self.get(model_id)
        return _read_rows(record, self._vector_file(record), _stop(known))

    def vectors(self, model_id: str | None = None) -> Vectors:
        """Return a model's vectors; by default, those of the active model. Raises ModelError if they are damaged."""
        record = self.get(model_id)
        return self._read(record, self._vector_file(record))

    def features(self, model_id: str | None = None) -> Vectors:
        """Return a model's features, such as histograms; by default, the active model's. May raise ModelError."""
        owner = self.get(self.get(model_id).features_of)
        return self._read(owner, self._feature_file(owner))

    def feature_file(self, model_id: str) -> tuple[SongRows, Float32Array]:
        """Return the rows of a model's features, and their mapped file. Raises ModelError if it is damaged."""
        owner = self.get(self.get(model_id).features_of)
        song_rows = self.song_rows(owner.id)
        return song_rows, _read_rows(owner, self._feature_file(owner), _stop(song_rows))

    def _read(self, record: ModelRecord, file: RowFile) -> Vectors:
        song_rows = self.song_rows(record.id)
        X = _read_rows(record, file, _stop(song_rows))
        # rows of deleted songs stay in the file
        return Vectors(record.id, song_rows.song_ids, X if len(X) == len(song_rows.rows) else X[song_rows.rows])


def _n_rows(connection: sa.Connection, model_id: str) -> int:
    v = schema.vectors.c
    last = connection.scalar(sa.select(sa.func.max(v.row)).where(v.model_id == model_id))
    return 0 if last is None else int(last) + 1


def _stop(song_rows: SongRows) -> int:
    return int(song_rows.rows[-1]) + 1 if len(song_rows.rows) else 0


def _read_rows(record: ModelRecord, file: RowFile, n_rows: int) -> Float32Array:
    try:
        return file.read(n_rows)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"the files of the model {record.name!r} are missing or damaged ({file.path}): choose another "
            "model, or refit this one."
        ) from error
