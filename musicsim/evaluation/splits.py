"""Splits by artist, never by song (Whitman et al. 2001): no song of a test artist is in the training set.

Songs of one artist share voice, band and studio. A model trained on some of them recognizes the others by these. Both
splitters work as the `cv` of scikit-learn's searches; pass ``groups=artists`` to their ``fit``. An unknown artist
(None, nan, blank or -1) is an artist of one song.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.relevance import group_codes


class ArtistSplit:
    """Random splits of the artists into training and test.

    Parameters
    ----------
    n_splits : int, at least 1
    test_size : float in (0, 1) or int; share, or number, of the *artists*; the share of songs varies
    random_state : int, numpy Generator or None; an int gives the same splits in every call

    Examples
    --------
    Training, validation and test songs, 40 : 30 : 30 by artist, from two splits:

    >>> artists = np.repeat(np.arange(10), 3)
    >>> rest, test = next(ArtistSplit(1, 0.3, random_state=0).split(artists, groups=artists))
    >>> split = ArtistSplit(1, 3 / 7, random_state=1).split(rest, groups=artists[rest])
    >>> train, validation = (rest[rows] for rows in next(split))
    >>> len(train), len(validation), len(test)
    (12, 9, 9)
    """

    def __init__(self, n_splits: int = 10, test_size: float = 0.2, random_state: Any = None) -> None:
        self.n_splits, self.test_size, self.random_state = n_splits, test_size, random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Int64Array, Int64Array]]:
        """Yield the rows of training and of test, ascending, `n_splits` times.

        `groups` is the artist of each song; of X, only the length is used. Raises ValueError if `groups` are missing,
        do not have one entry per song, or are too few.
        """
        from sklearn.model_selection import GroupShuffleSplit

        if groups is None:
            raise ValueError("groups is missing: pass the artist of each song, because splits are by artist.")
        n_songs = X.shape[0] if hasattr(X, "shape") else len(X)
        artists = group_codes(groups)  # each unknown artist is a number of its own
        if len(artists) != n_songs:
            raise ValueError(f"groups has {len(artists)} entries for {n_songs} songs; pass one per song.")
        n_artists = len(np.unique(artists))
        if n_artists < 2:
            raise ValueError(f"groups has {n_artists} artists; a split needs at least 2.")
        # scikit-learn does not accept a Generator
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        splitter = GroupShuffleSplit(self.n_splits, test_size=self.test_size, random_state=seed)
        yield from splitter.split(artists, groups=artists)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits; the arguments of scikit-learn are ignored."""
        return self.n_splits

    def __repr__(self) -> str:
        return f"ArtistSplit({self.n_splits}, {self.test_size}, random_state={self.random_state!r})"
