"""Songs of Music4All-Onion, the FMA and MTG-Jamendo: plays, listens, tags and vectors, for experiments.real_listeners.

The formats are verified by the authors' own readers (mdeff/fma, utils.py; MTG/mtg-jamendo-dataset, scripts/commons.py)
and by public readers of Music4All-Onion. A song is named by the end of its audio file's path, without the extension.
"""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
from scipy import sparse

from musicsim._arrays import BoolArray, Float64Array, Int64Array
from musicsim.datasets import find, open_text
from musicsim.errors import DataSetAbsentError
from musicsim.explorer.learning.shuffles import swap_groups, trade_entries
from musicsim.explorer.snapshot.snapshot import snapshot_under
from musicsim.library import Library
from musicsim.relevance import Relevance, label_codes

__all__ = ["SOUND", "ListenedSongs", "Sample", "Sound", "load_fma", "load_jamendo", "load_onion", "read_plays"]

SOUND = "Sound"
FEATURES = {"MFCC codewords": "id_mfcc_bow.tsv.bz2", "i-vectors": "id_ivec256.tsv.bz2"}
"""Vectors of Music4All-Onion, by file."""
MIN_PLAYS = 10
"""From which a listener counts as one of an artist, as in the thesis."""
MIN_SHARERS = 10
"""Listeners or tags that an artist needs to be compared by them."""
MIN_TAGS = 2
_PLAYS_A_BLOCK = 1_000_000
_SONGS_A_BLOCK = 5_000


@dataclass(frozen=True, slots=True)
class Sample:
    """Number of artists, and maximum number of songs per artist, that are drawn from a data set."""

    artists: int
    songs: int
    seed: int

    def rows(self, artists: Int64Array, is_eligible: BoolArray) -> Int64Array:
        """Return ascending rows of the drawn songs; only eligible songs are drawn."""
        rng = np.random.default_rng(self.seed)
        rows = rng.permutation(np.flatnonzero(is_eligible))
        kept = rng.permutation(np.unique(artists[rows]))[: self.artists]
        rows = rows[np.isin(artists[rows], kept)]
        place = pd.Series(artists[rows]).groupby(artists[rows]).cumcount().to_numpy()
        return np.sort(rows[place < self.songs])


@dataclass(frozen=True, slots=True)
class ListenedSongs:
    """Songs with vectors, and the evidence of their similarity: sharers of artists, or labels.

    Attributes
    ----------
    name : str
    artists : int ndarray of shape (n_songs,)
        Numbers from 0.
    vectors : dict of str to float64 ndarray of shape (n_songs, d), finite
    sharers : CSR array of ones, of shape (n_listeners, n_artists), or None
        The listeners of each artist, or its tags.
    labels : int ndarray of shape (n_songs,), or None
        Songs with the same label are similar. Used if there are no sharers.
    popularity : int ndarray of shape (n_songs,), or None
        Listens of the song, or listeners of its artist.
    """

    name: str
    artists: Int64Array
    vectors: dict[str, Float64Array]
    sharers: sparse.csr_array | None = None
    labels: Int64Array | None = None
    popularity: Int64Array | None = None

    def relevance(self, train: Int64Array, k: int) -> Relevance:
        """Return the relevance of songs to each other, without songs by the query's artist.

        By sharers, songs by the `k` artists of the songs `train` with the highest Jaccard index are relevant.
        """
        if self.sharers is None:
            return Relevance.from_labels(self.labels, groups=self.artists)
        return Relevance.from_plays(
            self.sharers, k, threshold=1, groups=self.artists, candidates=np.unique(self.artists[train])
        )

    def shuffled(self, rng: np.random.Generator) -> Self:
        """Return the same songs with shuffled evidence: the counts per artist and per listener, tag or label stay."""
        if self.sharers is not None:
            return replace(self, sharers=trade_entries(self.sharers, rng))
        assert self.labels is not None
        return replace(self, labels=self.labels[swap_groups([str(a) for a in self.artists], rng)])


class Sound:
    """The vectors of songs under the app's Sound, found by the end of a path.

    `rows_of` has the row of each path, by its name and by its folder and name, both without the extension.
    """

    def __init__(self, paths: Iterable[Path], vectors: Float64Array) -> None:
        self._vectors = vectors
        self.rows_of: dict[str, int] = {}
        for row, path in enumerate(paths):
            stem = path.stem.removesuffix(".low")  # MTG-Jamendo's smaller files
            self.rows_of |= {stem: row, f"{path.parent.name}/{stem}": row}

    @classmethod
    def of(cls, library: Library) -> Self:
        """Return the vectors of all songs of a library."""
        snapshot = snapshot_under(library, SOUND)
        songs = snapshot.songs_at()
        return cls([song.path for song in songs], snapshot.vectors_at(np.arange(len(songs))).astype(np.float64))

    def rows(self, names: Iterable[str]) -> Int64Array:
        """Return the row of each song, or -1."""
        return np.array([self.rows_of.get(name, -1) for name in names], dtype=np.int64)

    def vectors(self, names: Iterable[str]) -> Float64Array:
        """Return the vectors of songs that all have a row."""
        found: Float64Array = self._vectors[self.rows(names)]
        return found


def load_onion(sample: Sample, sound: Sound | None = None) -> ListenedSongs:
    """Load songs of Music4All-Onion, and the listeners of their artists, with at least ten plays of an artist.

    Memory: that of :func:`read_plays`; vectors are read only for the drawn songs.
    """
    table = pd.read_csv(
        find("music4all_onion", "id_information.csv"), sep="\t", usecols=["id", "artist"], dtype=str
    ).dropna()  # fmt: skip
    artists = label_codes(table["artist"].str.casefold(), "artist")
    names = table["id"].to_numpy(str)
    plays = read_plays(find("music4all_onion", "userid_trackid_count.tsv.bz2"), dict(zip(names, artists, strict=True)))
    listeners = sparse.csr_array((plays >= MIN_PLAYS).astype(np.float64))
    is_known = listeners.sum(axis=0)[artists] >= MIN_SHARERS
    rows = _drawn("Music4All-Onion", sample, artists, names, is_known, sound)
    vectors = {SOUND: sound.vectors(names[rows])} if sound else {}
    if not sound:
        tables = {
            name: read_vectors(find("music4all_onion", file), set(names[rows])) for name, file in FEATURES.items()
        }
        complete = set.intersection(*(set(found.index) for found in tables.values()))
        rows = rows[np.isin(names[rows], list(complete))]
        vectors = {name: found.loc[names[rows]].to_numpy() for name, found in tables.items()}
    return _shared("Music4All-Onion", artists[rows], vectors, listeners)


def load_fma(sample: Sample, sound: Sound | None = None) -> ListenedSongs:
    """Load songs of the FMA, with their genres and listens; songs without a top genre are left out.

    Listens are sums over all visitors of the archive. They do not say which songs the same person heard.
    Memory: tens of MB, because only three columns of tracks.csv and the drawn songs of features.csv stay.
    """
    path = find("fma_metadata", "tracks.csv")
    columns = pd.read_csv(path, header=[0, 1], index_col=0, nrows=0).columns
    artist, genre, listens = (
        1 + columns.get_loc(name) for name in (("artist", "id"), ("track", "genre_top"), ("track", "listens"))
    )
    table = pd.read_csv(path, header=None, skiprows=2, index_col=0, usecols=[0, artist, genre, listens], dtype=str)
    table = table.dropna()  # also the row with the name of the index
    numbers = table.index.to_numpy(np.int64)
    names = np.array([f"{number:06d}"[:3] + f"/{number:06d}" for number in numbers.tolist()])
    artists = label_codes(table[artist], "artist")
    rows = _drawn("FMA", sample, artists, names, np.ones(len(table), np.bool_), sound)
    if sound is not None:
        vectors = {SOUND: sound.vectors(names[rows])}
    else:
        blocks = pd.read_csv(
            find("fma_metadata", "features.csv"), header=[0, 1, 2], index_col=0, chunksize=_SONGS_A_BLOCK
        )
        found = _finite(blocks, set(numbers[rows].tolist()))
        rows = rows[np.isin(numbers[rows], found.index)]
        vectors = {"librosa's features": found.loc[numbers[rows]].to_numpy()}
    return ListenedSongs(
        "FMA",
        np.unique(artists[rows], return_inverse=True)[1].astype(np.int64),
        vectors,
        labels=label_codes(table[genre].iloc[rows], "genre_top"),
        popularity=table[listens].to_numpy(np.int64)[rows],
    )


def load_jamendo(sample: Sample, sound: Sound | None = None) -> ListenedSongs:
    """Load songs of MTG-Jamendo, and the tags of their artists; it has no vectors, so they are those of `sound`."""
    with open_text("mtg_jamendo", "autotagging.tsv") as file:
        lines = list(csv.reader(file, delimiter="\t"))[1:]
    if sound is None:
        raise DataSetAbsentError("MTG-Jamendo has tags but no vectors: name a folder of its audio by --music.")
    names = np.array([line[3].removesuffix(".mp3") for line in lines])
    artists = label_codes([line[1] for line in lines], "ARTIST_ID")
    owner = np.repeat(artists, [len(line) - 5 for line in lines])
    tag = label_codes([tag for line in lines for tag in line[5:]], "TAGS")
    shape = int(tag.max()) + 1, int(artists.max()) + 1
    tags = sparse.csr_array((np.ones(len(tag)), (tag, owner)), shape=shape).minimum(1.0).tocsr()
    is_known = tags.sum(axis=0)[artists] >= MIN_TAGS
    rows = _drawn("MTG-Jamendo", sample, artists, names, is_known, sound)
    songs = _shared("MTG-Jamendo", artists[rows], {SOUND: sound.vectors(names[rows])}, tags)
    return replace(songs, popularity=None)  # the number of tags says nothing about listeners


def read_plays(path: Path, artist_of: dict[str, int]) -> sparse.csr_array:
    """Return the plays per listener and artist, of shape (n_listeners, n_artists).

    Parameters
    ----------
    path : Path
        Table separated by tabs, compressed or not, with the columns user_id, track_id and count.
    artist_of : dict of str to int
        The artist of each song, as a number from 0. Other songs are ignored.

    Notes
    -----
    The file is read in blocks of a million lines, which take 0.2 GB, and plays are added per listener and artist. This
    takes 12 bytes per pair of a listener and an artist in a block, and 36 bytes at the end. The 50 million lines of
    Music4All-Onion are at most as many pairs: 2 GB.
    """
    users: dict[str, int] = {}
    parts: list[np.ndarray] = []  # of int32
    columns = {"user_id": str, "track_id": str, "count": np.int64}
    for block in pd.read_csv(path, sep="\t", usecols=list(columns), dtype=columns, chunksize=_PLAYS_A_BLOCK):
        artist = block["track_id"].map(artist_of)
        known = block[artist.notna()]
        codes, names = pd.factorize(known["user_id"])
        numbers = np.array([users.setdefault(name, len(users)) for name in names], dtype=np.int64)
        pairs = pd.DataFrame(
            {"user": numbers[codes], "artist": artist.dropna().to_numpy(np.int64), "count": known["count"].to_numpy()}
        )
        parts.append(pairs.groupby(["user", "artist"], as_index=False).sum().to_numpy(np.int32))
    user, artist, count = np.concatenate(parts).T
    parts.clear()
    shape = len(users), max(artist_of.values(), default=-1) + 1
    return sparse.coo_array((count, (user, artist)), shape=shape).tocsr()


def read_vectors(path: Path, wanted: set[str]) -> pd.DataFrame:
    """Return the vectors of some songs, from a table separated by tabs whose first column is the song's id."""
    with pd.read_csv(path, sep="\t", index_col=0, dtype={"id": str}, chunksize=_SONGS_A_BLOCK) as blocks:
        return _finite(blocks, wanted)


def _finite(blocks: Iterator[pd.DataFrame], wanted: set[str] | set[int]) -> pd.DataFrame:
    """Return the rows of some songs, without those that lack a number."""
    found = pd.concat([block[block.index.isin(wanted)] for block in blocks]).astype(np.float64)
    return found[np.isfinite(found.to_numpy()).all(axis=1) & ~found.index.duplicated()]


def _drawn(
    title: str, sample: Sample, artists: Int64Array, names: np.ndarray, is_eligible: BoolArray, sound: Sound | None
) -> Int64Array:
    """Return the rows of the drawn songs; raise DataSetAbsentError if the music has none of them."""
    if sound is not None:
        is_eligible = is_eligible & (sound.rows(names) >= 0)
    if not is_eligible.any():
        raise DataSetAbsentError(f"{title} has no usable song in the given music.")
    return sample.rows(artists, is_eligible)


def _shared(
    name: str, artists: Int64Array, vectors: dict[str, Float64Array], sharers: sparse.csr_array
) -> ListenedSongs:
    """Return songs with the sharers of the remaining artists."""
    kept, places = np.unique(artists, return_inverse=True)
    table = sparse.csr_array(sharers[:, kept])
    table = sparse.csr_array(table[np.diff(table.indptr) > 0])
    n_sharers = table.sum(axis=0).astype(np.int64)
    return ListenedSongs(name, places.astype(np.int64), vectors, table, popularity=n_sharers[places])
