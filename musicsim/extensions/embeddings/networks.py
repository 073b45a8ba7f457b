"""Audio networks: ONNX files that compute one vector per song.

A file is not trusted, so worker processes run it with limits. A song's vector is the mean of the outputs for evenly
spaced windows; a short song is padded with zeros. The network's only input is float32 of shape (batch, samples),
(batch, 1, samples) or (samples,); with a front end, it is a patch of its mel spectrogram: (batch, frames, bands),
(batch, 1, frames, bands) or (batch, frames, bands, 1). The output has shape (batch, d) or (batch, frames, d).
"""

from __future__ import annotations

import json
import logging
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
import soxr

from musicsim import addresses, audio, extras
from musicsim._arrays import Float32Array, Float64Array
from musicsim.audio import SAMPLE_RATE
from musicsim.errors import LibraryError, ModelError
from musicsim.extensions.embeddings.vectors import MAX_WIDE, VectorRows
from musicsim.library import (
    Library,
    Limits,
    LocalPool,
    OverTimeError,
    WorkerDied,
    content_hash,
    failure_reason,
    shorten_message,
)
from musicsim.progress import Progress

_log = logging.getLogger(__name__)

MIN_RATE, MAX_RATE = 1_000, 192_000
MIN_WINDOW_S, MAX_WINDOW_S = 0.1, 120.0
MAX_SONG_S = 1_800.0  # maximum number of seconds used per song; the rest is ignored
_MAX_BYTES = 2**31  # maximum size of an ONNX file, a limit of protobuf
_SAMPLES_AT_ONCE = 2**20  # maximum number of samples in a batch
_PATCHES_AT_ONCE = 1  # the layers of MusiCNN fill the processor's cache; batches of 4 take 1.1 times as long or more
_MAX_EVERY = 100
_PATCH_S = 3.0  # length of a patch if the model accepts any length
_TIMES_ITS_SIZE = 4  # memory of a loaded model, as a multiple of its file size
_FRAMES_AT_ONCE = 512  # of a spectrogram
_USUAL_OUTPUTS = ("audio_embeds", "text_embeds")  # vectors in the space that both networks of a CLAP export share
_SEED = 0
_METHOD = 1  # increase this if a code change alters the vectors for the same file and settings


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """Settings of a mel spectrogram, the input of a network."""

    sample_rate: int  # Hz
    frame: int  # samples per frame
    fft: int  # samples per transform; frames are padded with zeros
    hop: int  # samples between the starts of frames
    n_bands: int
    band_hz: tuple[float, float]  # lower corner of the lowest band, and upper corner of the highest one
    is_htk: bool  # HTK's mel scale with triangles of height 1, or Slaney's with triangles of equal area
    is_power: bool  # bands of the power spectrum, or of the magnitude
    is_centered: bool  # the first frame is centered on the first sample, or starts with it
    compress: Callable[[Float32Array], Float32Array]
    n_frames: int | None = None
    """Frames of a patch that is transformed alone: mirrored at its ends, and repeated if the sound is shorter."""

    def spectrogram(self, samples: Float32Array) -> Float32Array:
        """Return the mel spectrogram of samples at the sample rate, float32 (n_frames, n_bands)."""
        return self._transform(self._pad(samples))

    def patches(self, samples: Float32Array, n_frames: int, every: int = 1) -> Float32Array:
        """Return every n-th patch of the spectrogram, (n_patches, n_frames, n_bands).

        An incomplete last patch is dropped; a sound shorter than one patch is padded with silence. If `every` is above
        1, the first patch is in the middle of the first `every` patches, because songs often begin quietly.
        """
        if self.n_frames is None:
            samples = self._pad(samples)
            length, step = (n_frames - 1) * self.hop + self.frame, n_frames * self.hop
            samples = np.pad(samples, (0, max(0, length - len(samples))))
            n_patches = (1 + (len(samples) - self.frame) // self.hop) // n_frames
        else:
            length = step = (n_frames - 1) * self.hop
            samples = np.tile(samples, max(1, length // max(1, len(samples))))
            samples = np.pad(samples, (0, max(0, length - len(samples))))
            n_patches = len(samples) // length
        first = min((every - 1) // 2, (n_patches - 1) // 2)
        starts = (np.arange(first, n_patches, every) * step).tolist()
        patches = (samples[start : start + length] for start in starts)
        return np.stack([self._transform(patch if self.n_frames is None else self._pad(patch)) for patch in patches])

    def _pad(self, samples: Float32Array) -> Float32Array:
        pad = self.frame // 2 if self.is_centered else 0
        if self.n_frames is not None and len(samples) > pad:
            return np.pad(samples, pad, mode="reflect")
        return np.pad(samples, (pad, max(pad, self.frame - pad - len(samples))))

    def _transform(self, samples: Float32Array) -> Float32Array:
        frames = np.lib.stride_tricks.sliding_window_view(samples, self.frame)[:: self.hop]
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(self.frame) / self.frame)
        bands = np.empty((len(frames), self.n_bands), np.float32)
        for start in range(0, len(frames), _FRAMES_AT_ONCE):
            spectrum = np.abs(np.fft.rfft(frames[start : start + _FRAMES_AT_ONCE] * window, self.fft))
            bands[start : start + _FRAMES_AT_ONCE] = (spectrum**2 if self.is_power else spectrum) @ _filters(self)
        return self.compress(bands)


@lru_cache(maxsize=4)
def _filters(front_end: FrontEnd) -> Float64Array:
    """Return the mel filters, (1 + fft // 2, n_bands)."""
    to_mel, to_hz = (_htk_mel, _htk_hz) if front_end.is_htk else (_slaney_mel, _slaney_hz)
    low, high = to_mel(np.array(front_end.band_hz))
    mel: Float64Array = np.linspace(low, high, front_end.n_bands + 2)
    hz = np.arange(1 + front_end.fft // 2, dtype=np.float64) * (front_end.sample_rate / front_end.fft)
    # HTK's triangles are linear in mel, Slaney's in Hz
    corners, bins = (mel, to_mel(hz)) if front_end.is_htk else (to_hz(mel), hz)
    rising = (bins[:, None] - corners[:-2]) / np.diff(corners)[:-1]
    falling = (corners[2:] - bins[:, None]) / np.diff(corners)[1:]
    triangles = np.maximum(0, np.minimum(rising, falling))
    return triangles if front_end.is_htk else triangles * 2 / (corners[2:] - corners[:-2])


def _slaney_mel(hz: Float64Array) -> Float64Array:
    """Linear below 1 kHz (3 mel per 200 Hz), logarithmic above (27 mel per factor of 6.4)."""
    return np.where(hz < 1000, hz * 3 / 200, 15 + 27 * np.log(np.maximum(hz, 1000) / 1000) / np.log(6.4))


def _slaney_hz(mel: Float64Array) -> Float64Array:
    return np.where(mel < 15, mel * 200 / 3, 1000 * 6.4 ** ((mel - 15) / 27))


def _htk_mel(hz: Float64Array) -> Float64Array:
    return 1127 * np.log1p(hz / 700)


def _htk_hz(mel: Float64Array) -> Float64Array:
    return 700 * np.expm1(mel / 1127)


def _compress_musicnn(power: Float32Array) -> Float32Array:
    return np.log10(10_000 * power + 1)


def _compress_vggish(magnitude: Float32Array) -> Float32Array:
    return np.log(magnitude + np.float32(0.01))


def _to_decibels(power: Float32Array) -> Float32Array:
    return 10 * np.log10(np.maximum(power, np.float32(1e-10)))


FRONT_ENDS: Mapping[str, FrontEnd] = {
    "musicnn": FrontEnd(16_000, 512, 512, 256, 96, (0, 8_000), False, True, True, _compress_musicnn),
    "essentia": FrontEnd(16_000, 512, 512, 256, 96, (0, 8_000), False, True, False, _compress_musicnn),
    "vggish": FrontEnd(16_000, 400, 512, 160, 64, (125, 7_500), True, False, False, _compress_vggish),
    "librosa": FrontEnd(22_050, 2_048, 2_048, 512, 128, (0, 11_025), False, True, True, _to_decibels),
    "clap": FrontEnd(48_000, 1_024, 1_024, 480, 64, (50, 14_000), False, True, True, _to_decibels, 1_001),
}
"""Mel spectrograms by name. All but `librosa` are those that the networks of the same name were trained on. Frames are
centered and zero-padded at the ends, except for `vggish` and `clap`. `essentia` is the input of Essentia's models for
MusiCNN and EffNet; `librosa` uses the default settings of librosa.feature.melspectrogram, in dB without a limit below
the loudest band. `clap` is the input of LAION's CLAP without fusion: windows of ten seconds ("rand_trunc" and
"repeatpad" in transformers)."""


class Encoder(NamedTuple):
    """The input of a well-known network, and the license of its weights."""

    sample_rate: int  # Hz
    window_s: float
    license: str
    source: str


ENCODERS: Mapping[str, Encoder] = {
    "mert": Encoder(24_000, 5.0, "CC BY-NC 4.0", "https://huggingface.co/m-a-p/MERT-v1-95M"),
    "muq": Encoder(24_000, 30.0, "CC BY-NC 4.0", "https://huggingface.co/OpenMuQ/MuQ-large-msd-iter"),
}
"""Networks by name whose input is samples, exported to ONNX by the user. Windows are those of their training (MERT) or
of the usual programs (MuQ, which takes any length)."""


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

    def count_dimensions(self) -> int:
        """Run the model on noise and return the length of its vectors."""
        noise = np.random.default_rng(_SEED).uniform(-0.1, 0.1, 2 * self.n_samples).astype(np.float32)
        return len(_load(self).song_vector(noise))

    def open(self, sample_rate: int) -> SongStream:
        """Begin a song with samples at this rate."""
        return SongStream(self, sample_rate)

    @property
    def summary(self) -> str:
        output = f", output {self.output}" if self.output else ""
        windows = f"windows of {self.window_s:g} s" if not self.front_end else f"patches, front end {self.front_end}"
        return f"Computed by {self.path.name} (hash {self.digest}) at {self.sample_rate:,} Hz, in {windows}{output}."


class TriedNetwork(Protocol):
    """An ONNX file that :func:`try_network` runs once."""

    @property
    def path(self) -> Path: ...
    def count_dimensions(self) -> int:
        """Run the network, and return the length of its vectors."""


@dataclass(frozen=True, slots=True)
class Described:
    model: OnnxModel
    hashes: list[str]  # hash of each song's file
    vectors: Float32Array  # (n_songs, d)
    problems: list[str]  # one sentence per song without a vector


def compute_vectors(library: Library, model: OnnxModel, progress: Progress) -> Described:
    """Run an ONNX model on the songs in a library; vectors are cached, so that an interrupted run can be resumed."""
    model, width = try_audio(library, model, progress)
    rows = VectorRows(library.folder / "cache" / f"onnx-{model.key}.rows", width)
    songs = {song.content_hash: song.path for song in library.songs()}
    problems = [reason for _, _, reason in append_vectors(library, model, rows, songs, progress)]
    hashes, vectors = rows.select(songs)
    return Described(model, hashes, vectors, problems)


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


def try_audio(library: Library, model: OnnxModel, progress: Progress) -> tuple[OnnxModel, int]:
    """Return a network with its hash, and the width of its output in a trial run; raises ModelError if it fails."""
    progress(f"reading {model.path.name}", 0, 0)
    model = replace(model, digest=hash_network(model.path))
    return model, try_network(library, model, progress)


def try_network(library: Library, model: TriedNetwork, progress: Progress) -> int:
    """Run a network once in a worker; return the length of its vectors, or raise ModelError with a reason."""
    outcome: Any = None
    limits = _limits(library, model.path)
    with closing(LocalPool(1).outcomes(methodcaller("count_dimensions"), [model], limits=limits)) as items:
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


def song_vector(model: OnnxModel, path: Path) -> Float32Array:
    """Return the vector of a song, float32 (d,). Raises ModelError if it is not finite or contains only zeros."""
    # a network with a front end gets the samples of the analysis, so that its vectors are the same in a scan
    rate = SAMPLE_RATE if model.front_end else model.sample_rate
    sound = audio.decode(addresses.resolve_address(path), sr=rate, duration=MAX_SONG_S, name=str(path))
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


class NetworkSession:
    """A loaded ONNX file. Raises ModelError if it cannot be loaded, or LibraryError if onnxruntime is not installed."""

    def __init__(self, path: Path, digest: str) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise LibraryError(f"{path.name} needs onnxruntime. Run: {extras.install_command('onnx')}") from error
        self._name = path.name
        data = path.read_bytes()
        if content_hash(data) != digest:
            raise ModelError(f"{path.name} changed during the run. Start again.")
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
            problem = f"it cannot be loaded ({shorten_error(error)}). Use a single file that includes the weights"
            raise self.error(problem) from error
        self.inputs: list[Any] = self._session.get_inputs()

    def error(self, problem: str) -> ModelError:
        return ModelError(f"{self._name}: {problem}.")

    def find_output(self, wanted: str = "") -> str:
        """Return the name of the output with the vector; raises ModelError if there is no single choice."""
        names = [one.name for one in self._session.get_outputs()]
        usual = [name for name in _USUAL_OUTPUTS if name in names]
        if wanted in names:
            return wanted
        if not wanted and len(usual or names) == 1:
            return (usual or names)[0]
        problem = f"it has no output named {wanted!r}" if wanted else f"it has {len(names)} outputs"
        raise self.error(f"{problem}. Choose the output that contains the vector ({shorten_message(', '.join(names))})")

    def run(self, output: str, inputs: Mapping[str, npt.NDArray[Any]], described: str) -> Any:
        """Return an output; `described` names the inputs in the ModelError for a run that fails."""
        try:
            return self._session.run([output], inputs)[0]
        except MemoryError:
            raise
        except Exception as error:
            raise self.error(f"it fails on {described} ({shorten_error(error)})") from error


def shorten_error(error: Exception) -> str:
    return shorten_message(re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", str(error)))


class _Session:
    """A loaded model. Raises ModelError if the file cannot be loaded, or its input is not audio."""

    def __init__(self, model: OnnxModel) -> None:
        self._model = model
        self._session = NetworkSession(model.path, model.digest)
        self._front_end = FRONT_ENDS.get(model.front_end)
        self._input, self._shape = self._find_input()
        self._inner = self._find_window()  # shape of one input without the batch
        self._output = self._session.find_output(model.output)
        fixed = self._shape[0] if len(self._shape) > 1 and isinstance(self._shape[0], int) else None
        n_at_once = _PATCHES_AT_ONCE if self._front_end else max(1, _SAMPLES_AT_ONCE // model.n_samples)
        self._batch, self._is_fixed = (fixed, True) if fixed else (1 if len(self._shape) == 1 else n_at_once, False)

    def _find_input(self) -> tuple[str, list[int | str | None]]:
        inputs = self._session.inputs
        if len(inputs) != 1:
            names = ", ".join(one.name for one in inputs) or "none"
            raise self._session.error(
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
            raise self._session.error(
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
        return self._session.error(
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
        sound = f"{self._model.window_s:g} s of audio at {self._model.sample_rate:,} Hz"
        if self._front_end is not None:
            sound = f"an input of shape {_format_shape(samples.shape)}"
        output = self._session.run(self._output, {self._input: np.ascontiguousarray(samples)}, sound)
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
        return self._session.error(
            f"its output {self._output} is {kind}; it must contain floats of shape (batch, d) or (batch, frames, d), "
            f"where d is at most {MAX_WIDE:,}"
        )


_load = lru_cache(maxsize=1)(_Session)


def _format_shape(shape: Any) -> str:
    return f"({', '.join(str(size or '?') for size in shape)})"
