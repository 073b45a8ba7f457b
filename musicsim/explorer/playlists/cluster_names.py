"""What is typical of the songs of a cluster by sound, in a few words: "fast, bright, such as Nora Vale"."""

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
# each song takes some milliseconds to read
_LISTENED_TO = 12
_COMPARED_WITH = 64
_EVERY = 16  # frames: all would say the same


class ClusterNames:
    """Names of clusters by what their songs have more or less of than the library, and by their best-known artist.

    Kept frames and aspects of a few songs are read when a name is first asked for; without them, and where nothing
    differs, the artist alone makes the name. The best-known artist has the most `plays`, (n_indexed,), in a cluster,
    else the most songs.
    """

    def __init__(self, snapshot: Snapshot, plays: Float64Array) -> None:
        self._snapshot, self._plays = snapshot, plays
        self._measured: dict[int, Float64Array] = {}
        self._names: dict[tuple[str, str], str] = {}

    def name(self, family: str, value: str) -> str:
        """The name of a cluster, as ``cluster-16`` and ``12``; "" of other families and of what is not known."""
        kind, _, label = family.partition("-")
        labels = self._snapshot.clusters.get(label)
        if kind != "cluster" or labels is None or not value.isdigit():
            return ""
        if (family, value) not in self._names:
            self._names[family, value] = self.of_rows(np.flatnonzero(labels == int(value)))
        return self._names[family, value]

    def of_rows(self, rows: IntpArray) -> str:
        """The name of any songs together."""
        artist = self._best_known(rows)
        return ", ".join([*self._typical(rows), *([f"such as {artist}"] if artist else [])])

    def _best_known(self, rows: IntpArray) -> str:
        artists = self._snapshot.columns.artist
        codes = artists.codes[rows]
        known = codes >= 0
        if not known.any():
            return ""
        n_songs = np.bincount(codes[known])
        n_plays = np.bincount(codes[known], self._plays[rows][known])
        return artists.names[int(np.lexsort((n_songs, n_plays))[-1])]

    def _typical(self, rows: IntpArray) -> list[str]:
        """The words that tell most, at most two."""
        usual = self._measures(_spread(np.arange(self._snapshot.n_indexed), _COMPARED_WITH))
        here = self._measures(_spread(rows, _LISTENED_TO))
        if not len(usual) or not len(here):
            return []
        mean, deviation = usual.mean(axis=0), usual.std(axis=0)
        # where all songs are alike, what is left is rounding
        differs = (here.mean(axis=0) - mean) / np.where(deviation > 1e-6 * np.abs(mean), deviation, np.inf)
        order = [i for i in np.argsort(-np.abs(differs), kind="stable") if abs(differs[i]) >= _TYPICAL]
        return [_MEASURES[i][0 if differs[i] > 0 else 1] for i in order[:_MAX_WORDS]]

    def _measures(self, rows: IntpArray) -> Float64Array:
        """Measures of rows (n, 4), without the songs of which nothing was kept."""
        new = [row for row in rows.tolist() if row not in self._measured]
        for row, song in zip(new, self._snapshot.songs_at(new), strict=True):
            self._measured[row] = self._measure(song)
        found = np.array([self._measured[row] for row in rows.tolist()]).reshape(-1, len(_MEASURES))
        return found[np.isfinite(found).all(axis=1)]

    def _measure(self, song: Song) -> Float64Array:
        """How fast, bright, loud and tonal a song is, each on a scale of its own; nan where nothing was kept."""
        files = self._snapshot.library.frame_files
        try:
            mfcc = files.mfcc(song.content_hash)[::_EVERY].astype(np.float64).mean(axis=0)
            aspects = files.aspects([song.content_hash])
        except FeatureVersionError:
            return np.full(len(_MEASURES), np.nan)
        tempos = aspects.rhythm[0, : len(audio.TEMPOS)].astype(np.float64)
        classes = aspects.harmony[0, : audio.N_CLASSES].astype(np.float64)
        # the second coefficient falls as energy moves to high bands; even pitch classes are those of noise
        return np.array([tempos @ np.log(audio.TEMPOS), -mfcc[1], mfcc[0], classes @ classes])


def _spread(rows: IntpArray, n: int) -> IntpArray:
    """At most `n` of some rows, evenly spread."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, n).astype(int))] if len(rows) else rows
