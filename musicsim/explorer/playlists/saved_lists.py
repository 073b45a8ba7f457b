"""The playlists of a library as a walk is fitted on them: rows of songs, with their categories."""

from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.explorer.snapshot.snapshot import Snapshot

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

    def some(self, chosen: Int64Array) -> "Lists":
        """These of the lists, in this order."""
        return Lists([self.rows[i] for i in chosen], [self.categories[i] for i in chosen])


def listed(snapshot: Snapshot) -> Lists:
    """The library's playlists; songs without a vector are passed over, and a song right after itself."""
    found = Lists([], [])
    for playlist in snapshot.library.playlists():
        rows = snapshot.rows_of(playlist.song_ids)
        rows = rows[rows >= 0]
        rows = rows[np.diff(rows, prepend=-1) != 0]
        if len(rows) > 1:
            found.rows.append(rows.tolist())
            found.categories.append(playlist.category)
    return found
