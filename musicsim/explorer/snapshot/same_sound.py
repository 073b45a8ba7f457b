"""Duplicates: songs that are the same recording, found after a scan and shown as one song."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from musicsim import search
from musicsim._arrays import Float16Array, Float32Array
from musicsim.library import Library, Song
from musicsim.library.stores.duplicates import SamePair
from musicsim.search.recordings import Comparison

_LOSSLESS = frozenset(
    (".flac", ".wav", ".wave", ".w64", ".rf64", ".aiff", ".aif", ".alac", ".ape", ".wv", ".tta", ".tak", ".shn")
)

_RULE = "2"  # increase this if the comparison changes, so that stored pairs are compared again


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


def agreements(pairs: Iterable[SamePair]) -> dict[frozenset[int], float]:
    """Return the agreement of each pair, keyed by its two ids; two songs of a group may not be a pair."""
    return {frozenset((pair.first_id, pair.second_id)): pair.similarity for pair in pairs}


def find_new_duplicates(library: Library, progress: Callable[..., None]) -> None:
    """Compare songs added since the last call with all others, and save the pairs that are the same recording."""
    _recheck_pairs(library, progress)
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
    rows = np.flatnonzero(np.isin(ids, list(new)))
    pairs = []
    found = search.find_duplicates(
        X,
        durations,
        lambda row: _frames_of(library, int(ids[row])),
        harmony_of=lambda row: _harmony_of(library, int(ids[row])),
        rows=rows,
    )
    for pair in found:
        first, second = int(ids[pair.first]), int(ids[pair.second])
        sign = 1.0 if first < second else -1.0
        pairs.append(SamePair(min(first, second), max(first, second), pair.similarity, sign * pair.offset_s))
    library.duplicates.enter(pairs, ids[rows].tolist())


def _recheck_pairs(library: Library, progress: Callable[..., None]) -> None:
    """Compare stored pairs again if an earlier version found them, and delete those that are different recordings.

    Pairs without stored frames are kept, and so are the decisions of listeners.
    """
    if library.text("duplicates_rule") == _RULE:
        return
    pairs = [pair for pair in library.duplicates.pairs() if pair.is_same]
    if pairs:
        progress("checking duplicates")
    comparison = Comparison(partial(_frames_of, library), partial(_harmony_of, library))
    matches = [comparison.match(pair.first_id, pair.second_id) for pair in pairs]
    wrong = [p for p, match in zip(pairs, matches, strict=True) if match is not None and not match.is_same_recording]
    if wrong:
        library.duplicates.remove(wrong)
    library.set_text("duplicates_rule", _RULE)


def _frames_of(library: Library, song_id: int) -> Float16Array | None:
    digest = library.content_hash(song_id)
    return library.frame_files.frames(digest).mfcc if library.frame_files.find_stored([digest]) else None


def _harmony_of(library: Library, song_id: int) -> Float32Array | None:
    digest = library.content_hash(song_id)
    if not library.frame_files.aspects_path(digest).exists():
        return None
    return library.frame_files.aspects([digest]).harmony[0]
