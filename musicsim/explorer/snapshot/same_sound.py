"""Songs of a library that hold the same sound: found after a scan, folded into one wherever songs are shown."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from musicsim import search
from musicsim._arrays import Float16Array
from musicsim.library import Library, Song
from musicsim.library.stores.duplicates import SamePair

_LOSSLESS = frozenset(
    (".flac", ".wav", ".wave", ".w64", ".rf64", ".aiff", ".aif", ".alac", ".ape", ".wv", ".tta", ".tak", ".shn")
)


def _worth(song: Song) -> tuple[bool, bool, float, int]:
    """What makes a song stand for its duplicates: no loss, an artist, more of the sound, the one that was first."""
    return song.path.suffix.lower() in _LOSSLESS, song.artist is not None, round(song.duration_s), -song.id


def groups(songs: Sequence[Song], pairs: Iterable[SamePair]) -> list[list[Song]]:
    """Songs that hold the same sound, the one that stands for the others first.

    Pairs that a listener has parted join nothing.
    """
    by_id = {song.id: song for song in songs}
    same = [p for p in pairs if p.is_same and p.first_id in by_id and p.second_id in by_id]
    if not same:
        return []
    ids = sorted({i for p in same for i in (p.first_id, p.second_id)})
    row_of = {song_id: row for row, song_id in enumerate(ids)}
    joined = [
        search.DuplicatePair(row_of[p.first_id], row_of[p.second_id], p.similarity, p.offset_s, True) for p in same
    ]
    found: dict[int, list[Song]] = {}
    for song_id, label in zip(ids, search.group_pairs(len(ids), joined).tolist(), strict=True):
        found.setdefault(label, []).append(by_id[song_id])
    return [sorted(group, key=_worth, reverse=True) for group in found.values()]


def representatives(songs: Sequence[Song], pairs: Sequence[SamePair]) -> dict[int, int]:
    """The id of the song that stands for another one, by the id of the latter."""
    return {song.id: first.id for first, *others in groups(songs, pairs) for song in others} if pairs else {}


def find_new_duplicates(library: Library, progress: Callable[..., None]) -> None:
    """Compare songs that joined since the last time with all others, and keep the pairs with the same sound."""
    new = library.duplicates.not_compared()
    if not new:
        return
    progress("looking for duplicates")
    native = library.models.native()
    assert native is not None  # songs are placed before they are compared
    vectors = library.vectors(native.id)  # what was learned of taste says nothing of recordings
    table = library.table()
    places = table.places_of(vectors.song_ids)
    here = places >= 0
    ids, durations = vectors.song_ids[here], table.columns.duration_s[places[here]]
    X = vectors.X if here.all() else vectors.X[here]

    def frames_of(row: int) -> Float16Array | None:
        digest = library.content_hash(int(ids[row]))
        return library.frame_files.mfcc(digest) if library.frame_files.kept_of([digest]) else None

    rows = np.flatnonzero(np.isin(ids, list(new)))
    found = []
    for pair in search.find_duplicates(X, durations, frames_of, rows=rows):
        # vectors and lengths alone join songs of one drum machine: without frames nothing is folded
        if pair.offset_s is not None:
            first, second = int(ids[pair.first]), int(ids[pair.second])
            sign = 1.0 if first < second else -1.0
            found.append(SamePair(min(first, second), max(first, second), pair.similarity, sign * pair.offset_s))
    library.duplicates.enter(found, ids[rows].tolist())
