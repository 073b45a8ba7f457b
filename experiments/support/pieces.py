"""Labeled pieces of a library, and five measures of rankings: for experiments.real_music."""

import csv
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.support.report import Progress, Settings, Skipped
from musicsim._arrays import BoolArray, Float64Array, Int64Array
from musicsim.evaluation import hubness
from musicsim.explorer.refresh.refresh import refresh
from musicsim.library import Library, Song
from musicsim.library.stores.files import absolute
from musicsim.library.tags.artists import fold_name
from musicsim.search import MutualProximity

__all__ = [
    "HUB_SHARE",
    "MEASURES",
    "Pieces",
    "Scores",
    "euclidean",
    "labelled",
    "mutual_proximity",
    "open_copy",
    "open_music",
    "scores",
    "tagged",
    "with_proximity",
]

MEASURES = ("P@1", "P@5", "package", "within")
MIN_PIECES = 5
"""Of a composer whose pieces are queries."""
HUB_SHARE = 1 / 3
"""Share of the nearest songs whose distances give the moments of hub reduction in the app."""
_NEIGHBORS = 10
_MIN_TAGGED_S = 30.0


@dataclass(frozen=True, slots=True)
class Pieces:
    """Songs of a library with their composers and packages, sorted by hash like the library's models.

    Attributes
    ----------
    songs : tuple of Song
    composers, packages : ndarray of str, shape (n_pieces,)
        Empty if the composer is unknown.
    """

    songs: tuple[Song, ...]
    composers: np.ndarray
    packages: np.ndarray

    def __len__(self) -> int:
        return len(self.composers)

    @property
    def queries(self) -> Int64Array:
        """Return the pieces of composers with five or more."""
        counts = Counter(self.composers.tolist())
        return np.flatnonzero([bool(name) and counts[name] >= MIN_PIECES for name in self.composers])

    @property
    def n_composers(self) -> int:
        """Return the number of composers with queries."""
        return len(np.unique(self.composers[self.queries]))


@contextmanager
def open_copy(settings: Settings) -> Iterator[Library]:
    """Open a copy of the library of ``--library``, which may be changed; raises Skipped if none is named."""
    if settings.library is None:
        raise Skipped("Name a library of the pieces by --library; experiments.real_music makes one.")
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "library"
        shutil.copytree(settings.library, folder)
        with Library.open(folder) as library:
            yield library


@contextmanager
def open_music(settings: Settings, cache: Path, progress: Progress) -> Iterator[Library]:
    """Open a copy of the library of ``--library``, or analyze the folder of ``--music``; `cache` keeps its library."""
    if settings.music is None:
        with open_copy(settings) as library:
            yield library
        return
    with Library.open(cache / "library") as library:
        progress(f"analyzing {settings.music}")
        library.add(settings.music)
        refresh(library)
        yield library


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of each query; nan if a measure does not apply to it.

    Attributes
    ----------
    by_query : dict of float64 ndarray of shape (n_pieces,)
        P@1 and P@5 by composer, for the queries. For all pieces, 1 if the nearest piece is of the same package. For
        queries whose package has several composers, 1 if the nearest piece of the package is by the same one.
    skew : float
        Of the 10-occurrence.
    """

    by_query: dict[str, Float64Array]
    skew: float

    def mean(self, measure: str, rows: Int64Array | None = None) -> float:
        values = self.by_query[measure] if rows is None else self.by_query[measure][rows]
        return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def labelled(library: Library, table: Path) -> Pieces:
    """Return the songs of a library that have a row in a table.

    Parameters
    ----------
    library : Library
    table : Path
        CSV with the columns path, label (the composer, or empty) and package. A row matches a song if folder and file
        name are equal. If several match, a row whose package is a folder of the song's path is preferred.

    Raises
    ------
    ValueError
        If no song has a row.
    """
    rows: dict[tuple[str, str], list[dict[str, str]]] = {}
    with table.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            path = Path(row["path"])
            rows.setdefault((path.parent.name, path.name), []).append(row)
    found: list[tuple[Song, dict[str, str]]] = []
    for song in sorted(library.songs(), key=lambda song: song.content_hash):
        candidates = rows.get((song.path.parent.name, song.path.name), [])
        named = [row for row in candidates if row["package"] in song.path.parts]
        if named or candidates:
            found.append((song, (named or candidates)[0]))
    if not found:
        raise ValueError(f"{table}: none of its rows is of a song of {library.folder}.")
    return Pieces(
        tuple(song for song, _ in found),
        np.array([row["label"] for _, row in found]),
        np.array([row["package"] for _, row in found]),
    )


def tagged(library: Library, music: Path) -> Pieces:
    """Return the songs of 30 s and more; in games, shorter files are fanfares and noises.

    The folded artist tag is the composer, and the first folder in `music` is the package.
    """
    songs = [song for song in library.songs() if song.duration_s >= _MIN_TAGGED_S]
    songs.sort(key=lambda song: song.content_hash)
    music = absolute(music)
    return Pieces(
        tuple(songs),
        np.array([fold_name(song.artist or "") for song in songs]),
        np.array([song.path.relative_to(music).parts[0] for song in songs]),
    )


def euclidean(X: Float64Array) -> Float64Array:
    """Return Euclidean distances of all pairs, (n, n)."""
    from scipy.spatial.distance import cdist

    distances: Float64Array = cdist(X, X)
    return distances


def mutual_proximity(
    D: Float64Array, mean_q: Float64Array, std_q: Float64Array, mean_x: Float64Array, std_x: Float64Array
) -> Float64Array:
    """Adjust distances of any kind, (n_queries, n), by the moments of the queries and of the songs."""
    proximity, rows = MutualProximity(), np.arange(len(mean_x))
    proximity.mean_, proximity.std_ = mean_x, std_x
    return np.stack([proximity.rescore(d, rows, own) for d, *own in zip(D, mean_q, std_q, strict=True)])


def with_proximity(D: Float64Array, share: float = HUB_SHARE) -> Float64Array:
    """Return mutual proximity from the moments of each song's nearest neighbors, a share of all."""
    n = len(D)
    others = np.sort(D + np.diag(np.full(n, np.inf)), axis=1)[:, : max(2, round(share * (n - 1)))]
    mean, std = others.mean(axis=1), others.std(axis=1)
    return mutual_proximity(D, mean, std, mean, std)


def scores(D: Float64Array, pieces: Pieces) -> Scores:
    """Return the five measures of distances (n, n)."""
    n = len(pieces)
    D = D + np.diag(np.full(n, np.inf))
    order = np.argsort(D, axis=1, kind="stable")[:, : n - 1]
    same = pieces.composers[order] == pieces.composers[:, None]
    beside = pieces.packages[order] == pieces.packages[:, None]
    known = pieces.composers[order] != ""
    is_query = np.zeros(n, dtype=np.bool_)
    is_query[pieces.queries] = True
    # queries whose package has pieces by the same composer and by others: is the nearest of the package by the same?
    has_both = is_query & (beside & same).any(axis=1) & (beside & known & ~same).any(axis=1)
    first = np.argmax(beside, axis=1)
    return Scores(
        {
            "P@1": _of(same[:, 0], is_query),
            "P@5": _of(same[:, :5].mean(axis=1), is_query),
            "package": beside[:, 0].astype(np.float64),
            "within": _of(same[np.arange(n), first], has_both),
        },
        hubness(order[:, : min(_NEIGHBORS, n - 1)]),
    )


def _of(values: np.ndarray, rows: BoolArray) -> Float64Array:
    return np.where(rows, values.astype(np.float64), np.nan)
