"""Songs of one label, folder or artist, and parts of one song: the classes whose covariance a whitening takes out."""

import numpy as np

from musicsim import metric
from musicsim._arrays import Int64Array
from musicsim.audio import DELTA_WIDTH, HOP, SAMPLE_RATE
from musicsim.explorer.learning.task import FloatArray, Rows, Task
from musicsim.explorer.models.encoders import has_features
from musicsim.explorer.snapshot.snapshot import Snapshot

SONGS = "songs"
_LABELS = {"genre": "genres", "artist": "artists", "folder": "folders"}
_PART = round(20 * SAMPLE_RATE / HOP)  # frames; a shorter song is halved
_MAX_PARTS = 6  # of a song
_MAX_SONGS = 300  # whose parts are compared
_SEED = 0


class WithinSongs:
    """Covariances within the classes of the songs of a task.

    `kinds` says what to take as classes, alone and together, those that say most of the supervision first.
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
        beside = ("artists", "folders")
        every = (*(() if own in beside else (own,)), *beside, *parts)
        self.kinds: list[tuple[str, ...]] = list(dict.fromkeys([(own,), parts, (own, *parts), beside, every]))
        self.kinds = [kinds for kinds in self.kinds if kinds]

    def covariance(self, space: FloatArray, kind: str, rows: Rows) -> FloatArray:
        """Within the classes of one of the :attr:`kinds`, along the directions of a space, the rows of (r, d).

        Only labels of `rows` are used; parts of songs need none. Raises ValueError if no two of the songs are of one
        class.
        """
        if kind == SONGS:
            return metric.within_covariance(self._parts @ space.T, self._song_of_part)
        labels = self._labels.get(kind)
        X = self._task.X[rows] @ space.T
        if labels is not None:
            return metric.within_covariance(X, [labels[row] for row in rows])
        return metric.within_covariance(X, self._task.supervision.relevance(rows).restrict(rows, rows))


def _parts(snapshot: Snapshot) -> tuple[FloatArray, Int64Array]:
    """Vectors of parts of a sample of the songs, and the song of each; none where no sound is compared or kept."""
    model = snapshot.model
    assert model is not None
    nothing = np.empty((0, model.n_dimensions)), np.empty(0, dtype=np.int64)
    if not model.encoder_.uses_audio:
        return nothing
    kept = snapshot.library.frame_files.kept()
    some = np.sort(np.random.default_rng(_SEED).permutation(snapshot.n_indexed)[:_MAX_SONGS])
    songs = [song for song in snapshot.songs_at(some) if song.content_hash in kept]
    vectors, of = [], []
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
        of += [number] * len(starts)
    if not vectors:
        return nothing
    return np.concatenate(vectors).astype(np.float64), np.array(of, dtype=np.int64)
