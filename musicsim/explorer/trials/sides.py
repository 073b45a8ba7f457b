"""Chance in blind trials: seeds that are stored, and random sides."""

from typing import TypeVar

import numpy as np

T = TypeVar("T")
_SEEDS = 1 << 31


def draw_seed(rng: int | np.random.Generator | None = None) -> int:
    """Return a seed to store, from which a question or a trial can be drawn again; a given integer is this seed."""
    return rng if isinstance(rng, int) else int(np.random.default_rng(rng).integers(_SEEDS))


def shuffle_sides(first: T, second: T, rng: np.random.Generator) -> tuple[T, T]:
    """Return two things in random order."""
    return (second, first) if rng.random() < 0.5 else (first, second)
