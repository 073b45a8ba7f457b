"""Imported song vectors, including vectors for songs that are not in the library yet."""

import hashlib
import json
import os
import shutil
import time
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from musicsim._arrays import Float32Array, Int64Array
from musicsim._npy import save_array
from musicsim.errors import LibraryError, NotFoundError
from musicsim.extensions.embeddings.files import read_embedding
from musicsim.library.disk.arrays import atomic_folder
from musicsim.library.importing.places import PlaceIndex
from musicsim.library.library import Library

UNUSED_S = 24 * 3600.0  # seconds (one day) for which unused vectors are kept, because their model may not exist yet
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class AboutEmbedding:
    key: str  # hash of the names and vectors
    label: str  # name of the imported file
    n_rows: int
    n_dimensions: int
    problems: tuple[str, ...]  # reasons why rows of the file were left out
    note: str = ""  # sentence about the columns used, or about the model that computed the vectors


@dataclass(frozen=True, slots=True)
class Matched:
    song_ids: Int64Array  # (n,), ascending
    rows: Int64Array  # (n,): row of each song's vector
    n_unmatched: int  # number of rows for songs that are not in the library
    unmatched: tuple[str, ...]  # names in the first 20 unmatched rows
    n_double: int  # number of rows for songs that an earlier row already matches


class EmbeddingStore:
    """The imported vectors in a library's ``embeddings`` folder, which are memory-mapped."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self.folder = library.folder / "embeddings"

    def keep(self, path: Path, label: str = "") -> AboutEmbedding:
        """Import a file of vectors atomically; a plain array needs one row per song."""
        file = read_embedding(path, self._library.file_limits)
        names: Sequence[int | str] | None = file.names
        vectors = file.vectors
        if names is None:
            ids = np.sort(self._library.table().ids)
            if len(ids) != len(vectors):
                raise LibraryError(
                    f"{path.name}: a plain array needs one row for each of the {len(ids):,} songs, but this array has "
                    f"{len(vectors):,} rows. Save the vectors with ids or paths as .npz."
                )
            is_valid = np.isfinite(vectors).all(axis=1)
            names = ids[is_valid].tolist()
            vectors = vectors if is_valid.all() else vectors[is_valid]
        return self.keep_vectors(names, vectors, label or path.name, file.problems, file.note)

    def keep_vectors(
        self, names: Sequence[int | str], vectors: Float32Array, label: str, problems: tuple[str, ...] = (),
        note: str = "",
    ) -> AboutEmbedding:  # fmt: skip
        """Save finite, nonzero vectors (n, d) under unique names. Raises StorageError if the disk is full."""
        names_json = json.dumps(list(names))
        digest = hashlib.blake2b(names_json.encode(), digest_size=16)
        digest.update(np.ascontiguousarray(vectors).data.cast("B"))
        about = AboutEmbedding(digest.hexdigest(), label[:120], len(vectors), vectors.shape[1], problems, note)
        folder = self.folder / about.key
        try:
            if self._is_complete(about.key):
                os.utime(folder)  # protects the folder from the next sweep
                return about
            shutil.rmtree(folder, ignore_errors=True)
            with atomic_folder(folder) as temporary:
                save_array(temporary / "vectors.npy", vectors)
                (temporary / "names.json").write_text(names_json, encoding="utf-8")
                facts = {"format": 1, "label": about.label, "problems": problems, "note": note}
                (temporary / "about.json").write_text(json.dumps(facts), encoding="utf-8")
        except OSError:
            if not self._is_complete(about.key):  # another process may just have written the same file
                raise
        return about

    def _is_complete(self, key: str) -> bool:
        try:
            return bool(self.describe(key) and self._names(key))
        except LibraryError:
            return False

    def describe(self, key: str) -> AboutEmbedding:
        n_rows, n_dimensions = self.vectors(key).shape
        with self._find(key, "about.json") as path:
            facts = json.loads(path.read_text(encoding="utf-8"))
            problems = tuple(facts["problems"])
            return AboutEmbedding(key, facts["label"], n_rows, n_dimensions, problems, facts.get("note", ""))

    def vectors(self, key: str) -> Float32Array:
        """Return the vectors as a float32 memory map (n_rows, n_dimensions). Raises LibraryError if it is damaged."""
        with self._find(key, "vectors.npy") as path:
            array: Float32Array = np.lib.format.open_memmap(path, mode="r")
            if array.ndim != 2 or array.dtype != np.float32:
                raise ValueError(f"vectors.npy contains {array.dtype} of shape {array.shape}")
            return array

    def _names(self, key: str) -> list[int | str]:
        n_rows = len(self.vectors(key))
        with self._find(key, "names.json") as path:
            names: list[int | str] = json.loads(path.read_text(encoding="utf-8"))
            if len(names) != n_rows:
                raise ValueError(f"{len(names)} names for {n_rows} rows")
            return names

    @contextmanager
    def _find(self, key: str, name: str) -> Iterator[Path]:
        """Yield the path of a file; errors during reading are converted to LibraryError."""
        # the key in an imported model can be any string, such as "../.."
        if not (key.isalnum() and (self.folder / key).is_dir()):
            raise NotFoundError("this model's vectors are not in this library. Import the file with the vectors.")
        try:
            yield self.folder / key / name
        except (OSError, ValueError, TypeError, KeyError, AttributeError, tokenize.TokenError) as error:
            raise LibraryError(f"the model's vectors are damaged ({key}/{name}). Import the file again.") from error

    def match(self, key: str) -> Matched:
        """Match vectors to songs by id, by file hash, or by path (absolute, or relative to a library folder)."""
        names = self._names(key)
        song_ids = self._find_songs(names)
        row_of: dict[int, int] = {}
        for row, song_id in enumerate(song_ids):
            if song_id is not None:
                row_of.setdefault(song_id, row)
        unmatched = [str(name) for name, song_id in zip(names, song_ids, strict=True) if song_id is None]
        ids = np.array(sorted(row_of), dtype=np.int64)
        rows = np.array([row_of[i] for i in ids.tolist()], dtype=np.int64)
        n_double = len(names) - len(unmatched) - len(ids)
        return Matched(ids, rows, len(unmatched), tuple(unmatched[:_SHOWN]), n_double)

    def _find_songs(self, names: Sequence[int | str]) -> list[int | None]:
        files = self._library.files.list_known()
        here = {file.song_id for file in files.values()}
        if not any(isinstance(name, str) for name in names):
            return [int(name) if name in here else None for name in names]
        by_hash = {file.content_hash: file.song_id for file in files.values()}
        places = PlaceIndex((path, file.song_id, not file.is_missing) for path, file in files.items())
        roots = [os.fspath(root) for root in self._library.files.roots()]

        def find(name: str) -> int | None:
            paths = (name, *(os.path.join(root, name) for root in roots))
            song_ids = (song_id for path in paths if (song_id := places.find_whole(path)) is not None)
            return by_hash.get(name) or next(song_ids, None)

        return [find(str(name)) for name in names]

    def sweep(self, used: Iterable[str]) -> None:
        """Delete vectors that no model uses, and files left by interrupted writes."""
        keys = set(used)
        for folder in self.folder.iterdir() if self.folder.exists() else ():
            if folder.name not in keys and time.time() - folder.stat().st_mtime > UNUSED_S:
                shutil.rmtree(folder, ignore_errors=True)
