"""Song vectors from an ONNX model for audio. The model is not trusted, so worker processes run it with limits.

A song's vector is the mean of the outputs for evenly spaced windows; a short song is padded with zeros. The model's
only input is float32 of shape (batch, samples), (batch, 1, samples) or (samples,). The output has shape (batch, d) or
(batch, frames, d).
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
from musicsim.addresses import resolve_address
from musicsim.audio import decode
from musicsim.errors import LibraryError, ModelError
from musicsim.extensions.embeddings.files import MAX_WIDE
from musicsim.library.disk.archives import shorten_message
from musicsim.library.library import Library
from musicsim.library.processes.pools import LocalPool
from musicsim.library.processes.workers import Limits, OverTimeError, WorkerDied
from musicsim.library.scan.files import content_hash
from musicsim.library.scan.ingest import failure_reason
from musicsim.progress import Progress
from musicsim.storage import writing_to

MIN_RATE, MAX_RATE = 1_000, 192_000
MIN_WINDOW_S, MAX_WINDOW_S = 0.1, 120.0
MAX_SONG_S = 1_800.0  # maximum number of seconds used per song; the rest is ignored
_MAX_BYTES = 2**31  # maximum size of an ONNX file, a limit of protobuf
_SAMPLES_AT_ONCE = 2**20  # maximum number of samples in a batch
_HASH_BYTES = 32
_TIMES_ITS_SIZE = 4  # memory of a loaded model, as a multiple of its file size
_SEED = 0
_METHOD = 1  # increase this if a code change alters the vectors for the same file and settings


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """An ONNX file and its settings. Raises ValueError if a number is out of range."""

    path: Path
    sample_rate: int  # Hz
    window_s: float  # seconds of audio per input
    output: str = ""  # name of the output that contains the vector; can be empty if there is only one output
    digest: str = ""  # hash of the file's bytes

    def __post_init__(self) -> None:
        if not MIN_RATE <= self.sample_rate <= MAX_RATE:
            raise ValueError(f"sample_rate={self.sample_rate} must be from {MIN_RATE} to {MAX_RATE} Hz.")
        if not MIN_WINDOW_S <= self.window_s <= MAX_WINDOW_S:
            raise ValueError(f"window_s={self.window_s:g} must be from {MIN_WINDOW_S:g} to {MAX_WINDOW_S:g} seconds.")

    @property
    def n_samples(self) -> int:
        return round(self.sample_rate * self.window_s)

    @property
    def key(self) -> str:
        """Hash of everything that affects the vectors: the file's bytes and the settings."""
        return content_hash(json.dumps([_METHOD, self.digest, self.sample_rate, self.n_samples, self.output]).encode())

    @property
    def summary(self) -> str:
        output = f", output {self.output}" if self.output else ""
        return (
            f"Computed by {self.path.name} (hash {self.digest}) at {self.sample_rate:,} Hz, in windows of "
            f"{self.window_s:g} s{output}."
        )


@dataclass(frozen=True, slots=True)
class Described:
    model: OnnxModel
    hashes: list[str]  # hash of each song's file
    vectors: Float32Array  # (n_songs, d)
    problems: list[str]  # one sentence per song without a vector


def compute_vectors(library: Library, model: OnnxModel, progress: Progress) -> Described:
    """Run an ONNX model on the songs in a library; vectors are cached, so that an interrupted run can be resumed."""
    try:
        if not model.path.is_file() or not 0 < model.path.stat().st_size < _MAX_BYTES:
            raise LibraryError(f"{model.path.name} is missing, empty or too large. Use an ONNX file smaller than 2 GB.")
        model = replace(model, digest=content_hash(model.path))
        n_mb = _TIMES_ITS_SIZE * model.path.stat().st_size >> 20
    except OSError as error:
        raise LibraryError(f"{model.path.name}: this file cannot be read ({error.strerror or error}).") from error
    limits = library.file_limits
    limits = Limits(limits.seconds, limits.memory_mb + n_mb)
    progress(f"reading {model.path.name}", 0, 0)
    cache = _VectorCache(library.folder / "cache" / f"onnx-{model.key}.rows", _try_out(model, limits, progress))
    songs = {song.content_hash: song.path for song in library.songs()}
    hash_of = {path: digest for digest, path in songs.items() if digest not in cache.rows}
    n_done, problems = len(songs) - len(hash_of), []
    pool = LocalPool(library.settings["n_workers"])
    with closing(pool.outcomes(partial(song_vector, model), iter(hash_of), limits=limits)) as items:
        for item in items:
            if item is not None:
                path, outcome = item
                if isinstance(outcome, BaseException):
                    problems.append(failure_reason(path, outcome, limits))
                else:
                    cache.append(hash_of[path], outcome)
                n_done += 1
            progress(f"running {model.path.name}", n_done, len(songs))
    hashes, vectors = cache.select(songs)
    return Described(model, hashes, vectors, problems)


def _try_out(model: OnnxModel, limits: Limits, progress: Progress) -> int:
    """Run a model once in a worker; return the length of its vectors, or raise ModelError with a reason."""
    outcome: Any = None
    with closing(LocalPool(1).outcomes(n_dimensions, [model], limits=limits)) as items:
        for item in items:
            progress(f"reading {model.path.name}", 0, 0)
            outcome = outcome if item is None else item[1]
    if isinstance(outcome, WorkerDied):
        reason = f"it crashes the process that runs it (exit code {outcome.exit_code})"
    elif isinstance(outcome, OverTimeError):
        reason = f"it took more than {limits.seconds:g} s per window and was stopped"
    elif isinstance(outcome, MemoryError):
        reason = f"it needs more than {limits.memory_mb:,} MB of memory; increase the setting file_memory_mb"
    elif isinstance(outcome, LibraryError | ModelError):
        raise outcome
    elif isinstance(outcome, BaseException):
        reason = shorten_message(outcome)
    else:
        return int(outcome)
    raise ModelError(f"{model.path.name} cannot be run as an ONNX model: {reason}.")


class _VectorCache:
    """Vectors in an append-only file, keyed by the hash of each song's file; an incomplete last row is overwritten."""

    def __init__(self, path: Path, width: int) -> None:
        self._path = path
        self._type = np.dtype([("hash", f"S{_HASH_BYTES}"), ("vector", "<f4", (width,))])
        self._data = [np.fromfile(path, self._type) if path.exists() else np.empty(0, self._type)]
        self.rows = {digest.decode("ascii", "replace"): row for row, digest in enumerate(self._data[0]["hash"])}

    def append(self, digest: str, vector: Float32Array) -> None:
        row = np.array([(digest.encode("ascii"), vector)], self._type)
        n_rows = len(self._data[0]) + len(self._data) - 1
        with writing_to(self._path):
            self._path.parent.mkdir(exist_ok=True)
            with self._path.open("r+b" if self._path.exists() else "w+b") as stream:
                stream.truncate(n_rows * self._type.itemsize)
                stream.seek(0, os.SEEK_END)
                stream.write(row.tobytes())
        self.rows[digest] = n_rows
        self._data.append(row)

    def select(self, hashes: Iterable[str]) -> tuple[list[str], Float32Array]:
        known = [digest for digest in hashes if digest in self.rows]
        rows = [self.rows[digest] for digest in known]
        return known, np.ascontiguousarray(np.concatenate(self._data)["vector"][rows])


def n_dimensions(model: OnnxModel) -> int:
    """Run a model on noise and return the length of its vectors."""
    noise = np.random.default_rng(_SEED).uniform(-0.1, 0.1, (2, model.n_samples)).astype(np.float32)
    return len(_load(model).mean_vector(noise))


def song_vector(model: OnnxModel, path: Path) -> Float32Array:
    """Return the vector of a song, float32 (d,). Raises ModelError if it is not finite or contains only zeros."""
    sound = decode(resolve_address(path), sr=model.sample_rate, duration=MAX_SONG_S, name=str(path))
    vector = _load(model).mean_vector(windows(sound.samples, model.n_samples))
    if not np.isfinite(vector).all() or not vector.any():
        output = "only zeros" if np.isfinite(vector).all() else "NaN or infinite values"
        raise ModelError(f"{path}: the output of {model.path.name} contains {output}.")
    return vector


def windows(samples: Float32Array, length: int) -> Float32Array:
    """Return the smallest set of evenly spaced windows that cover all samples, (n_windows, length)."""
    if len(samples) < length:
        samples = np.pad(samples, (0, length - len(samples)))
    starts = np.linspace(0, len(samples) - length, -(-len(samples) // length)).astype(np.int64)
    return np.lib.stride_tricks.sliding_window_view(samples, length)[starts]


class _Session:
    """A loaded model. Raises ModelError if the file cannot be loaded, or its input is not audio."""

    def __init__(self, model: OnnxModel) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise LibraryError(f"{model.path.name} needs onnxruntime. Run: pip install 'musicsim[onnx]'") from error
        self._model = model
        data = model.path.read_bytes()
        if content_hash(data) != model.digest:
            raise ModelError(f"{model.path.name} changed during the run. Start again.")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # there is one process per core
        options.enable_cpu_mem_arena = False  # the arena would double memory use
        options.log_severity_level = 4
        try:
            with tempfile.TemporaryDirectory(prefix="musicsim-") as empty_folder:
                # an empty folder rules out external weights, which would not be part of the hash
                options.add_session_config_entry("session.model_external_initializers_file_folder_path", empty_folder)
                self._session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except MemoryError:
            raise
        except Exception as error:
            reason = f"it cannot be loaded ({_shorten(error)})"
            raise self._error(f"{reason}. Use a single file that includes the weights") from error
        self._input, self._shape = self._find_input()
        self._output = self._find_output()
        fixed = self._shape[0] if len(self._shape) > 1 and isinstance(self._shape[0], int) else None
        n_at_once = max(1, _SAMPLES_AT_ONCE // model.n_samples)
        self._batch, self._is_fixed = (fixed, True) if fixed else (1 if len(self._shape) == 1 else n_at_once, False)

    def _error(self, problem: str) -> ModelError:
        return ModelError(f"{self._model.path.name}: {problem}.")

    def _find_input(self) -> tuple[str, list[int | str | None]]:
        model, inputs = self._model, self._session.get_inputs()
        if len(inputs) != 1:
            names = ", ".join(one.name for one in inputs) or "none"
            raise self._error(
                f"it has {len(inputs)} inputs ({shorten_message(names)}); it must have one input, the samples"
            )
        shape = list(inputs[0].shape)
        is_mono = len(shape) < 3 or not isinstance(shape[1], int) or shape[1] == 1
        if inputs[0].type != "tensor(float)" or not 1 <= len(shape) <= 3 or not is_mono:
            raise self._error(
                f"its input is {inputs[0].type} of shape {_format_shape(shape)}; it must be tensor(float) of "
                f"shape (batch, samples), (batch, 1, samples) or (samples)"
            )
        if isinstance(shape[-1], int) and shape[-1] != model.n_samples:
            raise self._error(
                f"its input has {shape[-1]:,} samples ({shape[-1] / model.sample_rate:g} s at "
                f"{model.sample_rate:,} Hz), but a window of {model.window_s:g} s has {model.n_samples:,}"
            )
        return inputs[0].name, shape

    def _find_output(self) -> str:
        names, wanted = [one.name for one in self._session.get_outputs()], self._model.output
        if wanted in names:
            return wanted
        if wanted or len(names) != 1:
            problem = f"it has no output named {wanted!r}" if wanted else f"it has {len(names)} outputs"
            raise self._error(
                f"{problem}. Choose the output that contains the vector ({shorten_message(', '.join(names))})"
            )
        return names[0]

    def mean_vector(self, sound: Float32Array) -> Float32Array:
        total: Any = 0.0
        for start in range(0, len(sound), self._batch):
            total = total + self._run(sound[start : start + self._batch]).sum(axis=0)
        with np.errstate(over="ignore"):
            return np.asarray(total / len(sound), dtype=np.float32)

    def _run(self, sound: Float32Array) -> npt.NDArray[np.float64]:
        """Return one vector per window, float64 (n, d)."""
        n = len(sound)
        if self._is_fixed and n < self._batch:
            sound = np.concatenate([sound, np.zeros((self._batch - n, sound.shape[1]), np.float32)])
        samples = sound[:, None] if len(self._shape) == 3 else sound[0] if len(self._shape) == 1 else sound
        try:
            (output,) = self._session.run([self._output], {self._input: np.ascontiguousarray(samples)})
        except MemoryError:
            raise
        except Exception as error:
            sound_text = f"{self._model.window_s:g} s of audio at {self._model.sample_rate:,} Hz"
            raise self._error(f"it fails on {sound_text} ({_shorten(error)})") from error
        if not isinstance(output, np.ndarray) or output.dtype.kind != "f" or not 0 < output.ndim <= 3:
            raise self._output_error(output)
        if len(self._shape) == 1:
            output = output.reshape(1, -1, output.shape[-1])
        if output.ndim == 1 or len(output) != len(sound) or not output.size or output.shape[-1] > MAX_WIDE:
            raise self._output_error(output)
        vectors = output.astype(np.float64)[:n]
        return vectors.mean(axis=1) if vectors.ndim == 3 else vectors

    def _output_error(self, output: Any) -> ModelError:
        kind = _format_shape(output.shape) if isinstance(output, np.ndarray) else type(output).__name__
        return self._error(
            f"its output {self._output} is {kind}; it must contain floats of shape (batch, d) or (batch, frames, d), "
            f"where d is at most {MAX_WIDE:,}"
        )


_load = lru_cache(maxsize=1)(_Session)


def _shorten(error: Exception) -> str:
    return shorten_message(re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", str(error)))


def _format_shape(shape: Any) -> str:
    return f"({', '.join(str(size or '?') for size in shape)})"
