"""A playlist for two people that is fair to the one who is worse off.

The closeness of a song to the previous one, in a person's model, is the share of the other songs that are farther from
the previous one. Each step chooses the song with the largest minimum, over both people, of the sum of closenesses so
far (maximin). Among equal minimums, the larger total decides. Closeness is a rank, so the scales of the models do not
matter, and neither person gains from a model with larger distances.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Float64Array, FloatingArray, Int64Array
from musicsim.errors import NotFoundError
from musicsim.explorer import MAX_PLAYLIST_SONGS, PlaylistRequest, Snapshot, Walk, find_allowed_rows
from musicsim.extensions.two_ears.ears import TwoEars
from musicsim.library import Song

_SPACING = 5  # minimum number of songs between two by the same artist, if possible
_TIE = 1e-9

Aim = Callable[[Float64Array], Float64Array]
"""A function from the sums of closenesses of both people, (2, n_songs), to the value of each song, (n_songs,)."""


@dataclass(frozen=True, slots=True)
class JointPlaylist:
    """A playlist for two people. Each song after the first has a reason, which names the people."""

    songs: tuple[Song, ...]
    reasons: tuple[str, ...]
    closeness: tuple[float, float]  # each person's mean

    def describe(self, people: tuple[str, str]) -> str:
        """Describe the mean closeness of both people."""
        shares = (f"{share:.0%} for {person}" for person, share in zip(people, self.closeness, strict=True))
        return f"A step is closer than these shares of all songs: {', '.join(shares)}."


def rank_closeness(X: FloatingArray, row: int) -> Float64Array:
    """Return for each song the share of the other songs that are farther from a row of X, (n_songs,).

    Memory: three numbers per song, in addition to X.
    """
    point = X[row].astype(np.float64)
    squares = np.einsum("ij,ij->i", X, X, dtype=np.float64) - 2.0 * (X @ point)  # without a constant
    others = np.sort(np.delete(squares, row))
    n_farther = len(others) - np.searchsorted(others, squares, side="right")
    return n_farther / max(len(others) - 1, 1)


def favor_worse_off(sums: Float64Array) -> Float64Array:
    """Return the smaller sum of each song, and a tiny share of the total that only decides between equal sums."""
    values: Float64Array = sums.min(axis=0) + _TIE * sums.sum(axis=0)
    return values


def choose_rows(
    spaces: Sequence[FloatingArray], first: int, length: int, *, artists: Int64Array, aim: Aim = favor_worse_off
) -> tuple[list[int], Float64Array]:
    """Return the rows of a playlist from a first song, and the closenesses of its steps, (n_steps, 2).

    `spaces` are the vectors of the same songs for both people. `artists` (n_songs,) are numbers, -1 if unknown; two
    songs by one artist are at least five songs apart, unless no other song is left.
    """
    free = np.ones(len(artists), dtype=np.bool_)
    rows, steps, sums = [first], [], np.zeros(2)
    free[first] = False
    while len(rows) < length and free.any():
        close = np.stack([rank_closeness(X, rows[-1]) for X in spaces])
        recent = artists[rows[-_SPACING:]]
        apart = free & ~np.isin(artists, recent[recent >= 0])
        values = np.where(apart if apart.any() else free, aim(sums[:, None] + close), -np.inf)
        rows.append(int(values.argmax()))
        steps.append(close[:, rows[-1]])
        sums += steps[-1]
        free[rows[-1]] = False
    return rows, np.array(steps).reshape(-1, 2)


def generate_for_both(
    two: TwoEars,
    first: int | None = None,
    length: int = 12,
    *,
    walk_of: Callable[[Snapshot], Walk] = Walk,
    random_state: int | None = None,
) -> JointPlaylist:
    """Generate a playlist from a first song id, or from a random song; `walk_of` returns a walk for the reasons.

    Songs with a thumb down are left out. In a large library, 20,000 random songs are considered. Raises NotFoundError
    if the first song has no vector in both models, or if no song is left.
    """
    rng = np.random.default_rng(random_state)
    snapshot = two.ears[0].snapshot
    allowed_ids = snapshot.row_ids[find_allowed_rows(snapshot, PlaylistRequest())]
    ids = np.intersect1d(two.shared_ids, allowed_ids)
    if len(ids) > MAX_PLAYLIST_SONGS:
        ids = np.sort(rng.choice(ids, MAX_PLAYLIST_SONGS, replace=False))
    if first is not None:
        (first,) = snapshot.present_ids([first]) or (first,)
        ids = np.union1d(ids, np.intersect1d(two.shared_ids, [first]))
        if first not in ids:
            raise NotFoundError(f"song {first} cannot be compared in both models. Choose a different first song.")
    if not len(ids):
        raise NotFoundError("no song is left for a playlist: add songs, or remove thumbs down.")
    start = int(rng.integers(len(ids)) if first is None else np.searchsorted(ids, first))
    rows, steps = choose_rows(
        [ear.vectors(ids) for ear in two.ears], start, length,
        artists=snapshot.columns.group.codes[snapshot.rows_of(ids)].astype(np.int64),
    )  # fmt: skip
    chosen = ids[rows].tolist()
    explained = [walk_of(ear.snapshot).explain(chosen).reasons[1:] for ear in two.ears]
    reasons = [
        ". ".join(
            f"{person}: {_describe(reason, share)}"
            for person, reason, share in zip(two.people, both, closeness, strict=True)
        )
        for both, closeness in zip(zip(*explained, strict=True), steps.tolist(), strict=True)
    ]
    mine, theirs = steps.mean(axis=0).tolist() if len(steps) else (0.0, 0.0)
    return JointPlaylist(tuple(snapshot.songs_at(snapshot.rows_of(chosen))), tuple(reasons), (mine, theirs))


def _describe(reason: str | None, closeness: float) -> str:
    """Describe a step for one person, such as “both dark (closer than 97% of songs)”."""
    closer = f"closer than {closeness:.0%} of songs"
    return f"{reason} ({closer})" if reason else closer
