"""Loudness of a file according to ITU-R BS.1770-4, and its sample peak, for ReplayGain.

The loudness among a song's descriptors comes from smoothed levels and is a few dB lower, so the file is decoded here.
"""

import contextlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.audio.reader import SoundReader, open_source
from musicsim.errors import AudioDecodeError

_OFFSET = -0.691
_ABSOLUTE_GATE, _RELATIVE_GATE = -70.0, -10.0
_HOPS = 4  # steps of 100 ms per block of 400 ms
_SURROUND = 1.41  # weight of the surround channels; the channel for low-frequency effects has weight 0
_WEIGHTS = {5: (1.0, 1.0, 1.0, _SURROUND, _SURROUND), 6: (1.0, 1.0, 1.0, 0.0, _SURROUND, _SURROUND)}


class Loudness(NamedTuple):
    lufs: float
    peak: float  # largest absolute sample; full scale is 1


def measure_loudness(path: Path) -> Loudness | None:
    """Decode a file block by block, and return its gated loudness; None if it is silent or shorter than 0.4 s.

    Raises AudioDecodeError if the file cannot be decoded, or changes its sampling rate or number of channels.
    """
    from scipy.signal import sosfilt

    source, label = open_source(path, None)
    shape: tuple[int, int] | None = None
    powers: list[Float64Array] = []
    peak = 0.0
    with contextlib.closing(SoundReader(source).blocks()) as blocks:
        for rate, block in blocks:
            n_channels = len(block)
            if shape is None:
                shape = rate, n_channels
                sections = _k_weighting(rate)
                state = np.zeros((len(sections), n_channels, 2))
                weights = np.array(_WEIGHTS.get(n_channels, (1.0,) * n_channels))
                hop, rest = round(rate / 10), np.empty(0)
            if shape != (rate, n_channels):
                raise AudioDecodeError(f"{label} changes its sampling rate or channels, so it has no single loudness.")
            peak = max(peak, float(np.abs(block).max(initial=0.0)))
            weighted, state = sosfilt(sections, block.astype(np.float64), axis=1, zi=state)
            rest = np.concatenate([rest, weights @ np.square(weighted)])
            n_hops = len(rest) // hop
            powers.append(rest[: n_hops * hop].reshape(n_hops, hop).mean(axis=1))
            rest = rest[n_hops * hop :]
    lufs = _gate(np.concatenate(powers)) if powers else None
    return None if lufs is None else Loudness(lufs, peak)


def _gate(powers: Float64Array) -> float | None:
    """Return the loudness of the blocks that pass both gates, given the power of each step of 100 ms."""
    if len(powers) < _HOPS:
        return None
    blocks = np.lib.stride_tricks.sliding_window_view(powers, _HOPS).mean(axis=1)
    passing = blocks[blocks > _power(_ABSOLUTE_GATE)]
    if not len(passing):
        return None
    threshold = _power(_lufs(float(passing.mean())) + _RELATIVE_GATE)
    return _lufs(float(passing[passing > threshold].mean()))


def _lufs(power: float) -> float:
    return _OFFSET + 10 * math.log10(power)


def _power(lufs: float) -> float:
    return float(10 ** ((lufs - _OFFSET) / 10))


def _k_weighting(rate: int) -> Float64Array:
    """Return the two filters of BS.1770, (2, 6), for any sampling rate.

    At 48 kHz, these analog prototypes give the coefficients in the standard's tables 1 and 2.
    """
    k, q = math.tan(math.pi * 1681.974450955533 / rate), 0.7071752369554196
    high = 10 ** (3.999843853973347 / 20)
    band = high**0.4996667741545416
    shelf = [high + band * k / q + k * k, 2 * (k * k - high), high - band * k / q + k * k]
    first = _section(shelf, k, q)
    k, q = math.tan(math.pi * 38.13547087602444 / rate), 0.5003270373238773
    second = _section([1.0, -2.0, 1.0], k, q)
    second[:3] = 1.0, -2.0, 1.0  # the standard does not normalize the gain of this filter
    return np.array([first, second])


def _section(numerator: Sequence[float], k: float, q: float) -> list[float]:
    scale = 1 + k / q + k * k
    return [b / scale for b in numerator] + [1.0, 2 * (k * k - 1) / scale, (1 - k / q + k * k) / scale]
