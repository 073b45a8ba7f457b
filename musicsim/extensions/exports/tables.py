"""Columns and rows of each export, as described in docs/research/data.md, in the order of the model's rows."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from musicsim._arrays import Float32Array, Int64Array
from musicsim.audio import DESCRIPTORS
from musicsim.errors import ModelError, NotFoundError
from musicsim.explorer import QUERIES_AT_ONCE, CodewordEncoder, Neighbors, Snapshot, Split, map_blocks
from musicsim.extensions.exports.passages import passages_of
from musicsim.extensions.exports.request import DEFAULT_K, ExportRequest
from musicsim.extensions.exports.table_files import TEXT, Block, Column, Table, split_into_blocks
from musicsim.library import ANSWER_COLUMNS, answer_cells, collect_answers, release_pages
from musicsim.progress import Progress

_MAX_ROWS, _MIN_ROWS, _MAX_NUMBERS = 10_000, 256, 1 << 20  # limits for the size of a block
_MAX_WITH_NEIGHBORS = 100_000  # maximum number of songs for which the map has neighbors by default

_SONG = (Column("id", "i8"), *(Column(name, TEXT) for name in ("hash", "path", "title", "artist")))


def files_at(snapshot: Snapshot, rows: Int64Array) -> list[tuple[str, str]]:
    """Return the hash and path of each row's file; both are empty if the song was removed after the snapshot."""
    ids = snapshot.row_ids[rows].tolist()
    files = snapshot.library.files_of(ids)
    return [files.get(i, ("", "")) for i in ids]


def _song_cells(snapshot: Snapshot, rows: Int64Array) -> list[Any]:
    hashes, paths = zip(*files_at(snapshot, rows), strict=True)
    titles = [title for title, _ in snapshot.names_at(rows)]
    return [snapshot.row_ids[rows], hashes, paths, titles, snapshot.columns.artist.texts(rows)]


def row_blocks(rows: Int64Array, size: int, progress: Progress, message: str) -> Iterator[Int64Array]:
    """Yield rows in blocks, and release the memory of mapped files after each block."""
    for start in range(0, len(rows), size):
        progress(message, start, len(rows))
        yield rows[start : start + size]
        release_pages()


def all_rows(snapshot: Snapshot) -> Int64Array:
    if not snapshot.n_indexed:
        raise NotFoundError(f"{snapshot.library.name}: there are no song vectors to export yet. Add a folder.")
    return np.arange(snapshot.n_indexed)


def neighbor_blocks(
    snapshot: Snapshot, rows: Int64Array, k: int, progress: Progress, message: str
) -> Iterator[tuple[Int64Array, Int64Array, Float32Array]]:
    """Yield blocks of rows, with the `k` nearest other rows of each row and their distances, (n_rows, k)."""
    k = min(k, snapshot.n_indexed - 1)
    blocks = [rows[start : start + QUERIES_AT_ONCE] for start in range(0, len(rows), QUERIES_AT_ONCE)]
    with_vectors = ((block, snapshot.vectors_at(block)) for block in blocks)
    results = map_blocks(snapshot.library, partial(_nearest, snapshot.index, k), with_vectors, len(blocks))
    for block, result in zip(row_blocks(rows, QUERIES_AT_ONCE, progress, message), results, strict=True):
        yield block, *result


def _nearest(index: Neighbors, k: int, block: tuple[Int64Array, Float32Array]) -> tuple[Int64Array, Float32Array]:
    rows, vectors = block
    distances, neighbors = index.query(vectors, k + 1)
    order = np.argsort(neighbors == rows[:, None], axis=1, kind="stable")[:, :k]  # puts the song itself last
    return np.take_along_axis(neighbors, order, axis=1), np.take_along_axis(distances, order, axis=1)


def queries(snapshot: Snapshot, request: ExportRequest) -> Int64Array:
    rows = all_rows(snapshot)
    if request.sample is None or request.sample >= len(rows):
        return rows
    return np.sort(np.random.default_rng(request.seed).choice(rows, request.sample, replace=False))


def _vector_table(
    snapshot: Snapshot, name: str, width: int, vectors_at: Callable[[Int64Array], Float32Array], progress: Progress
) -> Table:
    size = int(np.clip(_MAX_NUMBERS // max(width, 1), _MIN_ROWS, _MAX_ROWS))
    blocks = (
        (*_song_cells(snapshot, block), vectors_at(block))
        for block in row_blocks(all_rows(snapshot), size, progress, f"writing {name}s")
    )
    return Table((*_SONG, Column(name, "f4", width)), blocks)


def _vectors(snapshot: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    return _vector_table(snapshot, "vector", snapshot.X.shape[1], snapshot.vectors_at, progress)


def _histograms(snapshot: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    all_rows(snapshot)  # raises if the model has no rows
    record = snapshot.record
    assert record is not None
    assert snapshot.model is not None
    if not isinstance(snapshot.model.encoder_, CodewordEncoder):
        raise ModelError(
            f"the model {record.name!r} has no codeword histograms. Use a different model, such as Codewords."
        )
    stored, X = snapshot.library.models.feature_file(record.id)
    order = np.argsort(stored.song_ids)
    places = stored.rows[order[np.searchsorted(stored.song_ids, snapshot.row_ids, sorter=order)]]
    return _vector_table(snapshot, "histogram", X.shape[1], lambda rows: np.asarray(X[places[rows]]), progress)


def _neighbors(snapshot: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    rows = queries(snapshot, request)
    k = min(DEFAULT_K if request.k is None else request.k, snapshot.n_indexed - 1)
    if k < 1:
        name = snapshot.library.name
        raise NotFoundError(f"{name}: exporting neighbors requires at least two songs, and k must be at least 1.")
    blocks = (
        (*_song_cells(snapshot, block), snapshot.row_ids[neighbors], distances)
        for block, neighbors, distances in neighbor_blocks(snapshot, rows, k, progress, "finding neighbors")
    )
    return Table((*_SONG, Column("neighbour_ids", "i8", k), Column("distances", "f4", k)), blocks)


def _map(snapshot: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    rows = all_rows(snapshot)
    k = request.k
    if k is None:
        k = DEFAULT_K if len(rows) <= _MAX_WITH_NEIGHBORS else 0
    k = min(k, len(rows) - 1)
    columns = [Column(name, TEXT) for name in ("genre", "key", "mode")]
    columns += [Column("year", "i2"), *(Column(name, "f4") for name in ("duration_s", *DESCRIPTORS, "x", "y"))]
    if k:  # use Embedding Atlas's format, where ids are row numbers in this table
        columns += [Column("neighbors.ids", "i8", k), Column("neighbors.distances", "f4", k)]

    def blocks() -> Iterator[Block]:
        message, values = "writing the map", snapshot.columns
        parts: Iterator[tuple[Any, ...]] = ((block,) for block in row_blocks(rows, _MAX_ROWS, progress, message))
        if k:
            parts = neighbor_blocks(snapshot, rows, k, progress, message)
        for block, *neighbors in parts:
            yield [
                *_song_cells(snapshot, block),
                *(getattr(values, name).texts(block) for name in ("genre", "key", "mode")),
                *(getattr(values, name)[block] for name in ("year", "duration_s", *DESCRIPTORS)),
                snapshot.map[block, 0],
                snapshot.map[block, 1],
                *neighbors,
            ]

    return Table((*_SONG, *columns), blocks())


def _splits(snapshot: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    rows = all_rows(snapshot)
    split = Split.from_groups([str(group) for group in snapshot.columns.group.texts()], request.seed)
    by_artist = {row: part for part in ("train", "validation", "test") for row in getattr(split, part).tolist()}
    fixed = {name: snapshot.library.splits.get(name) for name in snapshot.library.splits.names()}

    blocks = (
        [
            *_song_cells(snapshot, block),
            [by_artist[row] for row in block.tolist()],
            *(list(map(part_of.get, snapshot.row_ids[block].tolist())) for part_of in fixed.values()),
        ]
        for block in row_blocks(rows, _MAX_ROWS, progress, "writing splits")
    )
    return Table((*_SONG, *(Column(name, TEXT) for name in ("split", *(f"split: {name}" for name in fixed)))), blocks)


def _add_songs(snapshot: Snapshot, blocks: Iterator[list[list]], place: int) -> Iterator[Block]:
    """Replace column `place`, which contains song ids, with the columns `_SONG`; skip songs that were just removed."""
    for block in blocks:
        songs = {song.id: song for song in snapshot.library.songs(set(block[place]), missing=True)}
        is_there = [song_id in songs for song_id in block[place]]
        columns = [list(compress(values, is_there)) for values in block]
        in_order = [songs[song_id] for song_id in columns.pop(place)]
        yield [
            np.array([song.id for song in in_order], np.int64),
            [song.content_hash for song in in_order],
            [str(song.path) for song in in_order],
            [song.title for song in in_order],
            [song.artist for song in in_order],
            *columns,
        ]


def _plays(snapshot: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    rows = snapshot.library.listening.play_rows()
    columns = (*_SONG, Column("listener", TEXT), Column("plays", "i8"))
    return Table(columns, _add_songs(snapshot, split_into_blocks(rows, _MAX_ROWS), 1))


def _tags(snapshot: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    rows = snapshot.library.listening.tag_rows()
    columns = (*_SONG, Column("tag", TEXT), Column("source", TEXT), Column("weight", "f4"))
    return Table(columns, _add_songs(snapshot, split_into_blocks(rows, _MAX_ROWS), 0))


def _passages(snapshot: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    passages = passages_of(snapshot, request.like, request.k, progress)
    rows = ((p.song_id, p.start_s, p.end_s, p.label) for p in passages)
    columns = (*_SONG, Column("start_s", "f4"), Column("end_s", "f4"), Column("label", TEXT))
    return Table(columns, _add_songs(snapshot, split_into_blocks(rows, _MAX_ROWS), 0))


def _answers(snapshot: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    rows = map(answer_cells, collect_answers(snapshot.library))
    return Table(tuple(Column(name, TEXT) for name in ANSWER_COLUMNS), split_into_blocks(rows, _MAX_ROWS))


TABLE_OF: dict[str, Callable[[Snapshot, ExportRequest, Progress], Table]] = {
    "vectors": _vectors,
    "histograms": _histograms,
    "neighbours": _neighbors,
    "map": _map,
    "splits": _splits,
    "tags": _tags,
    "passages": _passages,
    "plays": _plays,
    "answers": _answers,
}
"""Functions that make the tables for :data:`musicsim.extensions.exports.request.EXPORTS`."""
