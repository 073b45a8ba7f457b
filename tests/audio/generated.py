"""Generated sound with a known tempo."""

import numpy as np

from musicsim.audio import SAMPLE_RATE


def clicks(bpm, seconds=30.0, sr=SAMPLE_RATE, every=1, level=0.8, first=0.0):
    """Return clicks that fade within some ms, on every `every`-th pulse."""
    y = np.zeros(round(seconds * sr))
    places = (np.arange(first, seconds, 60 * every / bpm) * sr).astype(int)
    y[places[places < len(y)]] = level
    fading = np.convolve(y, np.exp(-np.arange(round(0.02 * sr)) / (0.004 * sr)))[: len(y)]
    return (fading + 1e-4 * np.random.default_rng(0).standard_normal(len(y))).astype(np.float32)
