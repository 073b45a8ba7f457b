"""Covariances for whitening, within similar songs, labels, folders or artists, and within the parts of a song."""

import numpy as np

from musicsim import metric
from musicsim._arrays import Int64Array
from musicsim.audio import DELTA_WIDTH, HOP, SAMPLE_RATE
from musicsim.explorer.learning.task import FloatArray, Rows, Task
from musicsim.explorer.models.encoders import has_features
from musicsim.explorer.snapshot.snapshot import Snapshot

SONGS = "songs"
_LABELS = {"genre": "genres", "artist": "artists", "folder": "folders"}
_PART = round(20 * SAMPLE_RATE / HOP)  # frames; shorter songs have two parts
_MAX_PARTS = 6  # per song
_MAX_SONGS = 300  # that are divided into parts
_SEED = 0


class WithinSongs:
    """Covariances within classes of the songs of a task.

    `kinds` are the combinations of classes to try, those closest to the supervision first.
    """

    def __init__(self, snapshot: Snapshot, task: Task) -> None:
        self._task = task
        self._labels = {
            words: getattr(snapshot.columns, name).texts()
            for name, words in _LABELS.items()
            if name in ("artist", "folder") or name == task.supervision.kind
        }
        own = _LABELS.get(task.supervision.kind, "similar songs")
        self._parts, self._song_of_part = _parts(snapshot)
        parts = (SONGS,) if len(self._parts) else ()
        others = ("artists", "folders")
        every = (*(() if own in others else (own,)), *others, *parts)
        self.kinds: list[tuple[str, ...]] = list(
            filter(None, dict.fromkeys([(own,), parts, (own, *parts), others, every]))
        )

    def covariance(self, space: FloatArray, kind: str, rows: Rows) -> FloatArray:
        """Return the covariance within classes of one kind, in a space given by its directions (r, d).

        Only labels of `rows` are used; parts of songs do not need labels. Raises ValueError if no two songs share a
        class.
        """
        if kind == SONGS:
            return metric.compute_within_covariance(self._parts @ space.T, self._song_of_part)
        labels = self._labels.get(kind)
        X = self._task.X[rows] @ space.T
        if labels is not None:
            return metric.compute_within_covariance(X, [labels[row] for row in rows])
        return metric.compute_within_covariance(X, self._task.supervision.relevance(rows).restrict(rows, rows))


def _parts(snapshot: Snapshot) -> tuple[FloatArray, Int64Array]:
    """Return vectors of parts of sampled songs, and the song of each; empty without audio features."""
    model = snapshot.model
    assert model is not None
    empty = np.empty((0, model.n_dimensions)), np.empty(0, dtype=np.int64)
    if not model.encoder_.uses_audio:
        return empty
    stored = snapshot.library.frame_files.kept()
    rows = np.sort(np.random.default_rng(_SEED).permutation(snapshot.n_indexed)[:_MAX_SONGS])
    songs = [song for song in snapshot.songs_at(rows) if song.content_hash in stored]
    vectors, song_of_part = [], []
    for number, song in enumerate(songs):
        frames = snapshot.library.frame_files.frames(song.content_hash)
        length = min(_PART, len(frames) // 2)
        if length < DELTA_WIDTH:
            continue
        starts = np.linspace(0, len(frames) - length, min(_MAX_PARTS, len(frames) // length)).astype(int)
        features = model.features([frames.part(start, start + length) for start in starts.tolist()])
        if not has_features(features).all():  # frames of an older version
            continue
        vectors.append(model.vectors(features))
        song_of_part += [number] * len(starts)
    if not vectors:
        return empty
    return np.concatenate(vectors).astype(np.float64), np.array(song_of_part, dtype=np.int64)
