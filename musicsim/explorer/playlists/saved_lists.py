"""The playlists of a library as a walk is fitted on them: rows of songs, with their categories."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from musicsim.explorer.snapshot.snapshot import Snapshot

__all__ = ["SEED", "Lists", "listed"]

SEED = 0


@dataclass(frozen=True, slots=True)
class Lists:
    """Playlists as rows of the songs, with their categories."""

    rows: list[list[int]]
    categories: list[str | None]

    def kept_back(self, share: float) -> "tuple[Lists, Lists]":
        """All but a share of the lists, and these; drawn with :data:`SEED`."""
        order = np.random.default_rng(SEED).permutation(len(self.rows))
        n_back = round(share * len(order))
        return self.some(order[n_back:]), self.some(order[:n_back])

    def some(self, chosen: npt.NDArray[np.int64]) -> "Lists":
        """These of the lists, in this order."""
        return Lists([self.rows[i] for i in chosen], [self.categories[i] for i in chosen])


def listed(snapshot: Snapshot) -> Lists:
    """The library's playlists; songs without a vector are passed over, and a song right after itself."""
    playlists = snapshot.library.playlists()
    row_of = snapshot.row_of if playlists else {}  # which reads every song
    found = Lists([], [])
    for playlist in playlists:
        rows: list[int] = []
        for i in playlist.song_ids:
            if i in row_of and row_of[i] != (rows[-1] if rows else None):
                rows.append(row_of[i])
        if len(rows) > 1:
            found.rows.append(rows)
            found.categories.append(playlist.category)
    return found
