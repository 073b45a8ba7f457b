"""Passages of songs with their times: the typical part of each song, and the parts that explain a similarity."""

import csv
import io
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from musicsim.audio import TYPICAL_S
from musicsim.errors import NotFoundError
from musicsim.explorer import SearchRequest, Snapshot, explain_result, find_requested
from musicsim.extensions.exports.request import DEFAULT_K
from musicsim.library import atomic_path
from musicsim.progress import Progress

_BLOCK = 1_000  # songs that are read at a time
_MAX_TITLES = 3  # in one label
_REGION_COLUMNS = ("TIME", "ENDTIME", "LABEL")  # names that Sonic Visualiser knows


class ExportedPassage(NamedTuple):
    """A part of a song: its sound in words, and the title of the song that it is like, if any."""

    song_id: int
    start_s: float
    end_s: float
    sound: str
    like: str = ""

    @property
    def label(self) -> str:
        """The text for tables and label tracks."""
        return _name(self.sound, [self.like] if self.like else [])


def passages_of(snapshot: Snapshot, like: int | None, k: int | None, progress: Progress) -> Iterator[ExportedPassage]:
    """Yield the most typical part of each song, sorted by song id.

    With the id of a song as `like`, yield the passages that it shares with each of its `k` nearest songs instead.
    """
    if like is None:
        return _typical_parts(snapshot, progress)
    return _shared_passages(snapshot, like, DEFAULT_K if k is None else k, progress)


def _typical_parts(snapshot: Snapshot, progress: Progress) -> Iterator[ExportedPassage]:
    ids = sorted(snapshot.row_ids.tolist())
    for start in range(0, len(ids), _BLOCK):
        progress("reading songs", start, len(ids))
        for song in sorted(snapshot.library.songs(ids[start : start + _BLOCK]), key=lambda song: song.id):
            end_s = min(song.typical_s + TYPICAL_S, song.duration_s)
            yield ExportedPassage(song.id, song.typical_s, end_s, "typical")


def _shared_passages(snapshot: Snapshot, like: int, k: int, progress: Progress) -> Iterator[ExportedPassage]:
    shared: list[ExportedPassage] = []
    results = find_requested(snapshot, like, SearchRequest(k=k))
    for done, result in enumerate(results):
        progress("explaining similarities", done, len(results))
        one, other, why = explain_result(snapshot, like, result.song.id)
        ids, names = (like, result.song.id), (other.title, one.title)
        for song_id, partner, passages in zip(ids, names, why.passages, strict=True):
            shared += [ExportedPassage(song_id, p.start_s, p.end_s, why.shared[p.slot], partner) for p in passages]
    if not shared:
        raise NotFoundError(
            f"song {like}: no passages are known, because no features of single frames are stored. Scan the song again."
        )
    yield from sorted(shared)


def write_label_tracks(target: Path, passages: Iterable[ExportedPassage]) -> int:
    """Write an archive with a file per song for Audacity (.txt) and one for Sonic Visualiser (.csv).

    Return the number of songs. `passages` are sorted. One label names all songs that are like the same passage. The
    names of its columns let Sonic Visualiser show a table as regions.
    """
    n_songs = 0
    with atomic_path(target) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for song_id, of_song in groupby(passages, key=itemgetter(0)):
            rows = [
                (f"{start_s:.6f}", f"{end_s:.6f}", " ".join(_name(sound, [p.like for p in equal if p.like]).split()))
                for (start_s, end_s, sound), equal in groupby(of_song, key=itemgetter(1, 2, 3))
            ]
            archive.writestr(f"{song_id}.txt", "".join("\t".join(row) + "\n" for row in rows))
            table = io.StringIO()
            csv.writer(table, lineterminator="\n").writerows([_REGION_COLUMNS, *rows])
            archive.writestr(f"{song_id}.csv", table.getvalue())
            n_songs += 1
    return n_songs


def _name(sound: str, titles: Sequence[str]) -> str:
    """Name a passage by its sound and the songs that it is like."""
    shown = ", ".join(titles[:_MAX_TITLES])
    others = len(titles) - _MAX_TITLES
    return f"{sound}: like {shown}" + (f" and {others} more" if others > 0 else "") if titles else sound
