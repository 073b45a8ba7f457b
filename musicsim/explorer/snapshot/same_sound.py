"""Songs of a library that hold the same sound: found after a scan, folded into one wherever songs are shown."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from musicsim import search
from musicsim._arrays import Float16Array
from musicsim.library import Library, Song
from musicsim.library.stores.duplicates import SamePair
from musicsim.public import owner_only

_LOSSLESS = frozenset(
    (
        ".flac",
        ".wav",
        ".wave",
        ".w64",
        ".rf64",
        ".aiff",
        ".aif",
        ".alac",
        ".ape",
        ".wv",
        ".tta",
        ".tak",
        ".shn",
    )
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
        search.DuplicatePair(row_of[p.first_id], row_of[p.second_id], p.similarity, p.offset_s, True)
        for p in same
    ]
    found: dict[int, list[Song]] = {}
    for song_id, label in zip(ids, search.group_pairs(len(ids), joined).tolist(), strict=True):
        found.setdefault(label, []).append(by_id[song_id])
    return [sorted(group, key=_worth, reverse=True) for group in found.values()]


def representatives(songs: Sequence[Song], pairs: Sequence[SamePair]) -> dict[int, int]:
    """The id of the song that stands for another one, by the id of the latter."""
    return {song.id: first.id for first, *others in groups(songs, pairs) for song in others} if pairs else {}


@owner_only
def find_new_duplicates(library: Library, songs_here: Sequence[Song], tell: Callable[..., None]) -> None:
    """Compare songs that joined since the last time with all others, and keep the pairs with the same sound."""
    new = library.duplicates.not_compared()
    if not new:
        return
    tell("looking for duplicates")
    by_id = {song.id: song for song in songs_here}
    native = library.models.native()
    assert native is not None  # songs are placed before they are compared
    vectors = library.vectors(native.id)  # what was learned of taste says nothing of recordings
    here = np.array([i in by_id for i in vectors.song_ids.tolist()], dtype=bool)
    songs = [by_id[i] for i in vectors.song_ids[here].tolist()]
    X = vectors.X if here.all() else vectors.X[here]
    kept = library.frame_files.kept()

    def frames_of(row: int) -> Float16Array | None:
        digest = songs[row].content_hash
        return library.frame_files.mfcc(digest) if digest in kept else None

    rows = np.array([row for row, song in enumerate(songs) if song.id in new], dtype=np.int64)
    durations = np.array([song.duration_s for song in songs])
    found = []
    for pair in search.find_duplicates(X, durations, frames_of, rows=rows):
        # vectors and lengths alone join songs of one drum machine: without frames nothing is folded
        if pair.offset_s is not None:
            first, second = songs[pair.first].id, songs[pair.second].id
            sign = 1.0 if first < second else -1.0
            found.append(
                SamePair(min(first, second), max(first, second), pair.similarity, sign * pair.offset_s)
            )
    library.duplicates.enter(found, [songs[row].id for row in rows.tolist()])
