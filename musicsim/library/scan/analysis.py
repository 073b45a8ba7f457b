"""What is taken from one file; runs in a worker process."""

import tempfile
import time
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from musicsim.addresses import located
from musicsim.audio import DELTA_WIDTH, HOP, SAMPLE_RATE, Descriptors, Sound, analyse_sound, describe
from musicsim.errors import AudioError, AudioTooShortError
from musicsim.library.disk.arrays import atomic_path
from musicsim.library.scan.files import content_hash
from musicsim.library.scan.hollow import check_not_hollow
from musicsim.library.stores.files import SHORT, SILENT
from musicsim.library.stores.frames import FrameStore
from musicsim.library.stores.song_gaussians import keep_gaussians
from musicsim.library.tags.file_tags import FileTags, read_tags

_SILENT = 1e-4  # -80 dB of full scale: dither, not music
_READS = 2


@dataclass(frozen=True, slots=True)
class Task:
    """A file to be analysed, and what is wanted of it."""

    path: Path
    size: int
    frames_folder: Path  # where frames are kept
    # songs of the library with as many bytes: if the file is one of them, it is not decoded
    known_hashes: tuple[str, ...] = ()
    shortest_s: float = 0.0  # what is shorter is skipped
    take_silent: bool = True  # whether silence is wanted, too
    aspects: bool = True  # whether harmony and rhythm are


@dataclass(frozen=True, slots=True)
class _Outcome:
    size: int
    mtime_ns: int
    busy_s: float


@dataclass(frozen=True, slots=True)
class Same(_Outcome):
    """The bytes of a song that the library has."""

    content_hash: str


@dataclass(frozen=True, slots=True)
class Skipped(_Outcome):
    """Sound that is no song; `kind` is one of :data:`musicsim.library.stores.files.SKIPPED`."""

    kind: str
    reason: str
    duration_s: float


@dataclass(frozen=True, slots=True)
class Analysis(_Outcome):
    """A song: its name, tags and sound; its frames and aspects lie in the library already."""

    content_hash: str
    tags: FileTags
    sound: Sound
    outline: bytes
    descriptors: Descriptors


@dataclass(frozen=True, slots=True)
class Parcel:
    """A song with the files of its frames and aspects, packed: it comes from where the library cannot be written to."""

    analysis: Analysis
    files: tuple[bytes | None, bytes | None]

    @property
    def busy_s(self) -> float:
        """What a worker was busy with it."""
        return self.analysis.busy_s

    def unpack(self, store: FrameStore) -> Analysis:
        """Keep the files in a library, each whole or not at all; StorageError if there is no room."""
        for path, packed in zip(store.files(self.analysis.content_hash), self.files, strict=True):
            if packed is not None:
                with atomic_path(path) as temporary:
                    temporary.write_bytes(_unpacked(packed))
        return self.analysis


class _NoSong(Exception):
    """Its arguments are the last three fields of :class:`Skipped`."""


def analyse(task: Task) -> Analysis | Same | Skipped:
    """Decode a file, keep its frames and aspects, take its tags and name.

    Raises AudioError if the file gives no features, or somebody is writing to it; the message names it;
    OSError if it cannot be read.
    """
    started = time.perf_counter()
    task = replace(task, path=located(task.path))
    for _ in range(_READS):
        before = task.path.stat()
        outcome: Analysis | Same | Skipped | AudioError
        try:
            outcome = _read(task, before.st_size, before.st_mtime_ns)
        except AudioError as error:
            outcome = error
        after = task.path.stat()
        if (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns):
            if isinstance(outcome, AudioError):
                raise outcome
            return replace(outcome, busy_s=time.perf_counter() - started)
    raise AudioError(f"{task.path} changed while it was read: scan again when it is complete.")


def analyse_apart(task: Task) -> Parcel | Same | Skipped:
    """Do as :func:`analyse`, and bring along what it would have written; `frames_folder` is not looked at."""
    with tempfile.TemporaryDirectory(prefix="musicsim-") as name:
        folder = Path(name)
        outcome = analyse(replace(task, frames_folder=folder))
        if not isinstance(outcome, Analysis):
            return outcome
        frames, aspects = FrameStore(folder).files(outcome.content_hash)
        return Parcel(outcome, (_packed(frames), _packed(aspects)))


def _packed(path: Path) -> bytes | None:
    """The bytes of a file, nine tenths of their number: what repeats in numbers of half precision are high bytes."""
    if not path.exists():
        return None
    data = path.read_bytes()
    coder = zlib.compressobj(strategy=zlib.Z_RLE)  # a third of the time of others, which find no more
    return coder.compress(data[::2] + data[1::2]) + coder.flush()


def _unpacked(packed: bytes) -> bytes:
    data = zlib.decompress(packed)
    result, n_even = bytearray(len(data)), -(-len(data) // 2)
    result[::2], result[1::2] = data[:n_even], data[n_even:]
    return bytes(result)


def _read(task: Task, size: int, mtime_ns: int) -> Analysis | Same | Skipped:
    check_not_hollow(task.path, size)
    digest = content_hash(task.path)
    if digest in task.known_hashes:
        return Same(size, mtime_ns, 0.0, digest)
    store = FrameStore(task.frames_folder)
    try:
        with atomic_path(store.path(digest)) as frames:
            sound = analyse_sound(task.path, frames_to=frames, aspects=task.aspects)
            _check_song(task, sound)
            heard = describe(np.load(frames, allow_pickle=False), sound.harmony, sound.rhythm)
            keep_gaussians(frames)
            if sound.harmony is not None and sound.rhythm is not None:
                store.keep_aspects(digest, sound.harmony, sound.rhythm)
    except _NoSong as no_song:
        return Skipped(size, mtime_ns, 0.0, *no_song.args)
    outline = np.round(255 * sound.outline).astype(np.uint8).tobytes()
    return Analysis(size, mtime_ns, 0.0, digest, read_tags(task.path), sound, outline, heard)


def _check_song(task: Task, sound: Sound) -> None:
    if sound.n_frames < DELTA_WIDTH:
        raise AudioTooShortError(
            f"{task.path}: {sound.duration_s:.2f} s of sound is too short to analyse; "
            f"{DELTA_WIDTH * HOP / SAMPLE_RATE:.2f} s are needed. Leave the file out."
        )
    if sound.duration_s < task.shortest_s:
        reason = (
            f"{task.path} lasts {sound.duration_s:.1f} s: files under {task.shortest_s:g} s are skipped. "
            "Add it anyway, or set the shortest song lower."
        )
        raise _NoSong(SHORT, reason, sound.duration_s)
    if not task.take_silent and sound.loudest < _SILENT:
        reason = (
            f"{task.path} is silent from beginning to end ({sound.duration_s:.0f} s). Add it anyway, or leave it out."
        )
        raise _NoSong(SILENT, reason, sound.duration_s)
