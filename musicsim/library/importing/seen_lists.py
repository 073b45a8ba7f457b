"""Which songs of which playlist an import found."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from musicsim.library.importing.places import file_name, is_web
from musicsim.library.importing.records import Batch, NamedSong


@dataclass(frozen=True, slots=True)
class Absent:
    """An entry of a list whose song the library does not have: where in the list, what, and why."""

    position: int
    song: NamedSong
    reason: str

    @property
    def label(self) -> str:
        """Artist and title as far as they are known, else the file's name or the address."""
        names = " — ".join(filter(None, (self.song.title, self.song.artist)))
        return names or file_name(self.song.place)


@dataclass(frozen=True, slots=True)
class SeenList:
    """A list of an import: its entries, how many of them are in the library, and the others."""

    name: str
    category: str
    n_entries: int
    absent: tuple[Absent, ...]

    @property
    def n_found(self) -> int:
        """Entries whose song the library has."""
        return self.n_entries - len(self.absent)


def seen_lists(batch: Batch, song_ids: npt.NDArray[np.int64]) -> tuple[SeenList, ...]:
    """The lists of a batch of playlists, in the order of its groups; none for plays and tags.

    Parameters
    ----------
    song_ids : int64 (n_songs,)
        The library's song for each of the batch's; -1 where there is none.
    """
    if batch.kind != "playlists":
        return ()
    n_entries = np.bincount(batch.group, minlength=len(batch.groups))
    absent: dict[int, list[Absent]] = {}
    for row in np.flatnonzero(song_ids[batch.song] < 0).tolist():
        song = batch.songs[batch.song[row]]
        absent.setdefault(int(batch.group[row]), []).append(
            Absent(int(batch.value[row]), song, _reason(song))
        )
    return tuple(
        SeenList(*group, int(n_entries[i]), tuple(absent.get(i, ()))) for i, group in enumerate(batch.groups)
    )


def _reason(song: NamedSong) -> str:
    if is_web(song.place):
        return "address on the net"
    return "no such file" if song.place and not song.title else "not in the library"
