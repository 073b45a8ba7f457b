"""Costs of answers in each part of the sound, the factors that almost all songs have."""

import math
from collections.abc import Sequence

import numpy as np

from musicsim._arrays import Float64Array, Int64Array
from musicsim.errors import ModelError
from musicsim.explorer import Factors, Snapshot, answer_costs, pairs_apart
from musicsim.library import Judgment

_MIN_KNOWN = 0.9  # minimum share of the sampled songs that must have another part


class Parts:
    """The parts of a library's sound. Raises ModelError before Sound is fitted.

    `widths` (n_parts,) are the mean squared distances in the parts, and `plain` (n_parts,) their shares in Sound.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._factors = Factors(snapshot)
        sampled = self._factors.sampled
        n_songs = {name: _count_songs(len(apart)) for name, apart in sampled.items()}
        n_least = _MIN_KNOWN * max(n_songs.values())
        widths = {
            name: apart.mean()
            for name, apart in sampled.items()
            if len(apart) and n_songs[name] >= n_least and apart[-1] > 0
        }
        self.names, self.widths = tuple(widths), np.array(list(widths.values()))
        in_sound = self.widths * np.isin(self.names, list(self._factors.columns))
        if not in_sound.any():
            raise ModelError(f"{snapshot.library.name}: there are too few songs to compare. Add songs.")
        self.plain = in_sound / in_sound.sum()

    def costs(self, song_ids: Int64Array, form: str) -> Float64Array:
        """Return the cost of each option in each part, (n_questions, n_options, n_parts).

        The mean squared distance in each part is 1. NaN for songs without a part. `song_ids` is (n_questions, n_shown).
        """
        rows, places = np.unique(self._factors.sound.rows_of(song_ids.ravel()), return_inverse=True)
        apart = []
        for name in self.names:
            vectors = self._factors.vectors(name, np.maximum(rows, 0)).astype(np.float64)
            vectors[rows < 0] = np.nan
            apart.append(pairs_apart(vectors, places.reshape(song_ids.shape)).sum(axis=2))
        return answer_costs(np.stack(apart, axis=2) / self.widths, song_ids.shape[1], form)

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


def _count_songs(n_pairs: int) -> int:
    """Return the number of songs that form so many pairs, n (n - 1) / 2."""
    return (1 + math.isqrt(1 + 8 * n_pairs)) // 2
