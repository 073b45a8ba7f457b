"""Mel spectrograms that audio networks take as input, by name.

All but `librosa` are the spectrograms that the networks of the same name were trained on. Frames are centered and
zero-padded at the ends, except for `vggish` and `clap`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from musicsim._arrays import Float32Array, Float64Array

_FRAMES_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """Settings of a mel spectrogram."""

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
"""Front ends by name. `essentia` is the input of Essentia's models for MusiCNN and EffNet; `librosa` uses the default
settings of librosa.feature.melspectrogram, in dB without a limit below the loudest band. `clap` is the input of
LAION's CLAP without fusion: windows of ten seconds ("rand_trunc" and "repeatpad" in transformers)."""
