"""Random hypergraphs and playlists, and the playlists of yes.com."""

import lzma

import numpy as np

from musicsim.playlist import Hypergraph
from tests.shared import SHARED

YES_SMALL = SHARED / "yes" / "yes_small"


def random_graph(rng, n_songs=9, n_edges=6, *, weighted=False, uniform=True):
    """Return edges of at least two songs each, of very different sizes, and the uniform edge."""
    matrix = rng.random((n_songs, n_edges)) < rng.uniform(0.2, 0.8, n_edges)
    matrix[:2, :] |= matrix.sum(axis=0) < 2
    names = [f"tag:{e}" for e in range(n_edges)]
    if uniform:
        matrix, names = np.hstack([matrix, np.ones((n_songs, 1), dtype=bool)]), [*names, "uniform:all"]
    return Hypergraph(matrix, names, rng.uniform(0.2, 5.0, n_songs) if weighted else None)


def random_playlists(rng, n_songs, count, longest=6):
    """Return playlists of 1 to `longest` different songs."""
    return [rng.permutation(n_songs)[: rng.integers(1, longest + 1)].tolist() for _ in range(count)]


def read_yes(folder):
    """Return the playlists and tags of a yes.com set. The format is described in its README."""
    with lzma.open(folder / "train.txt.xz", "rt") as file:
        lines = file.read().splitlines()
    with lzma.open(folder / "tags.txt.xz", "rt") as file:
        tags = [[] if line.strip() == "#" else line.split() for line in file]
    playlists = [[int(song) for song in line.split()] for line in lines[2:] if line.strip()]
    return playlists, tags
