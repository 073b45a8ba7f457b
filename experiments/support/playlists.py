"""Collections of playlists, with attributes of their songs and splits: for experiments.playlists."""

import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from musicsim._arrays import Float64Array, Int64Array
from musicsim.datasets import find, open_text
from musicsim.explorer.playlists.fit import collect_playlists
from musicsim.explorer.playlists.song_labels import learn_sources
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library

Lists = list[list[int]]

JUDGED = 0.25
PLAYS_OF_ALL = 0.5


@dataclass(frozen=True, slots=True)
class Collection:
    """Playlists of two or more songs without immediate repeats, and attributes of the songs.

    Attributes
    ----------
    categories : list of str or None, one per playlist
    known : mapping of arguments of `build_edges`
        Empty if only playlists are known.
    """

    name: str
    n_songs: int
    playlists: Lists
    categories: list[str | None]
    known: Mapping[str, Any] = field(default_factory=dict)

    def split(self, number: int, seed: int) -> tuple[Lists, Lists]:
        """Return the training and the test lists of a split."""
        train, test = split_lists(self.categories, number, seed)
        return [self.playlists[row] for row in train], [self.playlists[row] for row in test]


def usable(playlists: Sequence[Sequence[int]]) -> Lists:
    """Drop immediate repeats, then lists with fewer than two songs, like the thesis's segments."""
    without = ([song for song, _ in groupby(playlist)] for playlist in playlists)
    return [playlist for playlist in without if len(playlist) > 1]


def load_yes(name: str) -> Collection:
    """Load radio playlists of yes.com with tags of Last.fm.

    Only ``train.txt`` is used, because the official test lists are absent.
    """
    with open_text("yes", f"{name}/train.txt") as file:
        ids, _, *lines = file.read().splitlines()
    playlists = usable([[int(song) for song in line.split()] for line in lines])
    with open_text("yes", f"{name}/tag_hash.txt") as file:
        words = [line.partition(",")[2].strip() for line in file.read().splitlines()]
    with open_text("yes", f"{name}/tags.txt") as file:
        tags = [
            [] if line.strip() == "#" else [words[int(tag)] for tag in line.split()]
            for line in file.read().splitlines()
        ]
    return Collection(name, len(ids.split()), playlists, [None] * len(playlists), {"tags": tags})


def load_spotify() -> Collection:
    """Load 300 named playlists of Spotify. A song is its title and artist, with artist and album as attributes."""
    import pandas as pd

    table = pd.read_csv(find("spotify_msd", "RA_19k.csv"))
    codes = table.groupby(["song_name", "artist_name"], sort=True).ngroup().to_numpy()
    first = table.groupby(codes).first()
    playlists = usable([codes[rows].tolist() for rows in table.groupby("playlist").indices.values()])
    albums = (first["artist_name"] + ", " + first["album_names"]).tolist()
    known = {"artists": first["artist_name"].tolist(), "albums": albums}
    return Collection("spotify", len(first), playlists, [None] * len(playlists), known)


def load_aotm() -> Collection:
    """Load pairs of consecutive songs of Art of the Mix 2003, without attributes of the songs.

    Rows of the file whose ends match are joined again, so that the split does not cut a list.
    """
    with gzip.open(find("aotm", "aotm-bigrams.csv.gz"), "rt") as file:
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
    """Load the library's playlists as the app reads them; the first call fits whatever else the walk needs."""
    snapshot = take_snapshot(library)
    lists = collect_playlists(snapshot)
    learn_sources(snapshot, lists.rows, lambda *_, **__: None)
    return Collection("demo", snapshot.n_indexed, lists.rows, lists.categories)


LOADERS: dict[str, Callable[[], Collection]] = {
    "yes_small": lambda: load_yes("yes_small"),
    "yes_big": lambda: load_yes("yes_big"),
    "spotify": load_spotify,
    "aotm": load_aotm,
}


def split_lists(categories: Sequence[str | None], number: int, seed: int) -> tuple[Int64Array, Int64Array]:
    """Return training and test rows; a quarter of each category is for testing (thesis 7.7)."""
    rng = np.random.default_rng([seed, number + 1])  # different from the generator of `seed` itself
    names = np.array([category or "" for category in categories])
    judged = [
        rng.permutation(np.flatnonzero(names == name))[: round(JUDGED * np.count_nonzero(names == name))]
        for name in np.unique(names)
    ]
    test = np.sort(np.concatenate(judged))
    return np.setdiff1d(np.arange(len(names)), test), test


def song_weights(train: Lists, n_songs: int) -> Float64Array:
    """Return the plays of each song in the training lists, plus half a play for every song."""
    songs = np.concatenate([np.array(playlist) for playlist in train])
    return np.bincount(songs, minlength=n_songs).astype(np.float64) + PLAYS_OF_ALL
