"""Audio effects and mastering, for float32 planar stereo (2, n_samples) at ``SAMPLE_RATE``."""

import numpy as np

from musicsim._arrays import Float32Array, Float64Array, FloatingArray, Int64Array
from musicsim.demo.voices import SAMPLE_RATE


def pan_gains(pan: float) -> tuple[np.float32, np.float32]:
    """Return the left and right gains for constant power; `pan` ranges from -1 (left) to 1 (right)."""
    angle = (np.clip(pan, -1.0, 1.0) + 1.0) * np.pi / 4.0
    return np.float32(np.cos(angle) * np.sqrt(2.0)), np.float32(np.sin(angle) * np.sqrt(2.0))


def add_echo(sound: Float32Array, delay_s: float, amount: float) -> None:
    """Add three echoes in place; the channels are swapped in each repeat."""
    delay = round(delay_s * SAMPLE_RATE)
    dry = sound.copy()
    for i in (1, 2, 3):
        shift = i * delay
        if shift >= sound.shape[1]:
            break
        source = dry if i % 2 == 0 else dry[::-1]
        sound[:, shift:] += np.float32(amount**i) * source[:, :-shift]


def glide(values: FloatingArray, step: int, n: int) -> Float32Array:
    """Interpolate linearly between `values`, `step` samples apart, and return the first `n` samples."""
    values = values.astype(np.float32)
    ramp = np.arange(step, dtype=np.float32) / np.float32(step)
    return (values[:-1, None] + np.diff(values)[:, None] * ramp).ravel()[:n]


def sweep_filter(sound: Float32Array, hz: float, closed: Float64Array) -> None:
    """Fade a low-pass filter at `hz` in and out, in place; `closed` is the share of filtered sound (0-1) over time."""
    from scipy.signal import lfilter

    pole = np.exp(-2.0 * np.pi * hz / SAMPLE_RATE)
    b, a = np.array([1.0 - pole], np.float32), np.array([1.0, -pole], np.float32)
    n = sound.shape[1]
    share = glide(closed, -(-n // (closed.size - 1)), n)
    sound += share * (lfilter(b, a, sound, axis=1) - sound)


def ducking(starts: Int64Array, n: int, depth: float) -> Float32Array:
    """Return a gain (n,) that dips at each of `starts` and recovers within a fifth of a second."""
    length = round(0.22 * SAMPLE_RATE)
    dip = 1.0 - depth * np.cos(np.linspace(0.0, np.pi / 2.0, length, dtype=np.float32)) ** 2
    gain = np.ones(n + length, dtype=np.float32)
    for start in starts:
        gain[start : start + length] = dip
    return gain[:n]


def reverberate(send: Float32Array, seconds: float, damping_hz: float, rng: np.random.Generator) -> Float32Array:
    """Add a room's reverberation to a mono signal (n,) and return float32 (2, n).

    The impulse response is noise that decays by 60 dB in `seconds`; frequencies above `damping_hz` decay faster.
    """
    from scipy.signal import fftconvolve, lfilter

    half = SAMPLE_RATE / 2.0
    n = send.size
    padded = np.pad(send, (1, 2 + n % 2))
    low = 0.25 * padded[:-2:2] + 0.5 * padded[1:-1:2] + 0.25 * padded[2::2]
    length = round(min(seconds * 0.85, 3.2) * half)
    time = np.arange(length, dtype=np.float32) / np.float32(half)
    noise = rng.standard_normal((2, length), dtype=np.float32)
    pole = np.float32(np.exp(-2.0 * np.pi * damping_hz / half))
    dull = lfilter([1.0 - pole], [1.0, -pole], noise, axis=1).astype(np.float32)
    decay = np.exp(-time * np.float32(6.9 / seconds))
    # Bright and dull noise have separate decays. High frequencies decay first, as in a real room.
    response = dull * decay + np.float32(0.35) * noise * decay**3
    response[:, : round(0.012 * half)] = 0.0
    response /= np.sqrt(np.sum(response**2, axis=1, keepdims=True))
    wet = fftconvolve(low[None, :], response, axes=1)[:, : low.size].astype(np.float32)
    full = np.empty((2, 2 * low.size), dtype=np.float32)
    full[:, ::2] = wet
    full[:, 1:-1:2] = 0.5 * (wet[:, :-1] + wet[:, 1:])
    full[:, -1] = wet[:, -1]
    return full[:, :n]


def balance(sound: Float32Array, target_db: Float64Array, color_db: Float64Array, strength: float) -> Float32Array:
    """Equalize a mix (2, n) towards a spectrum, as a mastering engineer does; no octave changes by more than 9 dB.

    `target_db` (8,) is the power in the octaves at 63, 125, ... 8000 Hz; only differences matter. `color_db` (24,) is
    the coloration that is added, in third octaves from 63 Hz. `strength` is the share of the difference to correct.
    """
    from scipy.signal import oaconvolve

    change = target_db - _octave_levels(sound)
    change -= change[2:6].mean()
    change = np.clip(strength * change, -9.0, 9.0)
    change = np.interp(np.arange(24) / 3.0, np.arange(8), change) + color_db
    hz = np.fft.rfftfreq(_TAPS, 1.0 / SAMPLE_RATE)
    curve = 10.0 ** (np.interp(np.log2(np.maximum(hz, 20.0) / _OCTAVES[0]), np.arange(24) / 3.0, change) / 20.0)
    response = np.roll(np.fft.irfft(curve), _TAPS // 2) * np.hanning(_TAPS)
    return oaconvolve(sound, response[None, :].astype(np.float32), mode="same", axes=1)


_OCTAVES = 62.5 * 2.0 ** np.arange(8)
_TAPS = 1024


def _octave_levels(sound: Float32Array) -> Float64Array:
    """Return the mean power in each octave, in dB, over sixty windows spread across the sound."""
    size = 4096
    starts = np.linspace(0, max(sound.shape[1] - size, 0), 60).astype(np.int64)
    middle = sound[0] + sound[1]
    windows = middle[starts[:, None] + np.arange(size)] * np.hanning(size).astype(np.float32)
    power = np.square(np.abs(np.fft.rfft(windows, axis=1))).mean(axis=0)
    edges = np.round(np.append(_OCTAVES, 2.0 * _OCTAVES[-1]) / np.sqrt(2.0) * size / SAMPLE_RATE).astype(int)
    return 10.0 * np.log10(np.add.reduceat(power[: edges[-1]], edges[:-1]) + 1e-9)


def compress(sound: Float32Array, amount: float) -> Float32Array:
    """Reduce changes in level: a gain of -`amount` dB for each dB above the sound's median, smoothed."""
    block = SAMPLE_RATE // 50
    n_blocks = sound.shape[1] // block
    power = np.square(sound[:, : n_blocks * block]).reshape(2, n_blocks, block).mean(axis=(0, 2))
    smooth = np.convolve(power, np.full(9, 1.0 / 9.0), mode="same") + 1e-9
    change_db = np.clip(-amount * 10.0 * np.log10(smooth / np.median(smooth)), -8.0, 8.0)
    gain = np.pad(10.0 ** (change_db / 20.0), (0, 2), mode="edge")
    return sound * glide(gain, block, sound.shape[1])


def room_tone(n: int, level_db: float, tilt_db: float, rng: np.random.Generator) -> Float32Array:
    """Synthesize a room's background noise: float32 (2, n); `level_db` is its RMS, `tilt_db` its slope per octave."""
    size = 3 * SAMPLE_RATE
    hz = np.maximum(np.fft.rfftfreq(size, 1.0 / SAMPLE_RATE), 60.0)
    shape = 10.0 ** (tilt_db * np.log2(hz / 1000.0) / 20.0)
    noise = np.fft.irfft(np.fft.rfft(rng.standard_normal(size, dtype=np.float32)) * shape, n=size)
    loop = (noise * (10.0 ** (level_db / 20.0) / noise.std())).astype(np.float32)
    return np.stack([np.resize(loop, n), np.resize(np.roll(loop, SAMPLE_RATE + 1234), n)])


def master(sound: Float32Array, loudness: float, noise: Float32Array, fade_out_s: float) -> Float32Array:
    """Bring a mix to a loudness (RMS of its louder half), add the noise, limit the peaks, and fade the ends."""
    sound = sound - sound.mean(axis=1, keepdims=True)
    block = SAMPLE_RATE // 4
    n_blocks = sound.shape[1] // block
    power = np.square(sound[:, : n_blocks * block]).reshape(2, n_blocks, block).mean(axis=(0, 2), dtype=np.float64)
    level = np.sqrt(np.sort(power)[n_blocks // 2 :].mean())
    sound *= np.float32(loudness / max(level, 1e-9))
    sound += noise
    knee = np.float32(0.6)
    loud = np.abs(sound) > knee
    over = sound[loud]
    room = np.float32(0.93) - knee
    sound[loud] = np.sign(over) * (knee + room * np.tanh((np.abs(over) - knee) / room))
    n_in, n_out = round(0.02 * SAMPLE_RATE), round(fade_out_s * SAMPLE_RATE)
    sound[:, :n_in] *= np.linspace(0.0, 1.0, n_in, dtype=np.float32)
    sound[:, -n_out:] *= np.linspace(1.0, 0.0, n_out, dtype=np.float32) ** 1.5
    return sound
