"""Descriptors of real songs with their ground truth, from five public collections."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from benchmarks.support.search_data import SPOTIFY
from musicsim._arrays import Float64Array, Int64Array
from musicsim.datasets import find, open_text
from musicsim.evaluation import ArtistSplit
from musicsim.relevance import Relevance, label_codes

__all__ = [
    "LOADERS",
    "Collection",
    "load_cal500",
    "load_fma",
    "load_gtzan",
    "load_lastfm",
    "load_spotify",
    "split_rows",
]


N_SIMILAR = 10
"""Songs that share most tags with a query: as many as from plays."""

MIN_SONGS = 3
"""Of an artist of spotify_msd."""

LASTFM = "hetrec2011-lastfm-2k"
_MIN_PLAYS = 10
"""From which a listener counts as one of an artist, as in thesis 5.4."""


@dataclass(frozen=True, slots=True)
class Collection:
    """Songs by descriptors, with labels or with tags.

    Attributes
    ----------
    X : ndarray of shape (n_songs, d), finite, raw
    labels : ndarray of shape (n_songs,), or None if there are tags
    artists : ndarray of shape (n_songs,)
        If artists are unknown, each song has its own.
    tags : ndarray of shape (n_songs, n_tags), 0 or 1, or None
        May also hold the listeners of each song.
    inside : bool
        Rank test songs among themselves, because none of the training songs is relevant to them.
    """

    X: Float64Array
    labels: Int64Array | None
    artists: Int64Array
    tags: Float64Array | None = None
    inside: bool = False

    def relevance(self, queries: Int64Array, database: Int64Array | None = None) -> Relevance:
        """Return the relevance of `database` (default: each other) to the songs `queries`, by label or tags."""
        rows = queries if database is None else database
        if self.labels is not None:
            return Relevance.from_labels(self.labels).restrict(queries, rows)
        assert self.tags is not None
        similarity = _unit(self.tags[queries]) @ _unit(self.tags[rows]).T
        if database is None:
            np.fill_diagonal(similarity, -1.0)
        most = np.argsort(-similarity, axis=1, kind="stable")[:, :N_SIMILAR]
        return Relevance.from_lists(list(most), len(rows), outside=database is not None)


def split_rows(artists: Int64Array, seed: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Split rows into training, validation and test, 40 : 30 : 30 by artist; no artist is in two parts."""
    rest, test = next(ArtistSplit(1, 0.3, random_state=seed).split(artists, groups=artists))
    split = ArtistSplit(1, 3 / 7, random_state=seed).split(rest, groups=artists[rest])
    train, validation = (rest[rows] for rows in next(split))
    return train, validation, test


def load_spotify() -> Collection:
    """Load spotify_msd: artists with three or more songs, the artist as label, one row per title."""
    table = _spotify_songs()
    table = table[table.groupby("Artist")["Track"].transform("size") >= MIN_SONGS]
    artists = label_codes(table["Artist"], "Artist")
    return Collection(table[list(SPOTIFY)].to_numpy(np.float64), artists, artists, inside=True)


def load_lastfm() -> Collection:
    """Load the artists of spotify_msd with plays in hetrec2011-lastfm-2k: means of their songs, and their listeners."""
    options = {"sep": "\t", "encoding": "utf-8", "encoding_errors": "replace", "quoting": 3}
    plays = _table(find(LASTFM, "user_artists.dat"), **options)
    names = _table(find(LASTFM, "artists.dat"), **options).set_index("id")["name"].str.casefold()
    plays = plays[plays["weight"] >= _MIN_PLAYS].assign(name=plays["artistID"].map(names))
    songs = _spotify_songs()
    X = songs.groupby(songs["Artist"].str.casefold())[list(SPOTIFY)].mean()
    heard = plays[plays["name"].isin(X.index)]
    listeners = pd.crosstab(heard["name"], heard["userID"]).clip(upper=1)
    listeners = listeners[listeners.sum(axis=1) > 1]  # a single listener allows no comparison
    return Collection(
        X.loc[listeners.index].to_numpy(np.float64),
        None,
        np.arange(len(listeners)),
        listeners.to_numpy(np.float64),
        inside=True,
    )


def load_gtzan() -> Collection:
    """Load GTZAN: 57 statistics of librosa's features, the genre as label; artists are unknown."""
    table = _table(find("gtzan", "features_30_sec.csv")).dropna()
    X = table.drop(columns=["filename", "length", "label"]).to_numpy(np.float64)
    return Collection(X, label_codes(table["label"], "label"), np.arange(len(X)))


def load_fma() -> Collection:
    """Load fma_ntds: 140 statistics of MFCC, Hip-Hop or Rock as label; artists are unknown, empty songs are dropped."""
    features = _table(find("fma_ntds", "fma_features.csv"), header=[0, 1, 2], index_col=0).dropna()
    genres = pd.read_csv(find("fma_ntds", "fma_small_tracks.csv"), index_col="track_id")["genre"]
    features = features[features.index.isin(genres.index)]
    y = label_codes(genres.loc[features.index], "genre")
    return Collection(features.to_numpy(np.float64), y, np.arange(len(y)))


def load_cal500() -> Collection:
    """Load CAL500: 68 Marsyas descriptors, and tags without negations; artists are unknown."""
    with open_text("cal500", "CAL500.arff") as file:
        names, X, tags = _arff(file)
    said = [not name.startswith("NOT-") for name in names]
    return Collection(X, None, np.arange(len(X)), tags[:, said])


LOADERS: dict[str, Callable[[], Collection]] = {
    "spotify_msd": load_spotify,
    "gtzan": load_gtzan,
    "fma_ntds": load_fma,
    "cal500": load_cal500,
    "lastfm": load_lastfm,
}


def _spotify_songs() -> pd.DataFrame:
    parts = [_table(find("spotify_msd", f"features_{size}.csv")) for size in ("15k", "5k")]
    return pd.concat(parts).drop_duplicates(["Artist", "Track"]).dropna(subset=["Artist", *SPOTIFY])


def _table(path: Path, **options: Any) -> pd.DataFrame:
    table: pd.DataFrame = pd.read_csv(path, **options)  # pandas decompresses by file extension
    return table


def _arff(lines: IO[str]) -> tuple[list[str], Float64Array, Float64Array]:
    """Return the names of the tags, the numeric columns and the tag columns."""
    names: list[str] = []
    n_numeric = 0
    rows: list[list[str]] = []
    for line in lines:
        if line.lower().startswith("@attribute"):
            name, kind = line.split(maxsplit=1)[1].rsplit(maxsplit=1)
            if kind.lower() == "numeric":
                n_numeric += 1
            else:
                names.append(name)
        elif line.strip() and not line.startswith(("@", "%")):
            rows.append(line.strip().split(","))
    values = np.array(rows, dtype=np.float64)
    return names, values[:, :n_numeric], values[:, n_numeric:]


def _unit(tags: Float64Array) -> Float64Array:
    norms = np.linalg.norm(tags, axis=1, keepdims=True)
    return np.divide(tags, norms, out=np.zeros_like(tags), where=norms > 0)
