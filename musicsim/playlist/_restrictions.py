"""Masks of the songs allowed at a place of a playlist, given the songs before it and those fixed behind it."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from musicsim._arrays import BoolArray, IntpArray
from musicsim.playlist.hypergraph import is_missing


def group_codes(argument: str, groups: Sequence[Hashable] | None, n_songs: int) -> IntpArray | None:
    """Number the groups; -1 for None, blank and nan, which collide with nothing."""
    if groups is None:
        return None
    if len(groups) != n_songs:
        raise ValueError(f"{argument} has {len(groups)} entries for {n_songs} songs; give one a song")
    code: dict[Hashable, int] = {}
    codes = [-1 if is_missing(group) else code.setdefault(group, len(code)) for group in groups]
    return np.array(codes, dtype=np.intp)


@dataclass(slots=True)
class Restrictions:
    """Restrictions of a playlist as masks over the songs.

    `fixed` are songs by their place; `group` keeps songs apart by `spacing`, `work` for good. Memory: two
    masks of one byte a song.
    """

    n_songs: int
    fixed: Mapping[int, int] = field(default_factory=dict)
    exclude: Sequence[int] = ()
    group: IntpArray | None = None
    spacing: int = 0
    work: IntpArray | None = None
    repeat: bool = False
    _never: BoolArray = field(init=False)
    _used: int = field(init=False, default=0)
    _unused: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        self._never = np.zeros(self.n_songs, dtype=bool)
        self._never[list(self.exclude)] = True
        self._unused = ~self._never
        if not self.repeat:
            for song in self.fixed.values():
                self._strike(song)

    def _strike(self, song: int) -> None:
        self._unused[song] = False
        if self.work is not None and self.work[song] >= 0:
            self._unused[self.work == self.work[song]] = False

    def unused(self, songs: Sequence[int]) -> BoolArray:
        """The songs that may still come, wherever; `songs` are those placed so far and only grow."""
        if self.repeat:
            return ~self._never
        for song in songs[self._used :]:
            self._strike(song)
        self._used = len(songs)
        return self._unused.copy()

    def allowed(
        self, songs: Sequence[int], place: int | None = None, spacing: int | None = None
    ) -> BoolArray:
        """The unused songs that are no closer than the spacing to one of their group.

        Parameters
        ----------
        songs : songs placed so far
        place : int or None
            A place further on than the next one, whose neighbours before it are not all known.
        spacing : int or None
            Less than what was asked, where that cannot be kept.
        """
        place = len(songs) if place is None else place
        spacing = self.spacing if spacing is None else spacing
        mask = self.unused(songs)
        if self.repeat and place == len(songs):
            mask[list(songs[-1:])] = False  # not twice at once
        if self.group is None or not spacing:
            return mask
        near = [songs[i] for i in range(max(0, place - spacing), len(songs))]
        near += [song for at, song in self.fixed.items() if len(songs) <= at and abs(at - place) <= spacing]
        for code in {int(self.group[song]) for song in near}:
            if code >= 0:
                mask &= self.group != code
        return mask

    def why_none(self, songs: Sequence[int]) -> str:
        """Say why no song may come next."""
        left = int(np.count_nonzero(self.unused(songs)))
        if left:
            return f"the {left} songs left are all by artists of the last {self.spacing} songs"
        return "no songs are left"
