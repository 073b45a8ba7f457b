"""Song vectors from an ONNX model for audio. The model is not trusted, so worker processes run it with limits.

A song's vector is the mean of the outputs for evenly spaced windows; a short song is padded with zeros. The model's
only input is float32 of shape (batch, samples), (batch, 1, samples) or (samples,); with a front end, it is a patch of
its mel spectrogram: (batch, frames, bands), (batch, 1, frames, bands) or (batch, frames, bands, 1). The output has
shape (batch, d) or (batch, frames, d).
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import soxr

from musicsim import audio
from musicsim._arrays import Float32Array
from musicsim.addresses import resolve_address
from musicsim.audio import SAMPLE_RATE
from musicsim.errors import LibraryError, ModelError
from musicsim.extensions.embeddings.files import MAX_WIDE
from musicsim.extensions.embeddings.front_ends import FRONT_ENDS
from musicsim.extensions.embeddings.sessions import find_output, open_session, shorten_error
from musicsim.library.disk.archives import shorten_message
from musicsim.library.library import Library
from musicsim.library.processes.pools import LocalPool
from musicsim.library.processes.workers import Limits, OverTimeError, WorkerDied
from musicsim.library.scan.failures import failure_reason
from musicsim.library.scan.files import content_hash
from musicsim.progress import Progress
from musicsim.storage import writing_to

_log = logging.getLogger(__name__)

MIN_RATE, MAX_RATE = 1_000, 192_000
MIN_WINDOW_S, MAX_WINDOW_S = 0.1, 120.0
MAX_SONG_S = 1_800.0  # maximum number of seconds used per song; the rest is ignored
_MAX_BYTES = 2**31  # maximum size of an ONNX file, a limit of protobuf
_SAMPLES_AT_ONCE = 2**20  # maximum number of samples in a batch
_PATCHES_AT_ONCE = 1  # the layers of MusiCNN fill the processor's cache; batches of 4 take 1.1 times as long or more
_MAX_EVERY = 100
_PATCH_S = 3.0  # length of a patch if the model accepts any length
_HASH_BYTES = 32
_TIMES_ITS_SIZE = 4  # memory of a loaded model, as a multiple of its file size
_SEED = 0
_METHOD = 1  # increase this if a code change alters the vectors for the same file and settings


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """An ONNX file and its settings. Raises ValueError if a number is out of range."""

    path: Path
    sample_rate: int  # Hz
    window_s: float  # seconds of audio per input; with a front end, the model determines it
    output: str = ""  # name of the output that contains the vector; can be empty if there is only one output
    digest: str = ""  # hash of the file's bytes
    front_end: str = ""  # name in FRONT_ENDS, or empty for a model whose input is samples
    every: int = 1  # with a front end, only every n-th patch of a song is used

    @classmethod
    def on_patches(cls, path: Path, front_end: str, output: str = "", every: int = 1, digest: str = "") -> Self:
        """Return a model whose input is patches of a mel spectrogram."""
        if front_end not in FRONT_ENDS:
            raise ValueError(f"front_end={front_end!r} must be one of {', '.join(FRONT_ENDS)}.")
        if not 1 <= every <= _MAX_EVERY:
            raise ValueError(f"every={every} must be from 1 to {_MAX_EVERY}.")
        return cls(path, FRONT_ENDS[front_end].sample_rate, _PATCH_S, output, digest, front_end, every)

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
        settings = [_METHOD, self.digest, self.sample_rate, self.n_samples, self.output]
        if self.front_end:
            settings += [self.front_end, self.every]
        return content_hash(json.dumps(settings).encode())

    def open(self, sample_rate: int) -> SongStream:
        """Begin a song with samples at this rate."""
        return SongStream(self, sample_rate)

    @property
    def summary(self) -> str:
        output = f", output {self.output}" if self.output else ""
        windows = f"windows of {self.window_s:g} s" if not self.front_end else f"patches, front end {self.front_end}"
        return f"Computed by {self.path.name} (hash {self.digest}) at {self.sample_rate:,} Hz, in {windows}{output}."


@dataclass(frozen=True, slots=True)
class Described:
    model: OnnxModel
    hashes: list[str]  # hash of each song's file
    vectors: Float32Array  # (n_songs, d)
    problems: list[str]  # one sentence per song without a vector


def compute_vectors(library: Library, model: OnnxModel, progress: Progress) -> Described:
    """Run an ONNX model on the songs in a library; vectors are cached, so that an interrupted run can be resumed."""
    model = add_digest(model)
    progress(f"reading {model.path.name}", 0, 0)
    folder = library.folder / "cache"
    rows = VectorRows(folder / f"onnx-{model.key}.rows", find_width(library, model, progress))
    songs = {song.content_hash: song.path for song in library.songs()}
    problems = [reason for _, _, reason in append_vectors(library, model, rows, songs, progress)]
    hashes, vectors = rows.select(songs)
    return Described(model, hashes, vectors, problems)


def add_digest(model: OnnxModel) -> OnnxModel:
    """Return the model with the hash of its file; raises LibraryError if the file cannot be used."""
    return replace(model, digest=hash_network(model.path))


def hash_network(path: Path) -> str:
    """Return the hash of an ONNX file; raises LibraryError if the file cannot be used."""
    try:
        if not path.is_file() or not 0 < path.stat().st_size < _MAX_BYTES:
            raise LibraryError(f"{path.name} is missing, empty or too large. Use an ONNX file smaller than 2 GB.")
        return content_hash(path)
    except OSError as error:
        raise LibraryError(f"{path.name}: this file cannot be read ({error.strerror or error}).") from error


def append_vectors(
    library: Library, model: OnnxModel, rows: VectorRows, songs: Mapping[str, Path], progress: Progress
) -> Iterator[tuple[str, BaseException, str]]:
    """Compute the vectors of songs without a row, in worker processes, and append them; yield the failures.

    `songs` maps hashes to paths. A failure is the song's hash, its error, and a sentence with the reason.
    """
    limits = _limits(library, model.path)
    hash_of = {path: digest for digest, path in songs.items() if digest not in rows.row_of}
    n_done = len(songs) - len(hash_of)
    pool = LocalPool(library.settings["n_workers"])
    with closing(pool.outcomes(partial(song_vector, model), iter(hash_of), limits=limits)) as items:
        for item in items:
            if item is not None:
                path, outcome = item
                n_done += 1
                if isinstance(outcome, BaseException):
                    yield hash_of[path], outcome, failure_reason(path, outcome, limits)
                else:
                    rows.append(hash_of[path], outcome)
            progress(f"running {model.path.name}", n_done, len(songs))


def _limits(library: Library, path: Path) -> Limits:
    n_mb = _TIMES_ITS_SIZE * path.stat().st_size >> 20
    return Limits(library.file_limits.seconds, library.file_limits.memory_mb + n_mb)


def find_width(library: Library, model: OnnxModel, progress: Progress) -> int:
    """Run a model once in a worker; return the length of its vectors, or raise ModelError with a reason."""
    return try_network(library, n_dimensions, model, progress)


def try_network(library: Library, find: Callable[[Any], int], model: Any, progress: Progress) -> int:
    """Call a function with a network, which has a `path`, in a worker; return its result, or raise ModelError."""
    outcome: Any = None
    limits = _limits(library, model.path)
    with closing(LocalPool(1).outcomes(find, [model], limits=limits)) as items:
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


class VectorRows:
    """Vectors in an append-only file, keyed by the hash of each song's file; an incomplete last row is overwritten.

    The file is memory-mapped, because 100,000 vectors of MusiCNN take 620 MB.
    """

    def __init__(self, path: Path, width: int) -> None:
        self._path = path
        self._type = np.dtype([("hash", f"S{_HASH_BYTES}"), ("vector", "<f4", (width,))])
        self.row_of = {digest.decode("ascii", "replace"): row for row, digest in enumerate(self._map()["hash"])}

    def _map(self) -> npt.NDArray[Any]:
        n_rows = self._path.stat().st_size // self._type.itemsize if self._path.exists() else 0
        return np.memmap(self._path, self._type, "r", shape=n_rows) if n_rows else np.empty(0, self._type)

    def append(self, digest: str, vector: Float32Array) -> None:
        row = np.array([(digest.encode("ascii"), vector)], self._type)
        n_rows = len(self.row_of)
        with writing_to(self._path):
            self._path.parent.mkdir(exist_ok=True)
            with self._path.open("r+b" if self._path.exists() else "w+b") as stream:
                stream.truncate(n_rows * self._type.itemsize)
                stream.seek(0, os.SEEK_END)
                stream.write(row.tobytes())
        self.row_of[digest] = n_rows

    def select(self, hashes: Iterable[str]) -> tuple[list[str], Float32Array]:
        """Return the hashes that have a vector, and these vectors, float32 (n, width)."""
        known = [digest for digest in hashes if digest in self.row_of]
        return known, self._map()[[self.row_of[digest] for digest in known]]["vector"]

    def last_columns(self, n: int) -> Float32Array:
        """Return the last columns of all vectors, float32 (n_rows, n)."""
        return np.array(self._map()["vector"][:, -n:])


def n_dimensions(model: OnnxModel) -> int:
    """Run a model on noise and return the length of its vectors."""
    noise = np.random.default_rng(_SEED).uniform(-0.1, 0.1, 2 * model.n_samples).astype(np.float32)
    return len(_load(model).song_vector(noise))


def song_vector(model: OnnxModel, path: Path) -> Float32Array:
    """Return the vector of a song, float32 (d,). Raises ModelError if it is not finite or contains only zeros."""
    # a network with a front end gets the samples of the analysis, so that its vectors are the same in a scan
    rate = SAMPLE_RATE if model.front_end else model.sample_rate
    sound = audio.decode(resolve_address(path), sr=rate, duration=MAX_SONG_S, name=str(path))
    stream = SongStream(model, rate)
    stream.add(sound.samples)
    try:
        return stream.compute()
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error


class SongStream:
    """Samples of one song, at the rate of a model; the model runs when all are known. Memory: 4 bytes per sample."""

    def __init__(self, model: OnnxModel, sample_rate: int) -> None:
        self._model = model
        self._parts: list[Float32Array] = []
        self._n_left = round(MAX_SONG_S * model.sample_rate)
        self._resampler = None
        if sample_rate != model.sample_rate:
            self._resampler = soxr.ResampleStream(sample_rate, model.sample_rate, 1, dtype="float32")

    def add(self, samples: Float32Array) -> None:
        if self._n_left:
            self._keep(samples.copy() if self._resampler is None else self._resampler.resample_chunk(samples))

    def _keep(self, samples: Float32Array) -> None:
        self._parts.append(samples[: self._n_left])
        self._n_left -= len(self._parts[-1])

    def finish(self) -> Float32Array | None:
        try:
            return self.compute()
        except (LibraryError, ModelError) as error:
            _log.warning("%s", error)
            return None

    def compute(self) -> Float32Array:
        """Return the vector, float32 (d,). Raises ModelError if the model fails or its output is not usable."""
        if self._resampler is not None:
            self._keep(self._resampler.resample_chunk(np.empty(0, np.float32), last=True))
        vector = _load(self._model).song_vector(np.concatenate(self._parts))
        if not np.isfinite(vector).all() or not vector.any():
            output = "only zeros" if np.isfinite(vector).all() else "NaN or infinite values"
            raise ModelError(f"the output of {self._model.path.name} contains {output}.")
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
        self._model = model
        self._session = open_session(model.path, model.digest)
        self._front_end = FRONT_ENDS.get(model.front_end)
        self._input, self._shape = self._find_input()
        self._inner = self._find_window()  # shape of one input without the batch
        self._output = find_output(self._session, model.output, model.path.name)
        fixed = self._shape[0] if len(self._shape) > 1 and isinstance(self._shape[0], int) else None
        n_at_once = _PATCHES_AT_ONCE if self._front_end else max(1, _SAMPLES_AT_ONCE // model.n_samples)
        self._batch, self._is_fixed = (fixed, True) if fixed else (1 if len(self._shape) == 1 else n_at_once, False)

    def _error(self, problem: str) -> ModelError:
        return ModelError(f"{self._model.path.name}: {problem}.")

    def _find_input(self) -> tuple[str, list[int | str | None]]:
        inputs = self._session.get_inputs()
        if len(inputs) != 1:
            names = ", ".join(one.name for one in inputs) or "none"
            raise self._error(
                f"it has {len(inputs)} inputs ({shorten_message(names)}); it must have one input, the samples"
            )
        if inputs[0].type != "tensor(float)":
            raise self._input_error(inputs[0].type, inputs[0].shape)
        return inputs[0].name, list(inputs[0].shape)

    def _find_window(self) -> tuple[int, ...]:
        model, shape = self._model, self._shape
        if self._front_end is not None:
            if len(shape) == 4 and shape[3] != 1:  # exports of CLAP leave the number of channels and bands open
                usual_sizes = (1, None, self._front_end.n_bands)
                open_sizes = zip(shape[1:], usual_sizes, strict=True)
                shape = [shape[0], *(size if isinstance(size, int) else usual for size, usual in open_sizes)]
            sizes = [size for size in shape[1:] if size != 1]
            if len(shape) not in (3, 4) or len(sizes) != 2 or sizes[1] != self._front_end.n_bands:
                raise self._input_error("tensor(float)", self._shape)
            usual = self._front_end.n_frames or round(_PATCH_S * model.sample_rate / self._front_end.hop)
            return tuple(size if isinstance(size, int) else usual for size in shape[1:])
        is_mono = len(shape) < 3 or not isinstance(shape[1], int) or shape[1] == 1
        if not 1 <= len(shape) <= 3 or not is_mono:
            raise self._input_error("tensor(float)", shape)
        if isinstance(shape[-1], int) and shape[-1] != model.n_samples:
            raise self._error(
                f"its input has {shape[-1]:,} samples ({shape[-1] / model.sample_rate:g} s at "
                f"{model.sample_rate:,} Hz), but a window of {model.window_s:g} s has {model.n_samples:,}"
            )
        return (1, model.n_samples) if len(shape) == 3 else (model.n_samples,)

    def _input_error(self, kind: str, shape: Any) -> ModelError:
        wanted = "(batch, samples), (batch, 1, samples) or (samples)"
        if self._front_end is not None:
            wanted = (
                f"(batch, frames, {self._front_end.n_bands}), with or without a channel, for {self._model.front_end}"
            )
        return self._error(
            f"its input is {kind} of shape {_format_shape(shape)}; it must be tensor(float) of shape {wanted}"
        )

    def song_vector(self, samples: Float32Array) -> Float32Array:
        """Return the mean of the outputs for a song, float32 (d,)."""
        if self._front_end is None:
            inputs = windows(samples, self._model.n_samples)
        else:
            n_frames = next(size for size in self._inner if size != 1)
            inputs = self._front_end.patches(samples, n_frames, self._model.every)
        total: Any = 0.0
        for start in range(0, len(inputs), self._batch):
            total = total + self._run(inputs[start : start + self._batch]).sum(axis=0)
        with np.errstate(over="ignore"):
            return np.asarray(total / len(inputs), dtype=np.float32)

    def _run(self, inputs: Float32Array) -> npt.NDArray[np.float64]:
        """Return one vector per window or patch, float64 (n, d)."""
        n = len(inputs)
        if self._is_fixed and n < self._batch:
            inputs = np.concatenate([inputs, np.zeros((self._batch - n, *inputs.shape[1:]), np.float32)])
        samples = inputs[0] if len(self._shape) == 1 else inputs.reshape(len(inputs), *self._inner)
        try:
            (output,) = self._session.run([self._output], {self._input: np.ascontiguousarray(samples)})
        except MemoryError:
            raise
        except Exception as error:
            sound_text = f"{self._model.window_s:g} s of audio at {self._model.sample_rate:,} Hz"
            sound_text = sound_text if self._front_end is None else f"an input of shape {_format_shape(samples.shape)}"
            raise self._error(f"it fails on {sound_text} ({shorten_error(error)})") from error
        if not isinstance(output, np.ndarray) or output.dtype.kind != "f" or not 0 < output.ndim <= 3:
            raise self._output_error(output)
        if len(self._shape) == 1:
            output = output.reshape(1, -1, output.shape[-1])
        if output.ndim == 1 or len(output) != len(inputs) or not output.size or output.shape[-1] > MAX_WIDE:
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


def _format_shape(shape: Any) -> str:
    return f"({', '.join(str(size or '?') for size in shape)})"
