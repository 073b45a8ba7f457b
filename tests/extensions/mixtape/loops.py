"""Drum loops with known beats, on one of two channels, which separates the songs of a fade."""

import numpy as np

RATE = 44_100
LEFT, RIGHT = 0, 1


def loop(tempo, seconds, *, channel, offset_s=0.3, seed=0):
    """Return a drum loop on one channel: a low thump with noise on every beat."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(0.08 * RATE)) / RATE
    thump = 0.6 * np.sin(2 * np.pi * 90 * t) * np.exp(-t / 0.02)
    y = np.zeros((round(seconds * RATE) + len(t), 2), np.float32)
    for at_s in np.arange(offset_s, seconds, 60 / tempo):
        start = round(at_s * RATE)
        y[start : start + len(t), channel] += thump + 0.2 * rng.standard_normal(len(t)) * np.exp(-t / 2e-3)
    return y[: round(seconds * RATE)]
