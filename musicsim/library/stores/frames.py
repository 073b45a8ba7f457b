"""Frames, aspects and descriptors of songs; frames and aspects are files named after the hash of the song's bytes.

The file names of aspects (harmony and rhythm) contain their version, so one directory listing shows which are missing.
"""

import os
import shutil
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from musicsim._arrays import Float32Array, FloatingArray
from musicsim.audio import (
    ASPECT_VERSION,
    DESCRIPTOR_VERSION,
    HARMONY_SIZE,
    RHYTHM_SIZE,
    Descriptors,
    SongFrames,
    read_song_frames,
)
from musicsim.errors import FeatureVersionError
from musicsim.library.db import Tables, schema
from musicsim.library.disk.archives import DAMAGED
from musicsim.library.disk.arrays import atomic_path

_ASPECTS = f".v{ASPECT_VERSION}.npz"
_MAX_LOOKUPS = 1_000  # maximum number of files to look up one by one; for more, the folder is listed
# numpy also raises the last four
_DAMAGED: tuple[type[Exception], ...] = (*DAMAGED, KeyError, TypeError, SyntaxError, tokenize.TokenError)
_UNREADABLE: tuple[type[Exception], ...] = (*_DAMAGED, FeatureVersionError, OSError)
_OUTDATED = schema.songs.c.descriptor_version != DESCRIPTOR_VERSION


@dataclass(frozen=True, slots=True)
class Aspects:
    harmony: Float32Array  # (n_songs, 156): see musicsim.audio.harmony()
    rhythm: Float32Array  # (n_songs, 240): see musicsim.audio.rhythm()


class FrameStore:
    """Frames and aspects in one library's ``frames`` folder; a file with its final name is complete."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, content_hash: str) -> Path:
        return self.folder / content_hash[:2] / f"{content_hash}.npy"

    def aspects_path(self, content_hash: str) -> Path:
        return self.folder / content_hash[:2] / (content_hash + _ASPECTS)

    def files(self, content_hash: str) -> tuple[Path, Path]:
        """Return the paths of a song's frames and aspects, which may not exist."""
        return self.path(content_hash), self.aspects_path(content_hash)

    def list_stored(self) -> set[str]:
        """Return the hashes of all stored frames, from one directory listing."""
        return self._hashes(".npy")

    def list_stored_aspects(self) -> set[str]:
        """Return the hashes of all stored aspects in the current version."""
        return self._hashes(_ASPECTS)

    def _hashes(self, ending: str) -> set[str]:
        paths = self.folder.glob(f"??/*{ending}")
        return {path.name.removesuffix(ending) for path in paths if not path.name.startswith(".")}

    def has_any(self) -> bool:
        return any(not path.name.startswith(".") for path in self.folder.glob("??/*.npy"))

    def find_stored(self, content_hashes: Sequence[str]) -> set[str]:
        """Return the hashes whose frames are stored; lists the folder only if there are many."""
        if len(content_hashes) > _MAX_LOOKUPS:
            return self.list_stored().intersection(content_hashes)
        return {digest for digest in content_hashes if self.path(digest).exists()}

    def drop(self, content_hash: str) -> None:
        for path in self.files(content_hash):
            path.unlink(missing_ok=True)

    def link(self, before: str, after: str) -> None:
        """Store the frames and aspects of a song also under the hash of its new bytes."""
        for old, new in zip(self.files(before), self.files(after), strict=True):
            if old != new and old.exists():
                with atomic_path(new) as temporary:
                    temporary.unlink()
                    try:
                        os.link(old, temporary)
                    except OSError:  # the disk does not support links
                        shutil.copyfile(old, temporary)

    def sweep(self, wanted: Iterable[str]) -> None:
        for path in self.orphans(wanted):
            path.unlink(missing_ok=True)

    def orphans(self, wanted: Iterable[str]) -> Iterator[Path]:
        """Yield files of unknown songs, aspects in other versions, and leftovers of interrupted writes."""
        hashes = set(wanted)
        for path in self.folder.glob("??/*"):
            content_hash, _, ending = path.name.partition(".")
            if content_hash not in hashes or f".{ending}" not in (".npy", _ASPECTS):
                yield path
        yield from self.folder.glob(".*.npy")

    def is_whole(self, content_hash: str) -> bool:
        """Return whether the frames, and any aspects, can be read. Damaged files are not deleted."""
        frames, aspects = self.files(content_hash)
        try:
            read_song_frames(frames)
            if aspects.exists():
                _read_aspects(aspects)
        except _UNREADABLE:
            return False
        return True

    def frames(self, content_hash: str) -> SongFrames:
        """Read a song's audio features. Raises FeatureVersionError if they are missing or damaged."""
        path = self.path(content_hash)
        with _convert_errors(path, "the audio features"):
            return read_song_frames(path)

    def keep_aspects(self, content_hash: str, harmony: Float32Array, rhythm: Float32Array) -> None:
        """Write or replace the aspects of a song: harmony (156,) and rhythm (240,), float32."""
        with atomic_path(self.aspects_path(content_hash)) as temporary, temporary.open("wb") as file:
            np.savez(file, harmony=harmony, rhythm=rhythm)

    def aspects(self, content_hashes: Sequence[str]) -> Aspects:
        """Return aspects, one row per song; 0.4 ms each. Raises FeatureVersionError if any are missing or damaged."""
        aspects = Aspects(
            np.empty((len(content_hashes), HARMONY_SIZE), np.float32),
            np.empty((len(content_hashes), RHYTHM_SIZE), np.float32),
        )
        for row, content_hash in enumerate(content_hashes):
            path = self.aspects_path(content_hash)
            with _convert_errors(path, "harmony and rhythm"):
                aspects.harmony[row], aspects.rhythm[row] = _read_aspects(path)
        return aspects


def _read_aspects(path: Path) -> tuple[FloatingArray, FloatingArray]:
    with np.load(path, allow_pickle=False) as arrays:
        return arrays["harmony"], arrays["rhythm"]


@contextmanager
def _convert_errors(path: Path, what: str) -> Iterator[None]:
    """Raise FeatureVersionError for a missing or damaged file; delete a damaged one, so that a scan writes it again."""
    try:
        yield
    except FileNotFoundError as error:
        raise FeatureVersionError(
            f"{path}: {what} of this song were not stored. Turn on “Store audio features” (Library > Settings; "
            "keep_frames on the command line) and scan its folder again."
        ) from error
    except _DAMAGED as error:
        with suppress(OSError):
            path.unlink()
        raise FeatureVersionError(
            f"{path}: the audio features of this song were damaged. Scan its folder again."
        ) from error


class DescriptorStore(Tables):
    def n_outdated(self) -> int:
        """Return the number of songs, including missing ones, without descriptors in the current version."""
        return self._value(sa.select(sa.func.count()).where(_OUTDATED)) or 0

    def find_outdated(self) -> dict[int, str]:
        """Return the content hashes, keyed by id, of the songs that :meth:`n_outdated` counts."""
        s = schema.songs.c
        rows = self._rows(sa.select(s.id, s.content_hash).where(_OUTDATED).order_by(s.id))
        return {row.id: row.content_hash for row in rows}

    def save(self, descriptors: Mapping[int, Descriptors]) -> None:
        with self._write() as connection:
            for song_id, song_descriptors in descriptors.items():
                values = asdict(song_descriptors) | {"descriptor_version": DESCRIPTOR_VERSION}
                connection.execute(schema.songs.update().where(schema.songs.c.id == song_id).values(**values))
