"""Duplicates: songs with the same sound, found after a scan and shown as one song."""

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
    """Return a sort key, larger for better duplicates: lossless, with an artist, longer, added earlier."""
    return song.path.suffix.lower() in _LOSSLESS, song.artist is not None, round(song.duration_s), -song.id


def groups(songs: Sequence[Song], pairs: Iterable[SamePair]) -> list[list[Song]]:
    """Group songs with the same sound, except pairs that a listener has separated.

    Each group starts with its representative, the song that is shown instead of the others.
    """
    by_id = {song.id: song for song in songs}
    same = [p for p in pairs if p.is_same and p.first_id in by_id and p.second_id in by_id]
    if not same:
        return []
    ids = sorted({i for p in same for i in (p.first_id, p.second_id)})
    row_of = {song_id: row for row, song_id in enumerate(ids)}
    joined = [(row_of[p.first_id], row_of[p.second_id]) for p in same]
    by_label: dict[int, list[Song]] = {}
    for song_id, label in zip(ids, search.group_pairs(len(ids), joined).tolist(), strict=True):
        by_label.setdefault(label, []).append(by_id[song_id])
    return [sorted(group, key=_worth, reverse=True) for group in by_label.values()]


def find_new_duplicates(library: Library, progress: Callable[..., None]) -> None:
    """Compare songs added since the last call with all others, and save the pairs with the same sound."""
    new = library.duplicates.not_compared()
    if not new:
        return
    progress("looking for duplicates")
    native = library.models.native()
    assert native is not None  # songs get vectors before they are compared
    vectors = library.vectors(native.id)  # vectors of a learned model represent taste, not recordings
    table = library.table()
    places = table.places_of(vectors.song_ids)
    known = places >= 0
    ids, durations = vectors.song_ids[known], table.columns.duration_s[places[known]]
    X = vectors.X if known.all() else vectors.X[known]

    def frames_of(row: int) -> Float16Array | None:
        digest = library.content_hash(int(ids[row]))
        return library.frame_files.frames(digest).mfcc if library.frame_files.find_stored([digest]) else None

    rows = np.flatnonzero(np.isin(ids, list(new)))
    pairs = []
    for pair in search.find_duplicates(X, durations, frames_of, rows=rows):
        first, second = int(ids[pair.first]), int(ids[pair.second])
        sign = 1.0 if first < second else -1.0
        pairs.append(SamePair(min(first, second), max(first, second), pair.similarity, sign * pair.offset_s))
    library.duplicates.enter(pairs, ids[rows].tolist())
