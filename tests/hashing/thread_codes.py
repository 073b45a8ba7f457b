"""Codes of four fitted hashes, for comparison across processes: ``python -m tests.hashing.thread_codes``."""

import sys

import numpy as np

from musicsim.hashing import RandomProjectionHash, RankHash, SpectralHash

__all__ = ["codes_in_hex"]


def codes_in_hex() -> str:
    """Return codes of rows, and of rows as near to a hyperplane as float precision allows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 300)).astype(np.float32).astype(np.float64)
    y = rng.integers(4, size=600)
    parts = []
    for hashing in (
        RankHash(70, ranknet_steps=12, lambdarank_steps=8, random_state=0),
        RankHash(70, n_hidden=40, ranknet_steps=12, lambdarank_steps=8, random_state=0),
        SpectralHash(70),
        RandomProjectionHash(70, random_state=0),
    ):
        hashing.fit(X[:400], y[:400])
        normal = hashing.projection_.weights[: X.shape[1], 0] / 2.0**20
        plane = X[400:] - np.outer((X[400:] - X[400:].mean(axis=0)) @ normal, normal) / (normal @ normal)
        parts += [hashing.transform(X), hashing.transform(np.round(plane, 3))]
    return "".join(part.tobytes().hex() for part in parts)


if __name__ == "__main__":
    sys.stdout.write(codes_in_hex())
