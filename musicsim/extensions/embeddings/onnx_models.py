"""Vectors of a library's songs by somebody's model of sound: an ONNX file that is run in worker processes.

A song is decoded to mono samples of the model's rate, cut into windows of one length, as many as cover it, evenly
placed (a shorter song is padded with zeros), and its vector is the mean of what the model gives of them. The model
has one input of float32, of the shape (batch, samples), (batch, 1, samples) or (samples,); the output is (batch, d), or
(batch, frames, d), whose frames are averaged, too. Sizes may be fixed or free.

An ONNX file is not believed: it is read and run nowhere but in workers with limits of time and memory, and files that
it names beside itself are not opened.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array
from musicsim.addresses import located
from musicsim.audio import decode
from musicsim.errors import LibraryError, ModelError
from musicsim.extensions.embeddings.files import MAX_WIDE
from musicsim.library.disk.archives import in_short
from musicsim.library.library import Library
from musicsim.library.processes.pools import LocalPool
from musicsim.library.processes.workers import Limits, OverTimeError, WorkerDied
from musicsim.library.scan.files import content_hash
from musicsim.library.scan.ingest import failure_reason
from musicsim.progress import Progress
from musicsim.storage import writing_to

MIN_RATE, MAX_RATE = 1_000, 192_000
MIN_WINDOW_S, MAX_WINDOW_S = 0.1, 120.0
MAX_SONG_S = 1_800.0
"""Seconds of a song that are listened to: of a longer one the first half hour."""
_MAX_BYTES = 2**31  # of an ONNX file: protobuf takes no more
_SAMPLES_AT_ONCE = 2**20  # of a batch
_HASH_BYTES = 32
_TIMES_ITS_SIZE = 4  # memory that a model takes when it is loaded
_SEED = 0
_METHOD = 1  # grows when the same file and settings give other vectors


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """An ONNX file, and how sound is given to it.

    Raises ValueError if a number is out of range.
    """

    path: Path
    sample_rate: int  # Hz
    window_s: float  # seconds that the model is given at once
    output: str = ""  # name of the output that is the vector; empty: there is but one
    digest: str = ""  # hash of the file's bytes

    def __post_init__(self) -> None:
        if not MIN_RATE <= self.sample_rate <= MAX_RATE:
            raise ValueError(f"sample_rate={self.sample_rate} should be from {MIN_RATE} to {MAX_RATE} Hz.")
        if not MIN_WINDOW_S <= self.window_s <= MAX_WINDOW_S:
            raise ValueError(f"window_s={self.window_s:g} should be from {MIN_WINDOW_S:g} to {MAX_WINDOW_S:g} seconds.")

    @property
    def n_samples(self) -> int:
        """Samples of a window."""
        return round(self.sample_rate * self.window_s)

    @property
    def key(self) -> str:
        """Tells apart what gives other vectors: the file's bytes and the settings."""
        said = [_METHOD, self.digest, self.sample_rate, self.n_samples, self.output]
        return content_hash(json.dumps(said).encode())

    @property
    def words(self) -> str:
        """The file and the settings in a sentence."""
        output = f", output {self.output}" if self.output else ""
        return (
            f"Computed by {self.path.name} (hash {self.digest}) at {self.sample_rate:,} Hz, in windows of "
            f"{self.window_s:g} s{output}."
        )


@dataclass(frozen=True, slots=True)
class Described:
    """What an ONNX model says of the songs of a library."""

    model: OnnxModel
    hashes: list[str]  # of the songs' files
    vectors: Float32Array  # (n_songs, d)
    problems: list[str]  # why songs have none, a sentence each
    n_known: int  # songs that a run before this one had described


def describe_songs(library: Library, model: OnnxModel, progress: Progress) -> Described:
    """Run an ONNX model over the songs of a library, in as many processes as a scan.

    What is done is kept at once in the library's folder ``cache``: a run that was stopped goes on with the songs that
    are left, and a later one with those that are new.

    Raises
    ------
    ModelError
        If the file cannot be run, or takes or gives another shape; LibraryError if it cannot be read, or onnxruntime
        is not installed; StorageError if the library's folder takes no more.
    """
    model = replace(model, digest=_digest(model.path))
    limits = library.file_limits
    n_mb = _TIMES_ITS_SIZE * model.path.stat().st_size >> 20
    limits = Limits(limits.seconds, limits.memory_mb + n_mb)
    progress(f"reading {model.path.name}", 0, 0)
    kept = _KeptVectors(library.folder / "cache" / f"onnx-{model.key}.rows", _tried(model, limits, progress))
    songs = {song.content_hash: song.path for song in library.songs()}
    todo = [(digest, path) for digest, path in songs.items() if digest not in kept.hashes]
    n_known = n_done = len(songs) - len(todo)
    problems = []
    tasks = (path for _, path in todo)
    hash_of = {path: digest for digest, path in todo}
    pool = LocalPool(library.settings["n_workers"])
    with closing(pool.outcomes(partial(song_vector, model), tasks, limits=limits)) as items:
        for item in items:
            if item is not None:
                path, outcome = item
                if isinstance(outcome, BaseException):
                    problems.append(failure_reason(path, outcome, limits))
                else:
                    kept.append(hash_of[path], outcome)
                n_done += 1
            progress(f"running {model.path.name}", n_done, len(songs))
    hashes, vectors = kept.of(songs)
    return Described(model, hashes, vectors, problems, n_known)


def _digest(path: Path) -> str:
    try:
        if not path.is_file() or not 0 < path.stat().st_size < _MAX_BYTES:
            raise LibraryError(f"{path.name}: give an ONNX file of less than 2 GB.")
        return content_hash(path)
    except OSError as error:
        raise LibraryError(f"{path.name}: it cannot be read ({error.strerror or error}).") from error


def _tried(model: OnnxModel, limits: Limits, progress: Progress) -> int:
    """The length of the vectors of a model, which is run in a worker once; raises ModelError in one sentence."""
    outcome: Any = None
    with closing(LocalPool(1).outcomes(n_dimensions, [model], limits=limits)) as items:
        for item in items:
            progress(f"reading {model.path.name}", 0, 0)
            outcome = outcome if item is None else item[1]
    if isinstance(outcome, WorkerDied):
        why = f"it crashes the process that runs it (exit code {outcome.exit_code})"
    elif isinstance(outcome, OverTimeError):
        why = f"it took more than {limits.seconds:g} s for a window and was stopped"
    elif isinstance(outcome, MemoryError):
        why = f"it takes more than {limits.memory_mb:,} MB of memory; raise the setting file_memory_mb"
    elif isinstance(outcome, LibraryError | ModelError):
        raise outcome
    elif isinstance(outcome, BaseException):
        why = in_short(outcome)
    else:
        return int(outcome)
    raise ModelError(f"{model.path.name}: it cannot be run as an ONNX model: {why}.")


class _KeptVectors:
    """Vectors of songs by their hashes, in a file that grows at its end: a row that was cut off is not there."""

    def __init__(self, path: Path, width: int) -> None:
        self._path = path
        self._type = np.dtype([("hash", f"S{_HASH_BYTES}"), ("vector", "<f4", (width,))])
        self._rows = np.fromfile(path, self._type) if path.exists() else np.empty(0, self._type)
        self.hashes = {digest.decode("ascii", "replace"): row for row, digest in enumerate(self._rows["hash"])}
        self._new: list[npt.NDArray[Any]] = []

    def append(self, digest: str, vector: Float32Array) -> None:
        """Write a vector; StorageError if there is no room."""
        row = np.array([(digest.encode("ascii"), vector)], self._type)
        with writing_to(self._path):
            self._path.parent.mkdir(exist_ok=True)
            with self._path.open("r+b" if self._path.exists() else "w+b") as stream:
                n_rows = len(self._rows) + len(self._new)
                stream.truncate(n_rows * self._type.itemsize)
                stream.seek(0, os.SEEK_END)
                stream.write(row.tobytes())
        self.hashes[digest] = n_rows
        self._new.append(row)

    def of(self, wanted: Iterable[str]) -> tuple[list[str], Float32Array]:
        """The hashes that have a vector, and the vectors."""
        rows = np.concatenate([self._rows, *self._new])
        found = [digest for digest in wanted if digest in self.hashes]
        return found, np.ascontiguousarray(rows["vector"][[self.hashes[digest] for digest in found]])


# --- in a worker ----------------------------------------------------------------------------------


def n_dimensions(model: OnnxModel) -> int:
    """The length of the vectors that a model gives, of a batch of noise."""
    noise = np.random.default_rng(_SEED).uniform(-0.1, 0.1, (2, model.n_samples)).astype(np.float32)
    return len(_running(model).mean(noise))


def song_vector(model: OnnxModel, path: Path) -> Float32Array:
    """The vector of a song, float32 (d,).

    Raises AudioError if it cannot be decoded; ModelError if the model gives no numbers, or fails.
    """
    sound = decode(located(path), sr=model.sample_rate, duration=MAX_SONG_S, name=str(path))
    vector = _running(model).mean(windows(sound.samples, model.n_samples))
    if not np.isfinite(vector).all() or not vector.any():
        said = "nothing but 0" if np.isfinite(vector).all() else "NaN or infinite values"
        raise ModelError(f"{path}: {model.path.name} gives {said}.")
    return vector


def windows(samples: Float32Array, length: int) -> Float32Array:
    """As many windows of a length as cover samples (n,), evenly placed: (n_windows, length), a copy."""
    missing = length - len(samples)
    if missing > 0:
        samples = np.pad(samples, (0, missing))
    starts = np.linspace(0, len(samples) - length, -(-len(samples) // length)).astype(np.int64)
    return np.lib.stride_tricks.sliding_window_view(samples, length)[starts]


@lru_cache(maxsize=1)
def _running(model: OnnxModel) -> _Running:
    return _Running(model)


class _Running:
    """A model that has been loaded, and how a batch is to be given to it.

    Raises LibraryError if onnxruntime is not installed, ModelError if it cannot be loaded or takes something else
    than sound.
    """

    def __init__(self, model: OnnxModel) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise LibraryError(
                f"{model.path.name}: onnxruntime is needed to run it: pip install 'musicsim[onnx]'."
            ) from error
        self._model = model
        data = model.path.read_bytes()
        if content_hash(data) != model.digest:
            raise ModelError(f"{model.path.name} has just been changed: start again.")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # a process a core
        options.enable_cpu_mem_arena = False  # it takes twice what is needed
        options.log_severity_level = 4
        try:
            with tempfile.TemporaryDirectory(prefix="musicsim-") as nothing:
                # weights beside the file would not be part of its hash
                options.add_session_config_entry("session.model_external_initializers_file_folder_path", nothing)
                self._session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except MemoryError:
            raise
        except Exception as error:
            raise self._refused(
                f"it cannot be loaded ({_said(error)}). It should be one file that holds its weights"
            ) from error
        self._input, self._shape = self._checked_input()
        self._output = self._checked_output()
        fixed = self._shape[0] if len(self._shape) > 1 and isinstance(self._shape[0], int) else None
        most = max(1, _SAMPLES_AT_ONCE // model.n_samples)
        self._batch, self._is_fixed = (fixed, True) if fixed else (1 if len(self._shape) == 1 else most, False)

    def _refused(self, why: str) -> ModelError:
        return ModelError(f"{self._model.path.name}: {why}.")

    def _checked_input(self) -> tuple[str, list[int | str | None]]:
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            names = ", ".join(one.name for one in inputs) or "none"
            raise self._refused(f"it has {len(inputs)} inputs ({in_short(names)}); it should have one, the samples")
        (only,) = inputs
        shape = list(only.shape)
        if only.type != "tensor(float)" or not 1 <= len(shape) <= 3 or (len(shape) == 3 and shape[1] == 0):
            raise self._refused_input(only)
        if len(shape) == 3 and isinstance(shape[1], int) and shape[1] != 1:
            raise self._refused_input(only)
        if isinstance(shape[-1], int) and shape[-1] != self._model.n_samples:
            model = self._model
            raise self._refused(
                f"it takes {shape[-1]:,} samples at once, {shape[-1] / model.sample_rate:g} s at "
                f"{model.sample_rate:,} Hz; a window of {model.window_s:g} s has {model.n_samples:,}"
            )
        return only.name, shape

    def _refused_input(self, only: Any) -> ModelError:
        return self._refused(
            f"its input is {only.type} of the shape {_written(only.shape)}; it should be tensor(float) of the shape "
            "(batch, samples), (batch, 1, samples) or (samples)"
        )

    def _checked_output(self) -> str:
        names, wanted = [one.name for one in self._session.get_outputs()], self._model.output
        if wanted in names:
            return wanted
        if wanted or len(names) != 1:
            lacks = f"it has no output {wanted!r}" if wanted else f"it has {len(names)} outputs"
            raise self._refused(f"{lacks}: name the one that is the vector ({in_short(', '.join(names))})")
        return names[0]

    def mean(self, sound: Float32Array) -> Float32Array:
        """The mean of what the model gives of windows (n, length), float32 (d,)."""
        total: Any = 0.0
        for start in range(0, len(sound), self._batch):
            total = total + self._of_batch(sound[start : start + self._batch]).sum(axis=0)
        with np.errstate(over="ignore"):
            return np.asarray(total / len(sound), dtype=np.float32)

    def _of_batch(self, sound: Float32Array) -> npt.NDArray[np.float64]:
        """A vector for each window, float64 (n, d)."""
        n = len(sound)
        if self._is_fixed and n < self._batch:
            sound = np.concatenate([sound, np.zeros((self._batch - n, sound.shape[1]), np.float32)])
        given = sound[:, None] if len(self._shape) == 3 else sound[0] if len(self._shape) == 1 else sound
        try:
            (found,) = self._session.run([self._output], {self._input: np.ascontiguousarray(given)})
        except MemoryError:
            raise
        except Exception as error:
            raise self._refused(
                f"it fails on {self._model.window_s:g} s of sound at {self._model.sample_rate:,} Hz ({_said(error)})"
            ) from error
        if not isinstance(found, np.ndarray) or found.dtype.kind != "f" or not 0 < found.ndim <= 3:
            raise self._refused_output(found)
        if len(self._shape) == 1:
            found = found.reshape(1, -1, found.shape[-1])
        if found.ndim == 1 or len(found) != len(sound) or not found.size or found.shape[-1] > MAX_WIDE:
            raise self._refused_output(found)
        vectors = found.astype(np.float64)[:n]
        return vectors.mean(axis=1) if vectors.ndim == 3 else vectors

    def _refused_output(self, found: Any) -> ModelError:
        what = _written(found.shape) if isinstance(found, np.ndarray) else type(found).__name__
        return self._refused(
            f"its output {self._output} is {what}; it should be floats of the shape (batch, d) or (batch, frames, d), "
            f"with a d of at most {MAX_WIDE:,}"
        )


def _said(error: Exception) -> str:
    return in_short(re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", str(error)))


def _written(shape: Any) -> str:
    return f"({', '.join(str(size or '?') for size in shape)})"
