"""Squared distances between songs in each part of the sound: timbre and rhythm of Sound, harmony, and other models.

Timbre and rhythm add up to the distances of Sound. Other parts have no share in it: harmony in any key, if it is stored
with the audio features, and each model that the active model joins with Sound, such as a learned ear.
"""

from collections.abc import Callable, Sequence

import numpy as np

from musicsim._arrays import Float64Array, Int64Array
from musicsim.errors import ModelError
from musicsim.explorer.models.joint_space import JointEncoder
from musicsim.explorer.models.representations import representations
from musicsim.explorer.models.schema import SOUND
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.explorer.survey.tastes import costs, pairs_apart
from musicsim.library.stores.judgments import Judgment
from musicsim.places import places_in_order

TIMBRE, RHYTHM, HARMONY = "timbre", "rhythm", "harmony"
_SAMPLE = 300  # number of songs from which the mean distances are computed
_MIN_KNOWN = 0.9  # minimum share of the sample that must have another part

_Read = Callable[[Int64Array], Float64Array]  # rows of Sound -> vectors, NaN for songs without the part


class Parts:
    """The parts of a library's sound. Raises ModelError before Sound is fitted."""

    names: tuple[str, ...]
    plain: Float64Array  # (n_parts,): share of each part in the mean squared distance of Sound
    widths: Float64Array  # (n_parts,): mean squared distance between two songs in each part

    def __init__(self, snapshot: Snapshot) -> None:
        native = snapshot.library.models.native()
        if native is None:
            raise ModelError(f"{snapshot.library.name}: the model Sound is missing. Add songs, or refit it.")
        self._sound = take_snapshot(snapshot.library, native.id)
        sample = np.random.default_rng(0).permutation(self._sound.n_indexed)[:_SAMPLE]
        self._reads: dict[str, _Read] = {}
        widths = []
        for name, read in {**_read_sound(self._sound), **_read_others(self._sound, snapshot)}.items():
            vectors = read(sample)
            known = np.isfinite(vectors).all(axis=1)
            width = float(2 * vectors[known].var(axis=0, ddof=1).sum()) if known.sum() > 1 else 0.0
            if width > 0 and known.mean() >= _MIN_KNOWN:
                self._reads[name] = read
                widths.append(width)
        self.names, self.widths = tuple(self._reads), np.array(widths)
        in_sound = self.widths * np.isin(self.names, (TIMBRE, RHYTHM))
        if not in_sound.any():
            raise ModelError(f"{snapshot.library.name}: there are too few songs to compare. Add songs.")
        self.plain = in_sound / in_sound.sum()

    def costs(self, song_ids: Int64Array, form: str) -> Float64Array:
        """Return the cost of each option in each part, (n_questions, n_options, n_parts).

        The mean squared distance in each part is 1. NaN for songs without a part. `song_ids` is (n_questions, n_shown).
        """
        rows = self._sound.rows_of(song_ids.ravel())
        songs, places = np.unique(rows, return_inverse=True)
        places = places.reshape(song_ids.shape)
        apart = [pairs_apart(_read_known(read, songs), places).sum(axis=2) for read in self._reads.values()]
        return costs(np.stack(apart, axis=2) / self.widths, song_ids.shape[1], form)

    def differences(self, answers: Sequence[Judgment]) -> list[Float64Array | None]:
        """Return for each answer the costs of the other options minus that of the chosen one, (n_others, n_parts).

        None for unsure answers, and for songs without a part.
        """
        found: list[Float64Array | None] = [None] * len(answers)
        groups: dict[tuple[str, int], list[int]] = {}
        for at, answer in enumerate(answers):
            if answer.chosen is not None:
                groups.setdefault((answer.kind, len(answer.song_ids)), []).append(at)
        for (form, _), group in groups.items():
            ids = np.array([answers[at].song_ids for at in group])
            for at, options in zip(group, self.costs(ids, form), strict=True):
                chosen = answers[at].chosen
                assert chosen is not None
                chosen -= form == "like"  # the first song is not an option
                if np.isfinite(options).all():
                    found[at] = np.delete(options, chosen, axis=0) - options[chosen]
        return found


def _read_known(read: _Read, rows: Int64Array) -> Float64Array:
    """Return vectors of rows, NaN for rows of -1."""
    known = rows >= 0
    vectors = read(rows[known])
    found = np.full((len(rows), vectors.shape[1]), np.nan)
    found[known] = vectors
    return found


def _read_sound(sound: Snapshot) -> dict[str, _Read]:
    """Return readers of the timbre and the rhythm of Sound, whose vectors are blocks of columns."""
    from musicsim.explorer.models.encoders import FLUCTUATION

    assert sound.model is not None
    is_rhythm = sound.model.axes_[:, FLUCTUATION].any(axis=1)

    def columns(chosen: Int64Array) -> _Read:
        return lambda rows: sound.vectors_at(rows)[:, chosen].astype(np.float64)

    return {TIMBRE: columns(np.flatnonzero(~is_rhythm)), RHYTHM: columns(np.flatnonzero(is_rhythm))}


def _read_others(sound: Snapshot, snapshot: Snapshot) -> dict[str, _Read]:
    """Return readers of harmony, and of the models that the active model joins with Sound."""
    library, kind = sound.library, representations()[HARMONY]
    stored = library.frame_files.list_stored_aspects()

    def read_harmony(rows: Int64Array) -> Float64Array:
        hashes = [song.content_hash for song in sound.songs_at(rows)]
        known = np.array([one in stored for one in hashes], dtype=np.bool_)
        vectors = np.full((len(rows), kind.n_mapped or 0), np.nan)
        vectors[known] = kind.map(library.frame_files.aspects([one for one in hashes if one in stored]).harmony, None)
        return vectors

    readers: dict[str, _Read] = {HARMONY: read_harmony} if stored else {}
    encoder = snapshot.model.encoder_ if snapshot.model else None
    if isinstance(encoder, JointEncoder):
        features = library.models.features(snapshot.model_id)
        order = np.argsort(features.song_ids)
        for name, part, block in zip(encoder.names, encoder.parts, encoder.blocks, strict=True):

            def read(rows: Int64Array, block: slice = block) -> Float64Array:
                places = places_in_order(features.song_ids[order], sound.row_ids[rows], order)
                vectors = features.X[places][:, block].astype(np.float64)
                vectors[places < 0] = np.nan
                return vectors

            if getattr(part, "representation", SOUND) not in (SOUND, HARMONY):
                readers[name] = read
    return readers
