"""Data of the experiments on bit codes: digits, forest covers, SIFT vectors, songs by genre and by artist."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.support.search_data import SPOTIFY
from experiments.support.descriptors import LASTFM, load_gtzan
from musicsim._arrays import Float64Array, Int64Array
from musicsim.datasets import find, is_present, load
from musicsim.errors import DataSetAbsentError
from musicsim.relevance import Relevance

__all__ = [
    "N_NEAREST",
    "Part",
    "artist_part",
    "covtype_part",
    "gtzan_part",
    "mnist_part",
    "nearest_relevance",
    "sift_part",
]


N_NEAREST = 50
"""Relevant are so many nearest neighbors by Euclidean distance (the paper, 5.2)."""

_TAGS = 15
"""Tags of artists that are taken as genres, those of most songs."""
_MIN_SONGS = 4
"""Of an artist, so that there are two or more to learn from."""


@dataclass(frozen=True, slots=True)
class Part:
    """A training and a test part.

    Attributes
    ----------
    X, X_test : ndarrays of shape (n, d), (n_test, d)
    y, y_test : ndarrays of shape (n,), (n_test,) or (n, levels), (n_test, levels)
        Classes; empty for SIFT.
    """

    name: str
    X: Float64Array
    y: npt.NDArray
    X_test: Float64Array
    y_test: npt.NDArray

    def validation(self, seed: int) -> "Part":
        """Return four fifths of the training rows to learn from, and the rest to choose by."""
        order = np.random.default_rng(seed).permutation(len(self.X))
        held_out, kept = np.split(order, [len(order) // 5])
        return Part(self.name, self.X[kept], self.y[kept], self.X[held_out], self.y[held_out])


def mnist_part(whole: bool = False) -> Part:
    """Return the first 10,000 training digits of MNIST, sorted, and its 10,000 test digits; gray from 0 to 1.

    With `whole`, return all 60,000 training digits, as in the paper, if MNIST was fetched.
    """
    if whole and is_present("mnist"):
        X, y = load("mnist")
        return Part("MNIST", X[:60_000] / 255.0, y[:60_000], X[60_000:] / 255.0, y[60_000:])
    parts = []
    try:
        for file in ("mnist_10k_cazala.npz", "mnist_t10k.npz"):
            with np.load(find("mnist_20k", file)) as held:
                parts += [held["X"] / 255.0, held["y"].astype(np.int64)]
    except DataSetAbsentError:
        X, y = load("mnist")
        train = np.argsort(y[:10_000], kind="stable")
        parts = [X[train] / 255.0, y[train], X[60_000:] / 255.0, y[60_000:]]
    return Part("MNIST", *parts)


def covtype_part(seed: int, whole: bool = False) -> Part:
    """Split 10,000 rows 8,000 : 2,000; numbers are z-scored by the training part, indicators are unchanged.

    With `whole`, split all rows 522,911 : 58,101, as in the paper, if Covertype was fetched.
    """
    is_whole = whole and is_present("covtype")
    X, y = load("covtype") if is_whole else _covtype_rows()
    train, test = _split(len(X), 58_101 if is_whole else 0.2, seed)
    is_number = np.ptp(X, axis=0) > 1
    mean = np.where(is_number, X[train].mean(axis=0), 0.0)
    scale = np.where(is_number, X[train].std(axis=0), 1.0)
    X = (X - mean) / scale
    return Part("Covertype", X[train], y[train], X[test], y[test])


def sift_part(seed: int) -> Part:
    """Split 10,000 SIFT vectors into 9,000 to learn from and search, and 1,000 queries."""
    with np.load(find("bigann10k", "bigann10k.npz")) as held:
        X = held["base"].astype(np.float64)
    train, test = _split(len(X), 0.1, seed)
    return Part("SIFT", X[train], np.zeros(len(train)), X[test], np.zeros(len(test)))


def gtzan_part(seed: int) -> Part:
    """Split GTZAN's songs 700 : 300, stratified by genre; columns are z-scored by the training part."""
    songs = load_gtzan()
    assert songs.labels is not None
    train, test = _split(len(songs.X), 0.3, seed, songs.labels)
    return _scaled("GTZAN, genre", songs.X, songs.labels, train, test)


def artist_part(seed: int) -> Part:
    """Return songs of spotify_msd whose artist has last.fm tags, with two levels: most frequent tag, and artist.

    Each artist's songs are split 70 : 30. Here the artist is a class to predict, so both parts need every artist.
    """
    songs = pd.concat([pd.read_csv(find("spotify_msd", f"features_{size}.csv")) for size in ("15k", "5k")])
    songs = songs.drop_duplicates(["Artist", "Track"]).dropna(subset=["Artist", *SPOTIFY])
    songs["tag"] = songs["Artist"].str.casefold().map(_tags_of_artists())
    songs = songs[songs["tag"].isin(songs["tag"].value_counts().index[:_TAGS])]
    songs = songs[songs.groupby("Artist")["Track"].transform("size") >= _MIN_SONGS]
    y = np.stack([pd.factorize(songs[column], sort=True)[0] for column in ("tag", "Artist")], axis=1)
    train, test = _split(len(songs), 0.3, seed, y[:, 1])
    return _scaled("last.fm tag < artist", songs[list(SPOTIFY)].to_numpy(np.float64), y, train, test)


def nearest_relevance(X: Float64Array, queries: Float64Array | None = None) -> Relevance:
    """Return the nearest rows of X as relevant to each query; without queries, to each row of X, excluding itself."""
    from sklearn.neighbors import NearestNeighbors

    found = NearestNeighbors(n_neighbors=N_NEAREST, algorithm="brute").fit(X).kneighbors(queries, return_distance=False)
    return Relevance.from_lists(list(found), len(X), outside=queries is not None)


def _tags_of_artists() -> dict[str, str]:
    """Return the most frequent tag of each artist by lowercase name."""
    tables = {
        name: pd.read_csv(find(LASTFM, f"{name}.dat"), sep="\t", encoding_errors="replace", quoting=3)
        for name in ("artists", "tags", "user_taggedartists")
    }
    given = tables["user_taggedartists"].drop_duplicates(["userID", "artistID", "tagID"])
    counts = given.groupby(["artistID", "tagID"]).size().rename("n").reset_index()
    # ties go to the lower tag ID
    most = counts.sort_values(["n", "tagID"], ascending=[False, True]).drop_duplicates("artistID")
    named = most.merge(tables["artists"], left_on="artistID", right_on="id").merge(tables["tags"], on="tagID")
    return dict(zip(named["name"].str.casefold(), named["tagValue"], strict=True))


def _covtype_rows() -> tuple[Float64Array, Int64Array]:
    """Return the sample of 10,000 rows, or as many of scikit-learn's copy."""
    try:
        table = pd.read_csv(find("covtype_sample", "covtype_sample.csv"))
    except DataSetAbsentError:
        X, y = load("covtype")
        drawn = np.random.default_rng(0).choice(len(X), 10_000, replace=False)
        return X[drawn], y[drawn]
    return table.iloc[:, :-1].to_numpy(np.float64), table.iloc[:, -1].to_numpy(np.int64)


def _split(n: int, test: float | int, seed: int, strata: npt.NDArray | None = None) -> tuple[Int64Array, Int64Array]:
    from sklearn.model_selection import train_test_split

    train, held_out = train_test_split(np.arange(n), test_size=test, random_state=seed, stratify=strata)
    return train, held_out


def _scaled(name: str, X: Float64Array, y: npt.NDArray, train: Int64Array, test: Int64Array) -> Part:
    from sklearn.preprocessing import StandardScaler

    X = StandardScaler().fit(X[train]).transform(X)
    return Part(name, X[train], y[train], X[test], y[test])
