"""Exports as files: tables, the distance list of MIREX, and JAMS."""

import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from musicsim import __version__
from musicsim.errors import LibraryError
from musicsim.explorer.models.encoders import CodewordEncoder
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.extensions.exports.request import EXPORTS, JAMS, MIREX, ExportRequest
from musicsim.extensions.exports.table_files import utf8, write_table
from musicsim.extensions.exports.tables import TABLE_OF, all_rows, files_at, neighbour_blocks, queries, row_blocks
from musicsim.library import Library, Song
from musicsim.library.db.packed_texts import PackedTexts
from musicsim.library.disk.arrays import atomic_path
from musicsim.library.stores.models import CODEWORDS_KIND
from musicsim.progress import Progress, no_progress

_MIREX_K = 100
_AT_ONCE, _SONGS_AT_ONCE = 10_000, 1_000


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    path: Path
    n_rows: int  # rows of a table, queries of a distance list, songs of JAMS
    n_bytes: int
    model: str  # empty where no model has a part in it


def export(
    library: Library,
    kind: str,
    target: Path,
    request: ExportRequest,
    *,
    model: str | None = None,
    progress: Progress = no_progress,
) -> Exported:
    """Write what the ending of the file asks for, whole or not at all; `kind` is one of :data:`EXPORTS`.

    `model` is a name, by default that in use; histograms are then those of the built-in Codewords where that one has
    none. Memory: a block of rows, and what a snapshot has.

    Raises
    ------
    LibraryError
        If the ending is none of the kind's, or the file cannot be written.
    NotFoundError
        If there is no model of the name, or no song with a vector.
    ModelError
        If histograms are asked of a model that has none, or artists are too few to be split.
    """
    target = target.expanduser().absolute()
    endings = EXPORTS[kind].endings
    if target.suffix.lower() not in endings:
        raise LibraryError(f"{target.name}: {kind} are exported as {', '.join(endings)}; name a file that ends so.")
    if not target.parent.is_dir() or target.is_dir():
        raise LibraryError(f"{target}: cannot be written. Name a file in a folder that is there.")
    now = take_snapshot(library, _model_id(library, kind, model))
    if (kind, target.suffix.lower()) in _OTHERS:
        n_rows = _OTHERS[kind, target.suffix.lower()](now, target, request, progress)
    else:
        n_rows = write_table(target, TABLE_OF[kind](now, request, progress))
    has_model = kind in ("vectors", "histograms", "neighbours", "map")
    named = now.record.name if has_model and now.record else ""
    return Exported(target, n_rows, target.stat().st_size, named)


def _model_id(library: Library, kind: str, name: str | None) -> str | None:
    if name is not None:
        return library.models.named(name).id
    if kind == "histograms":
        record = take_snapshot(library).model
        if record is None or not isinstance(record.encoder_, CodewordEncoder):
            return next((r.id for r in library.models.all() if r.kind == CODEWORDS_KIND), None)
    return None


# --- what is no table -----------------------------------------------------------------------------


def _write_mirex(now: Snapshot, target: Path, request: ExportRequest, progress: Progress) -> int:
    """The sparse distance list of MIREX's *Audio Music Similarity and Retrieval*, 2007 to 2013.

    A line that names the algorithm; then one a query: the name of its file and, after a tab each, name and distance
    of the nearest, with a comma between them.
    """
    rows, name = queries(now, request), _file_names(now)
    k = _MIREX_K if request.k is None else request.k
    assert now.record is not None
    with atomic_path(target) as temporary, temporary.open("w", encoding="utf-8", errors="replace") as stream:
        stream.write(f"musicsim {__version__}, {_one_line(now.record.name)}\n")
        for some, near, far in neighbour_blocks(now, rows, k, progress, "finding neighbours"):
            for row, found, distances in zip(some.tolist(), near, far, strict=True):
                results = [f"{name(i)},{d:.6g}" for i, d in zip(found.tolist(), distances.tolist(), strict=True)]
                stream.write("\t".join([name(row), *results]) + "\n")
    return len(rows)


def _file_names(now: Snapshot) -> Callable[[int], str]:
    """The name of each row's file, or its path where several songs have that name; 0.1 kB a song."""
    parts, hashes = [], []
    for some in row_blocks(all_rows(now), _AT_ONCE, no_progress, ""):
        paths = [_one_line(path) for _, path in files_at(now, some)]
        parts.append(PackedTexts.of(paths))
        hashes.append(np.array([hash(os.path.basename(path)) for path in paths], dtype=np.int64))
    lines = PackedTexts.joined(parts)
    _, which, n_songs = np.unique(np.concatenate(hashes), return_inverse=True, return_counts=True)
    is_shared = n_songs[which] > 1

    def name(row: int) -> str:
        (path,) = lines.lines([row])
        return path if is_shared[row] else os.path.basename(path)

    return name


def _one_line(text: str) -> str:
    return " ".join(text.splitlines()).replace("\t", " ")


def _write_jams(now: Snapshot, target: Path, request: ExportRequest, progress: Progress) -> int:
    """A zip of one JAMS file for every song that has tags: an annotation a source, a tag each with its weight."""
    n_songs = 0
    rows = groupby(now.library.listening.tag_rows(), key=lambda row: row[0])
    with atomic_path(target) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for song, tags in _with_songs(now.library, rows):
            archive.writestr(f"{song.id}.jams", _jams(song, tags))
            n_songs += 1
            progress("writing JAMS", n_songs, now.n_songs)
    return n_songs


def _with_songs(
    library: Library, rows: Iterator[tuple[int, Any]]
) -> Iterator[tuple[Song, list[tuple[int, str, str, float]]]]:
    while held := {song_id: list(tags) for song_id, tags in islice(rows, _SONGS_AT_ONCE)}:
        for song in library.songs(held, missing=True):
            yield song, held[song.id]


def _jams(song: Song, tags: list[tuple[int, str, str, float]]) -> str:
    try:
        import jams
    except ImportError as error:
        raise LibraryError("jams is needed for JAMS files: python -m pip install jams.") from error
    file = jams.JAMS()
    file.file_metadata = jams.FileMetadata(
        title=utf8(song.title), artist=utf8(song.artist), release=utf8(song.album), duration=song.duration_s
    )
    file.file_metadata.identifiers.update(path=utf8(str(song.path)), hash=song.content_hash)
    for source, of_source in groupby(sorted(tags, key=lambda row: row[2]), key=lambda row: row[2]):
        about = jams.AnnotationMetadata(data_source=utf8(source), annotation_tools=f"musicsim {__version__}")
        annotation = jams.Annotation("tag_open", time=0, duration=song.duration_s, annotation_metadata=about)
        for _, tag, _, weight in of_source:
            annotation.append(time=0, duration=song.duration_s, value=utf8(tag), confidence=weight)
        file.annotations.append(annotation)
    return file.dumps()


_OTHERS: dict[tuple[str, str], Callable[[Snapshot, Path, ExportRequest, Progress], int]] = {
    ("neighbours", MIREX): _write_mirex,
    ("tags", JAMS): _write_jams,
}


# --- on the Library page --------------------------------------------------------------------------
