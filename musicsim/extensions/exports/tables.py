"""What each export holds: its columns, and its rows a block at a time. Described in docs/data.md.

Songs are those of the model's rows: each sound once, in the order of the rows.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from musicsim._arrays import Float32Array, Int64Array
from musicsim.audio import HEARD
from musicsim.errors import ModelError, NotFoundError
from musicsim.explorer.learning.task import Split
from musicsim.explorer.models.encoders import CodewordEncoder
from musicsim.explorer.query_blocks import QUERIES_AT_ONCE, of_blocks
from musicsim.explorer.snapshot.neighbours import Neighbours
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.exports.request import ExportRequest
from musicsim.extensions.exports.table_files import TEXT, Block, Column, Table, in_blocks
from musicsim.library import Song
from musicsim.library.disk.arrays import release_pages
from musicsim.library.importing.answer_csv import ANSWER_COLUMNS, answer_cells
from musicsim.library.importing.answers import filed_answers
from musicsim.progress import Progress

_MAX_ROWS, _MIN_ROWS, _MAX_NUMBERS = 10_000, 256, 1 << 20  # of a block
_MAX_WITH_NEIGHBOURS = 100_000  # songs of a map that has neighbours unless they are asked for
_K = 10

_ID = Column("id", "i8")
_NAMED = (_ID, *(Column(name, TEXT) for name in ("hash", "path", "title", "artist")))


def files_at(now: Snapshot, rows: Int64Array) -> list[tuple[str, str]]:
    """Hash and path of the file of each row; empty of a song that has gone since the snapshot was taken."""
    ids = now.row_ids[rows].tolist()
    found = now.library.files_of(ids)
    return [found.get(i, ("", "")) for i in ids]


def _of_rows(now: Snapshot, rows: Int64Array) -> list[Any]:
    """The first columns of a table whose rows are rows of the model."""
    hashes, paths = zip(*files_at(now, rows), strict=True)
    titles = [title for title, _ in now.names_at(rows)]
    return [now.row_ids[rows], hashes, paths, titles, now.columns.artist.texts(rows)]


def _named(songs: list[Song]) -> list[Any]:
    """The same columns of songs, with a file or without."""
    return [
        np.array([song.id for song in songs], np.int64),
        [song.content_hash for song in songs],
        [str(song.path) for song in songs],
        [song.title for song in songs],
        [song.artist for song in songs],
    ]


def row_blocks(rows: Int64Array, size: int, progress: Progress, words: str) -> Iterator[Int64Array]:
    """Rows in blocks; pages of files that a block has read are let go when the next one is asked for."""
    for start in range(0, len(rows), size):
        progress(words, start, len(rows))
        yield rows[start : start + size]
        release_pages()


def _size(width: int) -> int:
    return int(np.clip(_MAX_NUMBERS // max(width, 1), _MIN_ROWS, _MAX_ROWS))


def all_rows(now: Snapshot) -> Int64Array:
    """Every row. Raises NotFoundError if there is none."""
    if not now.n_indexed:
        raise NotFoundError(f"{now.library.name}: there are no songs with a vector to export yet. Add a folder.")
    return np.arange(now.n_indexed)


def neighbour_blocks(
    now: Snapshot, rows: Int64Array, k: int, progress: Progress, words: str
) -> Iterator[tuple[Int64Array, Int64Array, Float32Array]]:
    """Some rows in blocks, with the rows of the `k` nearest other songs of each and their distances.

    These are (n_rows, k), nearest first: plain Euclidean distances of vectors, as the index finds them, without hub
    reduction.
    """
    k = min(k, now.n_indexed - 1)
    blocks = [rows[start : start + QUERIES_AT_ONCE] for start in range(0, len(rows), QUERIES_AT_ONCE)]
    with_vectors = ((some, now.vectors_at(some)) for some in blocks)
    found = of_blocks(now.library, partial(_nearest, now.index, k), with_vectors, len(blocks))
    for some, near in zip(row_blocks(rows, QUERIES_AT_ONCE, progress, words), found, strict=True):
        yield some, *near


def _nearest(index: Neighbours, k: int, block: tuple[Int64Array, Float32Array]) -> tuple[Int64Array, Float32Array]:
    """Rows and distances of the nearest others of some rows and their vectors; runs on a cluster, too."""
    rows, vectors = block
    distances, found = index.query(vectors, k + 1)
    order = np.argsort(found == rows[:, None], axis=1, kind="stable")[:, :k]  # the song itself last
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(distances, order, axis=1)


def queries(now: Snapshot, request: ExportRequest) -> Int64Array:
    """The rows whose neighbours are asked for, ascending."""
    rows = all_rows(now)
    if request.sample is None or request.sample >= len(rows):
        return rows
    return np.sort(np.random.default_rng(request.seed).choice(rows, request.sample, replace=False))


def _vectors(now: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    rows = all_rows(now)
    width = now.X.shape[1]
    blocks = (
        (*_of_rows(now, some), now.vectors_at(some))
        for some in row_blocks(rows, _size(width), progress, "writing vectors")
    )
    return Table((*_NAMED, Column("vector", "f4", width)), blocks)


def _histograms(now: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    rows, record = all_rows(now), now.record
    assert record is not None
    assert now.model is not None
    if not isinstance(now.model.encoder_, CodewordEncoder):
        raise ModelError(
            f"the model {record.name!r} has no histograms of codewords: name another one, such as Codewords."
        )
    kept, X = now.library.models.feature_file(record.id)
    order = np.argsort(kept.song_ids)
    places = kept.rows[order[np.searchsorted(kept.song_ids, now.row_ids, sorter=order)]]
    blocks = (
        (*_of_rows(now, some), np.asarray(X[places[some]]))
        for some in row_blocks(rows, _size(X.shape[1]), progress, "writing histograms")
    )
    return Table((*_NAMED, Column("histogram", "f4", X.shape[1])), blocks)


def _neighbours(now: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    rows = queries(now, request)
    k = min(_K if request.k is None else request.k, now.n_indexed - 1)
    if k < 1:
        raise NotFoundError(f"{now.library.name}: no neighbours to export. It takes two songs, and a k of at least 1.")

    def blocks() -> Iterator[Block]:
        for some, found, distances in neighbour_blocks(now, rows, k, progress, "finding neighbours"):
            yield (*_of_rows(now, some), now.row_ids[found], distances)

    return Table((*_NAMED, Column("neighbour_ids", "i8", k), Column("distances", "f4", k)), blocks())


def _map(now: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    rows = all_rows(now)
    k = request.k
    if k is None:
        k = _K if len(rows) <= _MAX_WITH_NEIGHBOURS else 0
    k = min(k, len(rows) - 1)
    columns = [Column(name, TEXT) for name in ("genre", "key", "mode")]
    columns += [Column("year", "i2"), Column("duration_s", "f4"), *(Column(name, "f4") for name in HEARD)]
    columns += [Column("x", "f4"), Column("y", "f4")]
    if k:
        # as Embedding Atlas has it: places of rows in this table
        columns += [Column("neighbors.ids", "i8", k), Column("neighbors.distances", "f4", k)]

    def blocks() -> Iterator[Block]:
        words = "writing the map"
        parts: Iterator[tuple[Any, ...]] = ((some,) for some in row_blocks(rows, _MAX_ROWS, progress, words))
        if k:
            parts = neighbour_blocks(now, rows, k, progress, words)
        for some, *near in parts:
            of = now.columns
            block = [*_of_rows(now, some)]
            block += [getattr(of, name).texts(some) for name in ("genre", "key", "mode")]
            block += [getattr(of, name)[some] for name in ("year", "duration_s", *HEARD)]
            block += [now.map[some, 0], now.map[some, 1]]
            yield [*block, *near]

    return Table((*_NAMED, *columns), blocks())


def _splits(now: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    rows = all_rows(now)
    split = Split.by_artist([str(group) for group in now.columns.group.texts()], request.seed)
    by_artist = dict.fromkeys(split.train.tolist(), "train")
    by_artist |= dict.fromkeys(split.validation.tolist(), "validation") | dict.fromkeys(split.test.tolist(), "test")
    fixed = {name: now.library.splits.get(name) for name in now.library.splits.names()}

    def blocks() -> Iterator[Block]:
        for some in row_blocks(rows, _MAX_ROWS, progress, "writing splits"):
            ids = now.row_ids[some].tolist()
            parts = [by_artist[row] for row in some.tolist()]
            yield [*_of_rows(now, some), parts, *(list(map(of.get, ids)) for of in fixed.values())]

    return Table((*_NAMED, Column("split", TEXT), *(Column(f"split: {name}", TEXT) for name in fixed)), blocks())


def _with_songs(now: Snapshot, rows: Iterator[list[list]], place: int) -> Iterator[Block]:
    """Blocks with the names of the songs whose ids are their column `place`, in its stead."""
    for block in rows:
        ids = block[place]
        found = {song.id: song for song in now.library.songs(set(ids), missing=True)}
        here = [i for i, song_id in enumerate(ids) if song_id in found]  # one may have gone this moment
        columns = [[values[i] for i in here] for values in block]
        yield [*_named([found[i] for i in columns[place]]), *columns[:place], *columns[place + 1 :]]


def _plays(now: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    rows = now.library.listening.play_rows()
    columns = (*_NAMED, Column("listener", TEXT), Column("plays", "i8"))
    return Table(columns, _with_songs(now, in_blocks(rows, _MAX_ROWS), 1))


def _tags(now: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    rows = now.library.listening.tag_rows()
    columns = (*_NAMED, Column("tag", TEXT), Column("source", TEXT), Column("weight", "f4"))
    return Table(columns, _with_songs(now, in_blocks(rows, _MAX_ROWS), 0))


def _answers(now: Snapshot, request: ExportRequest, progress: Progress) -> Table:
    rows = map(answer_cells, filed_answers(now.library))
    columns = tuple(Column(name, TEXT) for name in ANSWER_COLUMNS)
    return Table(columns, in_blocks(rows, _MAX_ROWS))


TABLE_OF: dict[str, Callable[[Snapshot, ExportRequest, Progress], Table]] = {
    "vectors": _vectors,
    "histograms": _histograms,
    "neighbours": _neighbours,
    "map": _map,
    "splits": _splits,
    "tags": _tags,
    "plays": _plays,
    "answers": _answers,
}
"""What makes each table of :data:`musicsim.extensions.exports.request.EXPORTS`."""
