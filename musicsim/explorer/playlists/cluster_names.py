"""Short names for clusters by sound: "fast, bright, such as Nora Vale"."""

from __future__ import annotations

import numpy as np

from musicsim import audio
from musicsim._arrays import Float64Array, IntpArray
from musicsim.errors import FeatureVersionError
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song

_MEASURES = (("fast", "slow"), ("bright", "dark"), ("loud", "quiet"), ("tonal", "atonal"))
_TYPICAL = 0.75  # standard deviations of the library's songs by which the mean of a cluster must differ
_MAX_WORDS = 2
# reading a song takes some milliseconds
_MAX_FROM_CLUSTER = 12
_MAX_FROM_LIBRARY = 64
_EVERY = 16  # frames; all of them would give the same means


class ClusterNames:
    """Names of clusters from the measures that differ from the library's, and from the best-known artist.

    Measures are read when a name is first needed. Without them, or if nothing differs, a name is the artist alone. The
    best-known artist of a cluster has the most `plays` (n_indexed,), or else the most songs.
    """

    def __init__(self, snapshot: Snapshot, plays: Float64Array) -> None:
        self._snapshot, self._plays = snapshot, plays
        self._measured: dict[int, Float64Array] = {}
        self._names: dict[tuple[str, str], str] = {}

    def name(self, family: str, value: str) -> str:
        """Return the name of a cluster such as ``cluster-16``, ``12``; "" for other families and unknown clusters."""
        kind, _, label = family.partition("-")
        labels = self._snapshot.clusters.get(label)
        if kind != "cluster" or labels is None or not value.isdigit():
            return ""
        if (family, value) not in self._names:
            self._names[family, value] = self.name_rows(np.flatnonzero(labels == int(value)))
        return self._names[family, value]

    def name_rows(self, rows: IntpArray) -> str:
        """Return a name for any group of songs."""
        words = self._typical_words(rows)
        artists = self._snapshot.columns.artist
        codes = artists.codes[rows]
        known = codes >= 0
        if known.any():
            n_songs = np.bincount(codes[known])
            n_plays = np.bincount(codes[known], self._plays[rows][known])
            words.append(f"such as {artists.names[int(np.lexsort((n_songs, n_plays))[-1])]}")
        return ", ".join(words)

    def _typical_words(self, rows: IntpArray) -> list[str]:
        library = self._measures(_spread(np.arange(self._snapshot.n_indexed), _MAX_FROM_LIBRARY))
        cluster = self._measures(_spread(rows, _MAX_FROM_CLUSTER))
        if not len(library) or not len(cluster):
            return []
        mean, deviation = library.mean(axis=0), library.std(axis=0)
        # if all songs are alike, the deviation is rounding error
        differs = (cluster.mean(axis=0) - mean) / np.where(deviation > 1e-6 * np.abs(mean), deviation, np.inf)
        order = [i for i in np.argsort(-np.abs(differs), kind="stable") if abs(differs[i]) >= _TYPICAL]
        return [_MEASURES[i][0 if differs[i] > 0 else 1] for i in order[:_MAX_WORDS]]

    def _measures(self, rows: IntpArray) -> Float64Array:
        new = [row for row in rows.tolist() if row not in self._measured]
        for row, song in zip(new, self._snapshot.songs_at(new), strict=True):
            self._measured[row] = self._measure(song)
        measures = np.array([self._measured[row] for row in rows.tolist()]).reshape(-1, len(_MEASURES))
        return measures[np.isfinite(measures).all(axis=1)]

    def _measure(self, song: Song) -> Float64Array:
        """Return how fast, bright, loud and tonal a song is, each on its own scale; nan without audio features."""
        files = self._snapshot.library.frame_files
        try:
            mfcc = files.mfcc(song.content_hash)[::_EVERY].astype(np.float64).mean(axis=0)
            aspects = files.aspects([song.content_hash])
        except FeatureVersionError:
            return np.full(len(_MEASURES), np.nan)
        tempos = aspects.rhythm[0, : len(audio.TEMPOS)].astype(np.float64)
        classes = aspects.harmony[0, : audio.N_CLASSES].astype(np.float64)
        # the second coefficient falls as energy moves to high bands; noise has even pitch classes
        return np.array([tempos @ np.log(audio.TEMPOS), -mfcc[1], mfcc[0], classes @ classes])


def _spread(rows: IntpArray, n: int) -> IntpArray:
    """Return at most n of the rows, evenly spaced."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, n).astype(int))] if len(rows) else rows
