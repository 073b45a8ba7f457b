"""Squared distances between songs in each part of the sound: timbre and rhythm of Sound, harmony, and other models.

Timbre and rhythm add up to the distances of Sound. The other parts are not in Sound: harmony in any key, if it is
stored, and each model that the active model joins with Sound, such as a learned ear.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from musicsim._arrays import Float64Array, Int64Array
from musicsim.errors import ModelError
from musicsim.explorer.models.encoders import FLUCTUATION
from musicsim.explorer.models.joint_space import JointEncoder
from musicsim.explorer.models.representations import representations
from musicsim.explorer.models.schema import SOUND
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.explorer.survey.tastes import costs, pairs_apart
from musicsim.kernels.histograms import KEYLESS_HARMONY_SIZE
from musicsim.library.stores.judgments import Judgment
from musicsim.places import places_among

TIMBRE, RHYTHM, HARMONY = "timbre", "rhythm", "harmony"
_SAMPLE = 300  # number of songs from which the mean distances are computed
_MIN_KNOWN = 0.9  # minimum share of the sample that must have another part

_Read = Callable[[Int64Array], Float64Array]  # rows of Sound -> vectors, NaN for songs without the part


class Parts:
    """The parts of a library's sound. Raises ModelError before Sound is fitted.

    `widths` (n_parts,) are the mean squared distances in the parts, and `plain` (n_parts,) their shares in Sound.
    """

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
        rows, places = np.unique(self._sound.rows_of(song_ids.ravel()), return_inverse=True)
        apart = []
        for read in self._reads.values():
            vectors = read(np.maximum(rows, 0))
            vectors[rows < 0] = np.nan
            apart.append(pairs_apart(vectors, places.reshape(song_ids.shape)).sum(axis=2))
        return costs(np.stack(apart, axis=2) / self.widths, song_ids.shape[1], form)

    def differences(self, answers: Sequence[Judgment]) -> list[Float64Array | None]:
        """Return for each answer the costs of the other options minus that of the chosen one, (n_others, n_parts).

        None for unsure answers, and for songs without a part.
        """
        found: list[Float64Array | None] = [None] * len(answers)
        for form, n_songs in {(answer.kind, len(answer.song_ids)) for answer in answers}:
            same = [at for at, a in enumerate(answers) if (a.kind, len(a.song_ids)) == (form, n_songs)]
            for at, options in zip(
                same, self.costs(np.array([answers[at].song_ids for at in same]), form), strict=True
            ):
                chosen = answers[at].chosen
                if chosen is not None and np.isfinite(options).all():
                    chosen -= form == "like"  # the first song is not an option
                    found[at] = np.delete(options, chosen, axis=0) - options[chosen]
        return found


def _read_sound(sound: Snapshot) -> dict[str, _Read]:
    """Return readers of the timbre and the rhythm of Sound, whose vectors are blocks of columns."""
    assert sound.model is not None
    is_rhythm = sound.model.axes_[:, FLUCTUATION].any(axis=1)
    return {
        TIMBRE: lambda rows: sound.vectors_at(rows)[:, ~is_rhythm].astype(np.float64),
        RHYTHM: lambda rows: sound.vectors_at(rows)[:, is_rhythm].astype(np.float64),
    }


def _read_others(sound: Snapshot, snapshot: Snapshot) -> dict[str, _Read]:
    """Return readers of harmony, and of the models that the active model joins with Sound."""
    library, kind = sound.library, representations()[HARMONY]
    stored = library.frame_files.list_stored_aspects()

    def read_harmony(rows: Int64Array) -> Float64Array:
        hashes = [song.content_hash for song in sound.songs_at(rows)]
        vectors = np.full((len(rows), KEYLESS_HARMONY_SIZE), np.nan)
        known = library.frame_files.aspects([one for one in hashes if one in stored]).harmony
        vectors[[one in stored for one in hashes]] = kind.map(known, None)
        return vectors

    readers: dict[str, _Read] = {HARMONY: read_harmony} if stored else {}
    encoder = snapshot.model.encoder_ if snapshot.model else None
    if isinstance(encoder, JointEncoder):
        features = library.models.features(snapshot.model_id)

        def read_block(block: slice, rows: Int64Array) -> Float64Array:
            places = places_among(features.song_ids, sound.row_ids[rows])
            vectors = features.X[places, block].astype(np.float64)
            vectors[places < 0] = np.nan
            return vectors

        for name, part, block in zip(encoder.names, encoder.parts, encoder.blocks, strict=True):
            if getattr(part, "representation", SOUND) not in (SOUND, HARMONY):
                readers[name] = partial(read_block, block)
    return readers
