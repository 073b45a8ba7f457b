"""What songs sound like: frames and aspects on disk, named by the hash of the file's bytes, and their descriptors.

Frames are a file a song (:func:`musicsim.audio.read_song_frames`). Aspects, harmony and rhythm, are 2 kB in a file of
their own, whose name holds their version, so that one listing tells which songs lack them.
"""

import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
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
from musicsim.library.db import schema
from musicsim.library.db.database import Tables
from musicsim.library.disk.archives import DAMAGED
from musicsim.library.disk.arrays import atomic_path

_ASPECTS = f".v{ASPECT_VERSION}.npz"
_ASKED_ONE_BY_ONE = 1_000
_DAMAGED = (*DAMAGED, KeyError, TypeError, SyntaxError, tokenize.TokenError)  # what numpy raises besides
_OUTDATED = schema.songs.c.descriptor_version != DESCRIPTOR_VERSION


@dataclass(frozen=True, slots=True)
class Aspects:
    """Harmony and rhythm of songs."""

    harmony: Float32Array  # (n_songs, 156): see musicsim.audio.harmony()
    rhythm: Float32Array  # (n_songs, 240): see musicsim.audio.rhythm()


class FrameStore:
    """The frames and aspects of one library, below its folder ``frames``.

    A file is written under a temporary name and renamed, so that what stands under a hash is whole. Files of
    songs that were never entered (a scan was killed in between) are removed by :meth:`sweep`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, content_hash: str) -> Path:
        """Where the frames of these bytes lie, or would lie."""
        return self.folder / content_hash[:2] / f"{content_hash}.npy"

    def kept(self) -> set[str]:
        """Hashes of all frames that are kept: one listing instead of a question a song."""
        return {path.stem for path in self._whole_files()}

    def has_any(self) -> bool:
        """Whether frames of any song are kept."""
        return any(True for _ in self._whole_files())

    def _whole_files(self) -> Iterator[Path]:
        return (path for path in self.folder.glob("??/*.npy") if not path.name.startswith("."))

    def kept_of(self, content_hashes: Sequence[str]) -> set[str]:
        """Those of some hashes whose frames are kept; of a few the disk is asked, instead of a listing of all."""
        if len(content_hashes) > _ASKED_ONE_BY_ONE:
            return self.kept().intersection(content_hashes)
        return {digest for digest in content_hashes if self.path(digest).exists()}

    def files(self, content_hash: str) -> tuple[Path, Path]:
        """Where the frames and the aspects of a song lie, or would lie."""
        return self.path(content_hash), self._aspects_path(content_hash)

    def drop(self, content_hash: str) -> None:
        """Forget the frames of a song, and its aspects."""
        for path in self.files(content_hash):
            path.unlink(missing_ok=True)

    def sweep(self, wanted: Iterable[str]) -> None:
        """Delete all :meth:`orphans`."""
        for path in self.orphans(wanted):
            path.unlink(missing_ok=True)

    def frames(self, content_hash: str) -> SongFrames:
        """Coefficients, as a read-only memory map, and fluctuation of a song.

        Raises FeatureVersionError if they were not kept, or are damaged.
        """
        path = self.path(content_hash)
        try:
            return read_song_frames(path)
        except FileNotFoundError as error:
            raise FeatureVersionError(
                f"{path}: the audio features of this song were not stored. Turn on “Store audio features” "
                "(Library > Settings; keep_frames on the command line) and scan its folder again."
            ) from error
        except _DAMAGED as error:
            raise _forget(path) from error

    def is_whole(self, content_hash: str) -> bool:
        """Whether what is kept of a song can be read; what is damaged stays."""
        frames, aspects = self.files(content_hash)
        try:
            read_song_frames(frames)
            if aspects.exists():
                _read_aspects(aspects)
        except (*_DAMAGED, FeatureVersionError, OSError):
            return False
        return True

    def orphans(self, wanted: Iterable[str]) -> Iterator[Path]:
        """What belongs to no song, aspects of other versions, and what writes that were cut off have left."""
        known = set(wanted)
        for path in self.folder.glob("??/*"):
            content_hash, _, ending = path.name.partition(".")
            if content_hash not in known or f".{ending}" not in (".npy", _ASPECTS):
                yield path
        yield from self.folder.glob(".*.npy")

    def mfcc(self, content_hash: str) -> FloatingArray:
        """The MFCC of a song, float16 (n_frames, 13), as a read-only memory map; raises as :meth:`frames`."""
        return self.frames(content_hash).mfcc

    def blocks(self, content_hash: str) -> Iterator[Float32Array]:
        """Delta-MFCC frames of a song in blocks, float32 (n, 39); of a song of hours, too, some MB at a time."""
        return self.frames(content_hash).blocks()

    def _aspects_path(self, content_hash: str) -> Path:
        return self.folder / content_hash[:2] / (content_hash + _ASPECTS)

    def kept_aspects(self) -> set[str]:
        """Hashes of all songs whose aspects, of this version, are kept."""
        paths = self.folder.glob(f"??/*{_ASPECTS}")
        return {path.name.removesuffix(_ASPECTS) for path in paths if not path.name.startswith(".")}

    def keep_aspects(self, content_hash: str, harmony: Float32Array, rhythm: Float32Array) -> None:
        """Write the aspects of a song: harmony (156,) and rhythm (240,), float32; what was kept gives way."""
        with atomic_path(self._aspects_path(content_hash)) as temporary, temporary.open("wb") as file:
            np.savez(file, harmony=harmony, rhythm=rhythm)

    def aspects(self, content_hashes: Sequence[str]) -> Aspects:
        """The aspects of songs, a row a song; 160 MB for 100 000 songs, 0.4 ms each to read.

        Raises FeatureVersionError if those of a song were not kept, or are damaged.
        """
        result = Aspects(
            np.empty((len(content_hashes), HARMONY_SIZE), np.float32),
            np.empty((len(content_hashes), RHYTHM_SIZE), np.float32),
        )
        for row, content_hash in enumerate(content_hashes):
            path = self._aspects_path(content_hash)
            try:
                result.harmony[row], result.rhythm[row] = _read_aspects(path)
            except FileNotFoundError as error:
                raise FeatureVersionError(
                    f"{path}: harmony and rhythm of this song were not stored. Turn on “Store audio "
                    "features” (Library > Settings; keep_frames on the command line) and add its folder "
                    "again."
                ) from error
            except _DAMAGED as error:
                raise _forget(path) from error
        return result


def _read_aspects(path: Path) -> tuple[FloatingArray, FloatingArray]:
    with np.load(path, allow_pickle=False) as kept:
        return kept["harmony"], kept["rhythm"]


def _forget(path: Path) -> FeatureVersionError:
    """Remove a damaged file, so that the next scan makes it again; what to say of it."""
    with suppress(OSError):
        path.unlink()
    return FeatureVersionError(f"{path}: the audio features of this song were damaged. Scan its folder again.")


class DescriptorStore(Tables):
    """What can be heard of the songs of one library, as this version says it: columns of the table of songs."""

    def n_outdated(self) -> int:
        """How many songs have none of this version, missing songs among them."""
        return self._value(sa.select(sa.func.count()).where(_OUTDATED)) or 0

    def outdated(self) -> dict[int, str]:
        """The hashes of these songs, by their id."""
        s = schema.songs.c
        rows = self._rows(sa.select(s.id, s.content_hash).where(_OUTDATED).order_by(s.id))
        return {row.id: row.content_hash for row in rows}

    def save(self, descriptors: Mapping[int, Descriptors]) -> None:
        """Replace those of some songs, by their id."""
        with self._write() as connection:
            for song_id, found in descriptors.items():
                values = asdict(found) | {"descriptor_version": DESCRIPTOR_VERSION}
                connection.execute(schema.songs.update().where(schema.songs.c.id == song_id).values(**values))
