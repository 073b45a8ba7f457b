"""Passages of songs with their times: the typical part of each song, and the parts that explain a similarity."""

import zipfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from musicsim.audio import TYPICAL_S
from musicsim.errors import NotFoundError
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.requested import find_requested
from musicsim.explorer.search.why_sides import explain_result
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.exports.request import DEFAULT_K
from musicsim.library.disk.arrays import atomic_path
from musicsim.progress import Progress

_BLOCK = 1_000  # songs that are read at a time


class TimedLabel(NamedTuple):
    song_id: int
    start_s: float
    end_s: float
    label: str


def passages_of(snapshot: Snapshot, like: int | None, k: int | None, progress: Progress) -> Iterator[TimedLabel]:
    """Yield the most typical part of each song, sorted by song id.

    With the id of a song as `like`, yield the passages that it shares with each of its `k` nearest songs instead.
    """
    if like is None:
        return _typical_parts(snapshot, progress)
    return _shared_passages(snapshot, like, DEFAULT_K if k is None else k, progress)


def _typical_parts(snapshot: Snapshot, progress: Progress) -> Iterator[TimedLabel]:
    ids = sorted(snapshot.row_ids.tolist())
    for start in range(0, len(ids), _BLOCK):
        progress("reading songs", start, len(ids))
        for song in sorted(snapshot.library.songs(ids[start : start + _BLOCK]), key=lambda song: song.id):
            end_s = min(song.typical_s + TYPICAL_S, song.duration_s)
            yield TimedLabel(song.id, song.typical_s, end_s, "typical")


def _shared_passages(snapshot: Snapshot, like: int, k: int, progress: Progress) -> Iterator[TimedLabel]:
    labels: list[TimedLabel] = []
    results = find_requested(snapshot, like, SearchRequest(k=k))
    for done, result in enumerate(results):
        progress("explaining similarities", done, len(results))
        one, other, why = explain_result(snapshot, like, result.song.id)
        ids, names = (like, result.song.id), (other.title, one.title)
        for song_id, partner, passages in zip(ids, names, why.passages, strict=True):
            labels += [
                TimedLabel(song_id, p.start_s, p.end_s, f"{why.shared[p.slot]}: like {partner}") for p in passages
            ]
    if not labels:
        raise NotFoundError(
            f"song {like}: no passages are known, because no features of single frames are stored. Scan the song again."
        )
    yield from sorted(labels)


def write_label_tracks(target: Path, labels: Iterable[TimedLabel]) -> int:
    """Write an archive with one label track of Audacity per song; return the number of songs.

    Each line has the start and the end in seconds and the label, separated by tabs.
    """
    n_songs = 0
    with atomic_path(target) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for song_id, track in groupby(labels, key=itemgetter(0)):
            lines = [f"{start_s:.6f}\t{end_s:.6f}\t{' '.join(label.split())}\n" for _, start_s, end_s, label in track]
            archive.writestr(f"{song_id}.txt", "".join(lines))
            n_songs += 1
    return n_songs
