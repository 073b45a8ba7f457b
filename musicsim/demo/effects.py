"""What happens to a sound between the instrument and the loudspeaker: echo, pumping, room, tone, level.

Conventions: float32 planar stereo (2, n_samples) at ``SAMPLE_RATE``.
"""

import numpy as np
import numpy.typing as npt

from musicsim.demo.voices import SAMPLE_RATE

__all__ = ["add_echo", "ducking", "master", "pan_gains", "reverberate", "tone_control"]

Sound = npt.NDArray[np.float32]


def pan_gains(pan: float) -> tuple[np.float32, np.float32]:
    """Gains left and right of equal power; `pan` from -1 (left) to 1 (right)."""
    angle = (np.clip(pan, -1.0, 1.0) + 1.0) * np.pi / 4.0
    return np.float32(np.cos(angle) * np.sqrt(2.0)), np.float32(np.sin(angle) * np.sqrt(2.0))


def add_echo(sound: Sound, delay_s: float, amount: float) -> None:
    """Three echoes, in place, each on the other side of the one before."""
    delay = round(delay_s * SAMPLE_RATE)
    dry = sound.copy()
    for i in (1, 2, 3):
        shift = i * delay
        if shift >= sound.shape[1]:
            break
        source = dry if i % 2 == 0 else dry[::-1]
        sound[:, shift:] += np.float32(amount**i) * source[:, :-shift]


def ducking(starts: npt.NDArray[np.int64], n: int, depth: float) -> Sound:
    """Gain (n,) that dips at each of `starts` and is back after a fifth of a second."""
    length = round(0.22 * SAMPLE_RATE)
    dip = 1.0 - depth * np.cos(np.linspace(0.0, np.pi / 2.0, length, dtype=np.float32)) ** 2
    gain = np.ones(n + length, dtype=np.float32)
    for start in starts:
        gain[start : start + length] = dip
    return gain[:n]


def reverberate(send: Sound, seconds: float, damping_hz: float, rng: np.random.Generator) -> Sound:
    """A room around a mono signal.

    Parameters
    ----------
    send : ndarray of shape (n,), float32
    seconds : float > 0
        Until the room has fallen by 60 dB.
    damping_hz : float
        The walls take what lies above it faster away.
    rng : numpy.random.Generator
        Two rooms never have the same reflections.

    Returns
    -------
    ndarray of shape (2, n), float32
        Convolved, at half the sample rate (a room is dull), with noise that dies away: the impulse
        response of a diffuse field; left and right are independent, which is what makes it wide.
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
    # Bright and dull noise with decays of their own: the highs go first, as in a real room.
    response = dull * decay + np.float32(0.35) * noise * decay**3
    response[:, : round(0.012 * half)] = 0.0
    response /= np.sqrt(np.sum(response**2, axis=1, keepdims=True))
    wet = fftconvolve(low[None, :], response, axes=1)[:, : low.size].astype(np.float32)
    full = np.empty((2, 2 * low.size), dtype=np.float32)
    full[:, ::2] = wet
    full[:, 1:-1:2] = 0.5 * (wet[:, :-1] + wet[:, 1:])
    full[:, -1] = wet[:, -1]
    return full[:, :n]


def tone_control(sound: Sound, bass_db: float, treble_db: float) -> Sound:
    """Two first-order shelves, below 180 Hz and above 3 kHz, in one pass."""
    from scipy.signal import lfilter

    b_low, a_low = _shelf(180.0, 0.0, bass_db)
    b_high, a_high = _shelf(3000.0, treble_db, 0.0)
    b = np.convolve(b_low, b_high)
    a = np.convolve(a_low, a_high)
    return lfilter(b, a, sound, axis=1).astype(np.float32)


def _shelf(hz: float, high_db: float, low_db: float) -> tuple[npt.NDArray, npt.NDArray]:
    """First-order shelf (bilinear transform) with the given gains far above and far below `hz`."""
    high, low = 10.0 ** (high_db / 20.0), 10.0 ** (low_db / 20.0)
    w = np.tan(np.pi * hz / SAMPLE_RATE)
    # The corner is moved so that half of the gain in decibels is reached at `hz` for cuts and boosts alike.
    w *= np.sqrt(high / low)
    ratio = low * w / high
    b = high * np.array([1.0 + ratio, ratio - 1.0])
    a = np.array([1.0 + w, w - 1.0])
    return b / a[0], a / a[0]


def master(sound: Sound, loudness: float, fade_out_s: float, ceiling: float = 0.93) -> Sound:
    """Bring a mix to its loudness (RMS of its louder half), bend the peaks under the ceiling, fade the ends."""
    sound = sound - sound.mean(axis=1, keepdims=True)
    block = SAMPLE_RATE // 4
    n_blocks = sound.shape[1] // block
    power = (
        np.square(sound[:, : n_blocks * block])
        .reshape(2, n_blocks, block)
        .mean(axis=(0, 2), dtype=np.float64)
    )
    level = np.sqrt(np.sort(power)[n_blocks // 2 :].mean())
    sound *= np.float32(loudness / max(level, 1e-9))
    knee = np.float32(0.6)
    loud = np.abs(sound) > knee
    over = sound[loud]
    room = np.float32(ceiling) - knee
    sound[loud] = np.sign(over) * (knee + room * np.tanh((np.abs(over) - knee) / room))
    n_in, n_out = round(0.02 * SAMPLE_RATE), round(fade_out_s * SAMPLE_RATE)
    sound[:, :n_in] *= np.linspace(0.0, 1.0, n_in, dtype=np.float32)
    sound[:, -n_out:] *= np.linspace(1.0, 0.0, n_out, dtype=np.float32) ** 1.5
    return sound
