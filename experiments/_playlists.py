"""Collections of playlists, what is known of their songs, and how they are split: for experiments.playlists."""

import gzip
import lzma
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from musicsim._arrays import Float64Array, Int64Array
from musicsim.explorer.playlists.fit import listed
from musicsim.explorer.playlists.song_labels import learn_sources
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library

Lists = list[list[int]]

JUDGED = 0.25
PLAYS_OF_ALL = 0.5


@dataclass(frozen=True, slots=True)
class Collection:
    """Playlists without immediate repeats, each of two songs or more, and what is known of the songs.

    Attributes
    ----------
    categories : list of str or None, one a playlist
    known : mapping of arguments of `build_edges`
        Empty where nothing but playlists is known.
    """

    name: str
    n_songs: int
    playlists: Lists
    categories: list[str | None]
    known: Mapping[str, Any] = field(default_factory=dict)


def usable(playlists: Sequence[Sequence[int]]) -> Lists:
    """Immediate repeats taken once, and lists of two songs or more, as the thesis's segments."""
    without = ([song for song, _ in groupby(playlist)] for playlist in playlists)
    return [playlist for playlist in without if len(playlist) > 1]


def load_yes(shared: Path, name: str) -> Collection:
    """Radio playlists of yes.com and tags of Last.fm; ``train.txt`` only, the official test lists are absent."""
    folder = shared / "yes" / name
    with lzma.open(folder / "train.txt.xz", "rt") as file:
        ids, _, *lines = file.read().splitlines()
    playlists = usable([[int(song) for song in line.split()] for line in lines])
    with lzma.open(folder / "tag_hash.txt.xz", "rt") as file:
        words = [line.partition(",")[2].strip() for line in file.read().splitlines()]
    with lzma.open(folder / "tags.txt.xz", "rt") as file:
        tags = [
            [] if line.strip() == "#" else [words[int(tag)] for tag in line.split()]
            for line in file.read().splitlines()
        ]
    return Collection(name, len(ids.split()), playlists, [None] * len(playlists), {"tags": tags})


def load_spotify(shared: Path) -> Collection:
    """300 named playlists of Spotify; the artist and the album of a song, a song its title and artist."""
    import pandas as pd

    table = pd.read_csv(shared / "spotify_msd/RA_19k.csv.xz")
    codes = table.groupby(["song_name", "artist_name"], sort=True).ngroup().to_numpy()
    first = table.groupby(codes).first()
    playlists = usable([codes[rows].tolist() for rows in table.groupby("playlist").indices.values()])
    albums = (first["artist_name"] + ", " + first["album_names"]).tolist()
    known = {"artists": first["artist_name"].tolist(), "albums": albums}
    return Collection("spotify", len(first), playlists, [None] * len(playlists), known)


def load_aotm(shared: Path) -> Collection:
    """Pairs of consecutive songs of Art of the Mix 2003: nothing is known of the songs but playlists.

    Rows of the file whose ends meet are put together again, so that no list is cut by the split.
    """
    with gzip.open(shared / "aotm/aotm-bigrams.csv.gz", "rt") as file:
        pairs = [line.strip().split(",") for line in file if line.strip()]
    number: dict[str, int] = {}
    joined: Lists = []
    for a, b in ([number.setdefault(track, len(number)) for track in pair] for pair in pairs):
        if joined and joined[-1][-1] == a:
            joined[-1].append(b)
        else:
            joined.append([a, b])
    playlists = usable(joined)
    return Collection("aotm", len(number), playlists, [None] * len(playlists))


def demo_lists(library: Library) -> Collection:
    """The library's playlists as the app reads them; what its walk needs beside them is learned at the first time."""
    snapshot = take_snapshot(library)
    lists = listed(snapshot)
    learn_sources(snapshot, lists.rows, lambda *_, **__: None)
    return Collection("demo", snapshot.n_indexed, lists.rows, lists.categories)


LOADERS: dict[str, Callable[[Path], Collection]] = {
    "yes_small": lambda shared: load_yes(shared, "yes_small"),
    "yes_big": lambda shared: load_yes(shared, "yes_big"),
    "spotify": load_spotify,
    "aotm": load_aotm,
}


def split_lists(categories: Sequence[str | None], number: int, seed: int) -> tuple[Int64Array, Int64Array]:
    """Rows to learn from and to judge by: of each category a quarter is judged (thesis 7.7)."""
    rng = np.random.default_rng([seed, number + 1])  # not the generator of `seed` itself
    names = np.array([category or "" for category in categories])
    judged = [
        rng.permutation(np.flatnonzero(names == name))[: round(JUDGED * np.count_nonzero(names == name))]
        for name in np.unique(names)
    ]
    test = np.sort(np.concatenate(judged))
    return np.setdiff1d(np.arange(len(names)), test), test


def song_weights(train: Lists, n_songs: int) -> Float64Array:
    """How often each song was played in the lists to learn from, and half a play for every song."""
    songs = np.concatenate([np.array(playlist) for playlist in train])
    return np.bincount(songs, minlength=n_songs).astype(np.float64) + PLAYS_OF_ALL
