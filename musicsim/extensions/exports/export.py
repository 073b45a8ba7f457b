"""Exports to files: tables, MIREX's distance lists, and JAMS annotations."""

import os
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from musicsim import __version__
from musicsim.errors import LibraryError
from musicsim.explorer import CodewordEncoder, Snapshot, take_snapshot, use_pool
from musicsim.extensions.exports.cards import check_folder, write_card
from musicsim.extensions.exports.passages import passages_of, write_label_tracks
from musicsim.extensions.exports.request import ARCHIVE, EXPORTS, MIREX, ExportRequest
from musicsim.extensions.exports.table_files import utf8, write_table
from musicsim.extensions.exports.tables import TABLE_OF, all_rows, files_at, neighbor_blocks, queries, row_blocks
from musicsim.library import CODEWORDS_KIND, Library, PackedTexts, Song, atomic_path
from musicsim.progress import Progress, no_progress
from musicsim.wording import count

_MIREX_K = 100
_MAX_ROWS, _MAX_SONGS = 10_000, 1_000  # maximum number of rows and of songs per block


@dataclass(frozen=True, slots=True)
class Exported:
    path: Path
    n_rows: int  # number of table rows, queries in a distance list, or songs in an archive
    n_bytes: int
    model: str  # name of the model; empty if the export does not depend on one


def export(
    library: Library,
    kind: str,
    target: Path,
    request: ExportRequest,
    *,
    model: str | None = None,
    progress: Progress = no_progress,
) -> Exported:
    """Write one kind of export (see :data:`EXPORTS`) atomically; the file extension selects the format."""
    target = target.expanduser().absolute()
    ending, endings = target.suffix.lower(), EXPORTS[kind].endings
    if ending not in endings:
        raise LibraryError(f"{target.name}: {kind} can be exported as {', '.join(endings)}. Use one of these.")
    if not target.parent.is_dir() or target.is_dir():
        raise LibraryError(f"{target}: this file cannot be written. Use a file name in an existing folder.")
    if request.card:
        check_folder(target)
    snapshot = take_snapshot(library, _model_id(library, kind, model))
    with use_pool(library) if EXPORTS[kind].compares else nullcontext():
        if (kind, ending) == ("neighbours", MIREX):
            n_rows = _write_mirex(snapshot, target, request, progress)
        elif (kind, ending) == ("tags", ARCHIVE):
            n_rows = _write_jams(snapshot, target, progress)
        elif (kind, ending) == ("passages", ARCHIVE):
            n_rows = write_label_tracks(target, passages_of(snapshot, request.like, request.k, progress))
        else:
            n_rows = write_table(target, TABLE_OF[kind](snapshot, request, progress))
    has_model = kind in ("vectors", "histograms", "neighbours", "map") or request.like is not None
    model_name = snapshot.record.name if has_model and snapshot.record else ""
    if request.card:
        write_card(target, kind, model_name, request.license)
    return Exported(target, n_rows, target.stat().st_size, model_name)


def run_job(library: Library, *, what: str, path: str, progress: Any) -> bool:
    Path(path).parent.mkdir(exist_ok=True)
    exported = export(library, what, Path(path), ExportRequest(), progress=progress)
    progress.outcome = f"{count(exported.n_rows, 'row')} · {exported.n_bytes / 1e6:,.1f} MB · {path}"
    return True


def _model_id(library: Library, kind: str, name: str | None) -> str | None:
    if name is not None:
        return library.models.find(name).id
    if kind == "histograms":
        model = take_snapshot(library).model
        if model is None or not isinstance(model.encoder_, CodewordEncoder):
            return next((record.id for record in library.models.all() if record.kind == CODEWORDS_KIND), None)
    return None


def _write_mirex(snapshot: Snapshot, target: Path, request: ExportRequest, progress: Progress) -> int:
    """Write the sparse distance list of MIREX's *Audio Music Similarity and Retrieval* task, 2007 to 2013."""
    rows, name = queries(snapshot, request), _file_names(snapshot)
    k = _MIREX_K if request.k is None else request.k
    assert snapshot.record is not None
    with atomic_path(target) as temporary, temporary.open("w", encoding="utf-8", errors="replace") as stream:
        stream.write(f"musicsim {__version__}, {_one_line(snapshot.record.name)}\n")
        for block, neighbors, distances in neighbor_blocks(snapshot, rows, k, progress, "finding neighbors"):
            for row, near, far in zip(block.tolist(), neighbors.tolist(), distances.tolist(), strict=True):
                results = [f"{name(i)},{distance:.6g}" for i, distance in zip(near, far, strict=True)]
                stream.write("\t".join([name(row), *results]) + "\n")
    return len(rows)


def _file_names(snapshot: Snapshot) -> Callable[[int], str]:
    """Return a function from row to file name, or to path if the name is not unique. Needs 0.1 kB per song."""
    parts, hashes = [], []
    for block in row_blocks(all_rows(snapshot), _MAX_ROWS, no_progress, ""):
        paths = [_one_line(path) for _, path in files_at(snapshot, block)]
        parts.append(PackedTexts.pack(paths))
        hashes.append(np.array([hash(os.path.basename(path)) for path in paths], dtype=np.int64))
    lines = PackedTexts.join(parts)
    _, codes, n_songs = np.unique(np.concatenate(hashes), return_inverse=True, return_counts=True)
    is_shared = n_songs[codes] > 1

    def name(row: int) -> str:
        (path,) = lines.lines([row])
        return path if is_shared[row] else os.path.basename(path)

    return name


def _one_line(text: str) -> str:
    return " ".join(text.splitlines()).replace("\t", " ")


def _write_jams(snapshot: Snapshot, target: Path, progress: Progress) -> int:
    n_songs = 0
    rows = groupby(snapshot.library.listening.tag_rows(), key=lambda row: row[0])
    with atomic_path(target) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        while tags := {song_id: list(song_tags) for song_id, song_tags in islice(rows, _MAX_SONGS)}:
            for song in snapshot.library.songs(tags, missing=True):
                archive.writestr(f"{song.id}.jams", _jams(song, tags[song.id]))
                n_songs += 1
                progress("writing JAMS", n_songs, snapshot.n_songs)
    return n_songs


def _jams(song: Song, tags: list[tuple[int, str, str, float]]) -> str:
    try:
        import jams
    except ImportError as error:
        raise LibraryError("JAMS files need the package jams: python -m pip install jams.") from error
    file = jams.JAMS()
    file.file_metadata = jams.FileMetadata(
        title=utf8(song.title), artist=utf8(song.artist), release=utf8(song.album), duration=song.duration_s
    )
    file.file_metadata.identifiers.update(path=utf8(str(song.path)), hash=song.content_hash)
    for source, rows in groupby(sorted(tags, key=lambda row: row[2]), key=lambda row: row[2]):
        metadata = jams.AnnotationMetadata(data_source=utf8(source), annotation_tools=f"musicsim {__version__}")
        annotation = jams.Annotation("tag_open", time=0, duration=song.duration_s, annotation_metadata=metadata)
        for _, tag, _, weight in rows:
            annotation.append(time=0, duration=song.duration_s, value=utf8(tag), confidence=weight)
        file.annotations.append(annotation)
    return file.dumps()
