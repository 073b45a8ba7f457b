"""Splits by artist, never by song (Whitman et al. 2001): no song by a test artist is in the training set.

A model trained on some songs by an artist would recognize the others by the voice, the band or the studio. The
splitter works as the `cv` argument of scikit-learn's searches; pass ``groups=artists`` to their ``fit``. Each
song by an unknown artist (None, nan, blank or -1) is treated as the only song by its artist.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.relevance import group_codes


class ArtistSplit:
    """Random splits of the artists into training and test artists.

    Parameters
    ----------
    n_splits : int, at least 1
    test_size : float in (0, 1) or int; share or number of *artists* for the test; the share of songs varies
    random_state : int, numpy Generator or None; with an int, every call gives the same splits

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.evaluation import ArtistSplit
    >>> artists = np.repeat(np.arange(10), 3)
    >>> rest, test = next(ArtistSplit(1, 0.3, random_state=0).split(artists, groups=artists))
    >>> split = ArtistSplit(1, 3 / 7, random_state=1).split(rest, groups=artists[rest])
    >>> train, validation = (rest[rows] for rows in next(split))
    >>> len(train), len(validation), len(test)
    (12, 9, 9)
    >>> set(artists[train]) & set(artists[test])  # no artist is on both sides
    set()
    """

    def __init__(self, n_splits: int = 10, test_size: float = 0.2, random_state: Any = None) -> None:
        self.n_splits, self.test_size, self.random_state = n_splits, test_size, random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Int64Array, Int64Array]]:
        """Yield `n_splits` pairs of training rows and test rows, each in ascending order.

        Parameters
        ----------
        X : sequence of n_songs; only its length is used
        y : ignored
        groups : sequence of shape (n_songs,); the artist of each song
        """
        from sklearn.model_selection import GroupShuffleSplit

        if groups is None:
            raise ValueError("groups is missing: pass the artist of each song, because splits are by artist.")
        n_songs = X.shape[0] if hasattr(X, "shape") else len(X)
        artists = group_codes(groups)  # each song by an unknown artist gets a different number
        if len(artists) != n_songs:
            raise ValueError(f"groups has {len(artists)} entries for {n_songs} songs: pass one per song.")
        n_artists = len(np.unique(artists))
        if n_artists < 2:
            raise ValueError(f"groups has {n_artists} artists; a split needs at least 2.")
        # scikit-learn does not accept a Generator
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        splitter = GroupShuffleSplit(self.n_splits, test_size=self.test_size, random_state=seed)
        yield from splitter.split(artists, groups=artists)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits; the arguments that scikit-learn passes are ignored."""
        return self.n_splits

    def __repr__(self) -> str:
        return f"ArtistSplit({self.n_splits}, {self.test_size}, random_state={self.random_state!r})"
