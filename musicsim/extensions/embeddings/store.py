"""Vectors of songs that other programs made, as the listener brought them: kept as they came, found for songs.

Each file is kept whole under the hash of what it says, so that songs that come later find theirs, and the same file
is the same in every library.
"""

import hashlib
import json
import os
import shutil
import time
import tokenize
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from musicsim._arrays import Float32Array, Int64Array
from musicsim.errors import LibraryError, NotFoundError
from musicsim.extensions.embeddings.files import read_embedding
from musicsim.library.disk.arrays import atomic_folder
from musicsim.library.importing.places import PlaceIndex
from musicsim.library.library import Library

T = TypeVar("T")

_UNUSED_S = 24 * 3600.0  # what nobody uses is kept for a day: it may have just come
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class AboutEmbedding:
    """What is known of kept vectors."""

    key: str  # the hash of what they say
    label: str  # name of the file they came in
    n_rows: int
    n_dimensions: int
    problems: tuple[str, ...]  # why rows of the file were left out
    note: str = ""  # one sentence on which columns of a file were taken, or what has computed them


@dataclass(frozen=True, slots=True)
class Matched:
    """Whose the vectors are."""

    song_ids: Int64Array  # (n,), ascending
    rows: Int64Array  # (n,): the row of each song's vector
    n_unmatched: int  # rows of songs that are not here
    unmatched: tuple[str, ...]  # the names of the first 20 of them
    n_double: int  # rows of a song that has an earlier row


class EmbeddingStore:
    """The vectors that a library's listener brought, below its folder ``embeddings``.

    They are read as memory maps, 4 bytes a number; to find whose they are takes 0.4 kB a file of the library.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self.folder = library.folder / "embeddings"

    def keep(self, path: Path, label: str = "") -> AboutEmbedding:
        """Take in a file of vectors, whole or not at all; one that is here already stays, unless it is damaged.

        See :mod:`musicsim.extensions.embeddings.files` for what is read; `label` is what to call it, its name by
        default.

        Raises LibraryError if the file cannot be read or kept, or is a plain array of another length than there are
        songs.
        """
        read = read_embedding(path)
        if read.names is None:
            ids = np.sort(self._library.table().ids)
            if len(ids) != len(read.vectors):
                raise LibraryError(
                    f"{path.name}: a plain array needs a row for each of the {len(ids):,} songs, by rising id; it has "
                    f"{len(read.vectors):,}. Save it with ids or paths as .npz."
                )
            has_one = np.isfinite(read.vectors).all(axis=1)
            names: Sequence[int | str] = ids[has_one].tolist()
            vectors = read.vectors if has_one.all() else read.vectors[has_one]
        else:
            names, vectors = read.names, read.vectors
        return self.keep_vectors(names, vectors, label or path.name, read.problems, read.note)

    def keep_vectors(
        self,
        names: Sequence[int | str],
        vectors: Float32Array,
        label: str,
        problems: tuple[str, ...] = (),
        note: str = "",
    ) -> AboutEmbedding:
        """Keep vectors (n, d), finite and none of them 0, each with a name of its own, and what is said of them.

        Raises StorageError if there is no room.
        """
        named = json.dumps(list(names))
        digest = hashlib.blake2b(named.encode(), digest_size=16)
        digest.update(np.ascontiguousarray(vectors).data.cast("B"))
        about = AboutEmbedding(digest.hexdigest(), label[:120], len(vectors), vectors.shape[1], problems, note)
        try:
            self._write(about, named, vectors)
        except OSError:
            if not self._is_whole(about.key):  # another process may have written the same meanwhile
                raise
        return about

    def _write(self, about: AboutEmbedding, named: str, vectors: Float32Array) -> None:
        folder = self.folder / about.key
        if self._is_whole(about.key):
            os.utime(folder)  # they have just come again: a sweep leaves them until a model is made of them
            return
        shutil.rmtree(folder, ignore_errors=True)
        with atomic_folder(folder) as written:
            np.save(written / "vectors.npy", vectors, allow_pickle=False)
            (written / "names.json").write_text(named, encoding="utf-8")
            facts = {"format": 1, "label": about.label, "problems": about.problems, "note": about.note}
            (written / "about.json").write_text(json.dumps(facts), encoding="utf-8")

    def _is_whole(self, key: str) -> bool:
        try:
            self.about(key)
            self._names(key)
        except LibraryError:
            return False
        return True

    def about(self, key: str) -> AboutEmbedding:
        """What is known of kept vectors, without reading them.

        Raises NotFoundError if this library does not have them; LibraryError if they are damaged.
        """
        n_rows, n_dimensions = self.vectors(key).shape

        def read(path: Path) -> AboutEmbedding:
            facts = json.loads(path.read_text(encoding="utf-8"))
            problems = tuple(facts["problems"])
            return AboutEmbedding(key, facts["label"], n_rows, n_dimensions, problems, facts.get("note", ""))

        return self._read(key, "about.json", read)

    def vectors(self, key: str) -> Float32Array:
        """Vectors, float32 (n_rows, n_dimensions), a read-only memory map.

        Raises NotFoundError if this library does not have them; LibraryError if they are damaged.
        """

        def read(path: Path) -> Float32Array:
            kept = np.lib.format.open_memmap(path, mode="r")
            if kept.ndim != 2 or kept.dtype != np.float32:
                raise ValueError(f"{kept.dtype} of the shape {kept.shape}")
            return kept

        return self._read(key, "vectors.npy", read)

    def _names(self, key: str) -> list[int | str]:
        """The name of each row; raises as :meth:`vectors`."""
        n_rows = len(self.vectors(key))

        def read(path: Path) -> list[int | str]:
            names: list[int | str] = json.loads(path.read_text(encoding="utf-8"))
            if len(names) != n_rows:
                raise ValueError(f"{len(names)} names for {n_rows} rows")
            return names

        return self._read(key, "names.json", read)

    def _read(self, key: str, name: str, read: Callable[[Path], T]) -> T:
        # a model that somebody sent says which: not every text is the name of a folder
        if not (key.isalnum() and (self.folder / key).is_dir()):
            raise NotFoundError("the vectors that this model is made of are not in this library: import their file.")
        try:
            return read(self.folder / key / name)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, tokenize.TokenError) as error:
            raise LibraryError(
                f"the vectors that this model is made of are damaged ({key}/{name}): import their file again."
            ) from error

    def match(self, key: str) -> Matched:
        """Find the songs of kept vectors: by id, by the hash of a file's bytes, by path from the root or from a folder.

        Raises NotFoundError if this library does not have them; LibraryError if they are damaged.
        """
        names = self._names(key)
        found = self._found(names)
        row_of: dict[int, int] = {}
        for row, song_id in enumerate(found):
            if song_id is not None:
                row_of.setdefault(song_id, row)
        unmatched = [str(name) for name, song_id in zip(names, found, strict=True) if song_id is None]
        ids = np.array(sorted(row_of), dtype=np.int64)
        rows = np.array([row_of[i] for i in ids.tolist()], dtype=np.int64)
        n_double = len(names) - len(unmatched) - len(ids)
        return Matched(ids, rows, len(unmatched), tuple(unmatched[:_SHOWN]), n_double)

    def _found(self, names: Sequence[int | str]) -> list[int | None]:
        files = self._library.files.known()
        here = {file.song_id for file in files.values()}
        if not any(isinstance(name, str) for name in names):
            return [int(name) if name in here else None for name in names]
        by_hash = {file.content_hash: file.song_id for file in files.values()}
        places = PlaceIndex((path, file.song_id, not file.is_missing) for path, file in files.items())
        roots = [os.fspath(root) for root in self._library.files.roots()]

        def find(name: str) -> int | None:
            ways = (name, *(os.path.join(root, name) for root in roots))
            at = (song_id for way in ways if (song_id := places.whole(way)) is not None)
            return by_hash.get(name) or next(at, None)

        return [find(str(name)) for name in names]

    def sweep(self, used: Iterable[str]) -> None:
        """Delete vectors that no model is made of, and what writes that were cut off have left."""
        wanted = set(used)
        for folder in self.folder.iterdir() if self.folder.exists() else ():
            if folder.name not in wanted and time.time() - folder.stat().st_mtime > _UNUSED_S:
                shutil.rmtree(folder, ignore_errors=True)
