"""Analysis of one file, in a worker process."""

import os
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from musicsim.addresses import is_address, resolve_address
from musicsim.audio import DELTA_WIDTH, HOP, SAMPLE_RATE, Descriptors, Sound, analyze_sound, describe
from musicsim.audio.networks import AudioNetwork
from musicsim.errors import AudioDecodeError, AudioError, AudioTooShortError
from musicsim.library.disk.arrays import atomic_path
from musicsim.library.scan.files import content_hash
from musicsim.library.stores.files import SHORT, SILENT
from musicsim.library.stores.frames import FrameStore
from musicsim.library.stores.song_gaussians import keep_gaussians
from musicsim.library.tags.file_tags import FileTags, read_tags

_SILENT = 1e-4  # maximum amplitude of silence: -80 dBFS; such faint sound is dither, not music
_MAX_READS = 2
# to detect unfinished downloads and copies
_HEAD = 16 << 20  # number of bytes that must not all be zero, because all audio formats have a header
_CHUNK = 1 << 16
_MIN_HOLLOW = 1 << 30  # minimum size in bytes; smaller files are read quickly, and may be silence on a compressed disk
_MAX_SHARE = 1 / 16  # maximum share of data in a hollow file


@dataclass(frozen=True, slots=True)
class AnalysisTask:
    path: Path
    size: int
    frames_folder: Path  # where frames are stored
    known_hashes: tuple[str, ...] = ()  # hashes of songs with the same size; a file with one of them is not decoded
    shortest_s: float = 0.0  # shorter files are skipped
    take_silent: bool = True  # if False, silent files are skipped
    aspects: bool = True  # True to compute harmony and rhythm
    networks: tuple[AudioNetwork, ...] = ()  # networks that describe the song


@dataclass(frozen=True, slots=True)
class _Outcome:
    size: int
    mtime_ns: int
    busy_s: float


@dataclass(frozen=True, slots=True)
class Same(_Outcome):
    """A file with the same bytes as a known song."""

    content_hash: str


@dataclass(frozen=True, slots=True)
class SkippedFile(_Outcome):
    """A short or silent file; `kind` is one of :data:`musicsim.library.stores.files.SKIPPED`."""

    kind: str
    reason: str
    duration_s: float


@dataclass(frozen=True, slots=True)
class Analysis(_Outcome):
    """A song; its frames and aspects are already stored in the library."""

    content_hash: str
    tags: FileTags
    sound: Sound
    outline: bytes
    descriptors: Descriptors


@dataclass(frozen=True, slots=True)
class Parcel:
    """A song with its files of frames and aspects, from a worker that cannot write to the library."""

    analysis: Analysis
    files: tuple[bytes, bytes | None]

    @property
    def busy_s(self) -> float:
        return self.analysis.busy_s

    def unpack(self, store: FrameStore) -> Analysis:
        """Write the files to a library, each atomically. Raises StorageError if the disk is full."""
        for path, data in zip(store.files(self.analysis.content_hash), self.files, strict=True):
            if data is not None:
                with atomic_path(path) as temporary:
                    temporary.write_bytes(data)
        return self.analysis


class _SkippedError(Exception):
    """Its arguments are the last three fields of :class:`SkippedFile`."""


def analyze(task: AnalysisTask) -> Analysis | Same | SkippedFile:
    """Decode a file, store its frames and aspects, and read its tags. Raises AudioError or OSError."""
    started = time.perf_counter()
    task = replace(task, path=resolve_address(task.path))
    for _ in range(_MAX_READS):
        before = task.path.stat()
        outcome: Analysis | Same | SkippedFile | AudioError
        try:
            outcome = _read(task, before.st_size, before.st_mtime_ns)
        except AudioError as error:
            outcome = error
        after = task.path.stat()
        if (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns):
            if isinstance(outcome, AudioError):
                raise outcome
            return replace(outcome, busy_s=time.perf_counter() - started)
    raise AudioError(f"{task.path} changed while it was being read: scan again when it is complete.")


def analyze_apart(task: AnalysisTask) -> Parcel | Same | SkippedFile:
    """Analyze like :func:`analyze`, but return the files instead of writing them to `frames_folder`."""
    with tempfile.TemporaryDirectory(prefix="musicsim-") as name:
        folder = Path(name)
        outcome = analyze(replace(task, frames_folder=folder))
        if not isinstance(outcome, Analysis):
            return outcome
        frames, aspects = FrameStore(folder).files(outcome.content_hash)
        return Parcel(outcome, (frames.read_bytes(), aspects.read_bytes() if aspects.exists() else None))


def _read(task: AnalysisTask, size: int, mtime_ns: int) -> Analysis | Same | SkippedFile:
    _check_not_hollow(task.path, size)
    digest = content_hash(task.path)
    if digest in task.known_hashes:
        return Same(size, mtime_ns, 0.0, digest)
    store = FrameStore(task.frames_folder)
    try:
        with atomic_path(store.path(digest)) as frames:
            sound = analyze_sound(task.path, frames_to=frames, aspects=task.aspects, networks=task.networks)
            _check_song(task, sound)
            descriptors = describe(np.load(frames, allow_pickle=False), sound.harmony, sound.rhythm)
            keep_gaussians(frames)
            if sound.harmony is not None and sound.rhythm is not None:
                store.keep_aspects(digest, sound.harmony, sound.rhythm)
    except _SkippedError as skipped:
        return SkippedFile(size, mtime_ns, 0.0, *skipped.args)
    outline = np.round(255 * sound.outline).astype(np.uint8).tobytes()
    return Analysis(size, mtime_ns, 0.0, digest, read_tags(task.path), sound, outline, descriptors)


def _check_song(task: AnalysisTask, sound: Sound) -> None:
    if sound.n_frames < DELTA_WIDTH:
        raise AudioTooShortError(
            f"{task.path}: {sound.duration_s:.2f} s of sound is too short to analyze; "
            f"{DELTA_WIDTH * HOP / SAMPLE_RATE:.2f} s are needed. Leave the file out."
        )
    if sound.duration_s < task.shortest_s:
        reason = (
            f"{task.path} lasts {sound.duration_s:.1f} s: files under {task.shortest_s:g} s are skipped. "
            "Add it anyway, or lower “Shortest song” in the settings."
        )
        raise _SkippedError(SHORT, reason, sound.duration_s)
    if not task.take_silent and sound.loudest < _SILENT:
        reason = (
            f"{task.path} is silent from beginning to end ({sound.duration_s:.0f} s). Add it anyway, or leave it out."
        )
        raise _SkippedError(SILENT, reason, sound.duration_s)


def _check_not_hollow(path: Path, size: int) -> None:
    """Raise AudioDecodeError if a file of `size` bytes begins with 16 MB of zeros, or is large and mostly holes."""
    if size >= _HEAD and _begins_with_zeros(path):
        raise AudioDecodeError(f"{path} begins with 16 MB of zeros, so this copy is incomplete: copy the file again.")
    if size >= _MIN_HOLLOW and not is_address(path) and _has_little_data(path, size):
        raise AudioDecodeError(
            f"{path} is {size / 1e9:.1f} GB, but almost none of it is on disk, so this copy is incomplete: "
            "copy the file again."
        )


def _begins_with_zeros(path: Path) -> bool:
    with path.open("rb") as file:
        return all(file.read(_CHUNK) == bytes(_CHUNK) for _ in range(_HEAD // _CHUNK))


def _has_little_data(path: Path, size: int) -> bool:
    """Return whether a file consists almost entirely of holes, which read as zeros; False if unknown."""
    if not hasattr(os, "SEEK_DATA"):
        return False
    with path.open("rb") as file:
        at, n_data = 0, 0
        while at < size:
            try:
                start = os.lseek(file.fileno(), at, os.SEEK_DATA)
                at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            except OSError:  # the rest is a hole, or the file system does not report holes
                break
            n_data += at - start
            if n_data > _MAX_SHARE * size:
                return False
    return n_data <= _MAX_SHARE * size and n_data > 0
