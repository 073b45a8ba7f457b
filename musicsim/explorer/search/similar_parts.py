"""Parts of the sound, such as rhythm, in which two songs are more similar than most pairs of the library's songs."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from musicsim._arrays import Float32Array, Float64Array
from musicsim.explorer.models.encoders import SOUND_SIZES
from musicsim.explorer.search.why_groups import GROUPS, sound_groups
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library, Song
from musicsim.library.stores.models import Vectors
from musicsim.places import places_in_order

PARTS = {
    "tone color": "tone color",
    "how much the loudness varies": "changes in loudness",
    "attacks and swells": "note starts",
    "rhythm and fluctuation": "rhythm",
}
"""Names of some of :data:`GROUPS` in reasons; the other groups are hard to hear."""
_SAMPLE = 300  # number of songs that represent the library
_PAIRS_PER_SONG = 7
_MAX_TEMPO_RATIO = 1.08  # largest ratio of two tempos, after folding octaves, at which rhythms can sound similar


def rank_parts(
    snapshot: Snapshot, song: Song | None, others: Sequence[Song], features: Float32Array | None = None
) -> list[dict[str, float]]:
    """Return the share of the library's pairs of songs that are nearer in each of the :data:`PARTS`, per other song.

    `features` replace those of `song`, which may be None. The result is empty for songs without features. The rhythm is
    left out unless the tempos fit.
    """
    sound = _find_sound(snapshot)
    one = features if features is not None and sound is not None and len(features) == sound.n_features else None
    if one is None and sound is not None and song is not None:
        one = sound.rows([song.id])[0]
    if sound is None or one is None or not others:
        return [{} for _ in others]
    rows = sound.rows([other.id for other in others])
    shares = sound.rank_pairs(one, np.array([one if row is None else row for row in rows])).tolist()
    tempo = song.tempo if song else None
    return [
        {}
        if row is None
        else {
            name: share
            for name, share in zip(sound.names, each, strict=True)
            if name != "rhythm" or _fit_tempos(tempo, other.tempo)
        }
        for other, row, each in zip(others, rows, shares, strict=True)
    ]


def _fit_tempos(tempo: float | None, other: float | None) -> bool:
    """Return whether two tempos are known and almost equal after folding octaves."""
    if not tempo or not other:
        return False  # without a beat, there is no rhythm to compare
    octaves = float(np.log2(tempo / other))
    return abs(octaves - round(octaves)) <= np.log2(_MAX_TEMPO_RATIO)


class _Sound:
    """Features of the model Sound in audible parts, and the distances between songs of the library."""

    def __init__(self, stored: Vectors) -> None:
        self._X, self._order = stored.X, np.argsort(stored.song_ids)
        self._ids = stored.song_ids[self._order]
        self.n_features = self._X.shape[1]
        group = sound_groups(self.n_features)
        columns = {PARTS[name]: np.flatnonzero(group == i) for i, name in enumerate(GROUPS) if name in PARTS}
        self.names = list(columns)
        self._columns = np.concatenate(list(columns.values()))
        self._starts = np.cumsum([0, *map(len, columns.values())])[:-1]
        self._distances = self._sample_distances()

    def _sample_distances(self) -> Float64Array:
        """Return the sorted distances of pairs of songs, (n_pairs, n_parts)."""
        places = np.random.default_rng(0).permutation(len(self._ids))[:_SAMPLE]
        sample = np.asarray(self._X[np.sort(places)])
        shifts = range(1, min(len(sample), _PAIRS_PER_SONG + 1))
        distances = [self._measure(sample, np.roll(sample, shift, axis=0)) for shift in shifts]
        return np.sort(np.concatenate([np.empty((0, len(self.names))), *distances]), axis=0)

    def _measure(self, some: Float32Array, others: Float32Array) -> Float64Array:
        """Return the squared distance of songs in each part, (n_songs, n_parts)."""
        differences = others[:, self._columns] - some[..., self._columns]
        return np.add.reduceat(np.square(differences), self._starts, axis=1).astype(np.float64)

    def rows(self, song_ids: Sequence[int]) -> list[Float32Array | None]:
        """Return the features of songs; None for songs without features."""
        places = places_in_order(self._ids, np.array(song_ids, dtype=np.int64), self._order)
        return [np.asarray(self._X[place]) if place >= 0 else None for place in places.tolist()]

    def rank_pairs(self, one: Float32Array, others: Float32Array) -> Float64Array:
        """Return the share of pairs that are at least as near as a song and each of the others, (n_others, n_parts)."""
        parts = zip(self._distances.T, self._measure(one, others).T, strict=True)
        nearer = [np.searchsorted(sampled, distances) for sampled, distances in parts]
        # the compared pair counts, too: in a library of two songs, nothing shows that they are similar
        return (np.stack(nearer, axis=1) + 1) / (len(self._distances) + 1)


def _find_sound(snapshot: Snapshot) -> _Sound | None:
    """Return the features of the built-in model; None before it has been fitted."""
    model_id = _find_native(snapshot.library, snapshot.revision)
    return None if model_id is None else _read_sound(snapshot.library, model_id, snapshot.n_indexed)


@lru_cache(maxsize=8)
def _find_native(library: Library, revision: int) -> str | None:
    del revision  # part of the cache key
    record = library.models.native()
    is_usable = record is not None and record.n_features in SOUND_SIZES and library.models.is_whole(record)
    return record.id if record is not None and is_usable else None


@lru_cache(maxsize=2)
def _read_sound(library: Library, model_id: str, n_songs: int) -> _Sound:
    del n_songs  # part of the cache key, because new songs add features
    return _Sound(library.models.features(model_id))
