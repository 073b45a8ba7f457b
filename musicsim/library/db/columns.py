"""Songs stored as columns, to list, filter and search a million songs without one object per song."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import compress
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from musicsim._arrays import BoolArray, Float64Array, Int16Array, Int32Array, Int64Array, Uint8Array
from musicsim.audio import DESCRIPTORS
from musicsim.library.db import schema
from musicsim.library.db.packed_texts import PackedTexts
from musicsim.library.tags.artists import artist_group, stand_in_name
from musicsim.places import places_in_order

_BLOCK = 10_000  # rows fetched from the database in one call
_FOLDER = "folder:"  # prefix of groups that are folders


class _Record:
    """Read-only values; a value given as a function is computed on first use."""

    def __init__(self, **values: Any) -> None:
        self._lazy: dict[str, Callable[[], Any]] = {}
        for name, value in values.items():
            (self._lazy if callable(value) else self.__dict__)[name] = value

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__
        compute = values.get("_lazy", {}).get(name)
        if compute is not None:
            values.setdefault(name, compute())  # another thread may have computed it
            self._lazy.pop(name, None)  # free the inputs
        if name not in values:
            raise AttributeError(name)
        return values[name]


@dataclass(frozen=True, slots=True)
class Labels:
    """One string per song; each distinct string is stored once."""

    codes: Int32Array  # (n_songs,): indices into `names`; -1 for no string
    names: list[str]  # distinct strings; after `take`, some may be unused

    def is_in(self, wanted: Iterable[str]) -> BoolArray:
        """Return a mask of the songs with one of the `wanted` strings, bool (n_songs,)."""
        return self.where(set(wanted).__contains__)

    def where(self, holds: Callable[[str], bool]) -> BoolArray:
        """Return a mask of the songs with a string for which `holds` is true, bool (n_songs,)."""
        return np.array([*map(holds, self.names), False])[self.codes]  # code -1 selects False

    def texts(self, rows: npt.ArrayLike | None = None) -> list[str | None]:
        """Return the strings of all songs, or of some rows; None for a song without a string."""
        codes = self.codes if rows is None else self.codes[np.asarray(rows, dtype=np.int64)]
        return [self.names[code] if code >= 0 else None for code in codes.tolist()]

    def sizes(self) -> Int64Array:
        """Return the number of songs per name, int64 (n_names,)."""
        return np.bincount(self.codes + 1, minlength=len(self.names) + 1)[1:]

    def counts(self) -> Counter[str]:
        return Counter({name: n for name, n in zip(self.names, self.sizes().tolist(), strict=True) if n})

    def take(self, rows: Int64Array) -> Self:
        return replace(self, codes=self.codes[rows])


class SongColumns(_Record):
    """Columns for filters, limits and colors, each read on first use; 58 bytes per song, plus the names.

    Each descriptor is a column, too: float32 (n_songs,), nan if unknown.
    """

    artist: Labels
    genre: Labels
    folder: Labels
    group: Labels
    key: Labels
    mode: Labels
    year: Int16Array  # (n_songs,), 0 if unknown
    duration_s: Float64Array  # (n_songs,)
    added_at: Float64Array  # (n_songs,), seconds since 1970

    def take(self, rows: Int64Array) -> Self:
        columns = {name: partial(self._take, name, rows) for name in (*_LABELS, *_NUMBERS)}
        return type(self)(**columns)

    def _take(self, name: str, rows: Int64Array) -> Labels | npt.NDArray[Any]:
        column: Labels | npt.NDArray[Any] = getattr(self, name)
        return column.take(rows)

    def replace_genre(self, genre: Callable[[], Labels]) -> Self:
        others = {name: partial(getattr, self, name) for name in (*_LABELS, *_NUMBERS)}
        return type(self)(**others | {"genre": genre})


_LABELS = ("artist", "genre", "folder", "group", "key", "mode")
_NUMBERS = ("year", "duration_s", "added_at", *DESCRIPTORS)


class SongTable(_Record):
    """All songs in a library that have a file; 0.2 kB per song."""

    ids: Int64Array  # (n_songs,), ascending
    columns: SongColumns
    titles: PackedTexts
    matched: PackedTexts  # the text that Song.matches searches, one line per song

    def places_of(self, ids: npt.ArrayLike) -> Int64Array:
        """Return the rows of song ids, int64 (n_ids,); -1 for unknown ids."""
        return places_in_order(self.ids, np.asarray(ids, dtype=np.int64))

    def replace_songs(self, ids: Iterable[int], new: Self) -> Self:
        """Return a table in which `new` replaces the songs in `ids`; no other song of this table may be in `new`."""
        places = self.places_of(np.sort(np.fromiter(ids, dtype=np.int64)))
        removed = places[places >= 0]
        at = np.searchsorted(np.delete(self.ids, removed), new.ids)

        def merge(old: npt.NDArray, added: npt.NDArray) -> npt.NDArray:
            return np.insert(np.delete(old, removed), at, added)

        columns: dict[str, Any] = {
            name: merge(getattr(self.columns, name), getattr(new.columns, name)) for name in _NUMBERS
        }
        for name in _LABELS:
            old, added = getattr(self.columns, name), getattr(new.columns, name)
            names, codes = _join_names(old.names, added)
            columns[name] = _drop_unused(Labels(merge(old.codes, codes), names))
        all_ids = merge(self.ids, new.ids)
        return type(self)(
            # if no id changed, keep the same array, because readers compare the arrays by identity
            ids=self.ids if np.array_equal(all_ids, self.ids) else all_ids,
            columns=SongColumns(**columns),
            titles=self.titles.replace_lines(removed, new.titles, at),
            matched=self.matched.replace_lines(removed, new.matched, at),
        )

    def names_at(self, places: Int64Array) -> list[tuple[str, str]]:
        """Return :attr:`Song.title` and :attr:`Song.by` of the songs in some rows."""
        artist, group = self.columns.artist, self.columns.group
        codes = zip(artist.codes[places].tolist(), group.codes[places].tolist(), strict=True)
        return [
            (title, artist.names[a] if a >= 0 and artist.names[a] else nobody(stand_in_of(group.names[g])))
            for title, (a, g) in zip(self.titles.lines(places), codes, strict=True)
        ]

    def ids_with(self, text: str, limit: int, *, nearly: bool = False) -> Int64Array:
        """Return up to `limit` ids of songs whose names contain `text`, best matches first; `nearly` allows a typo."""
        find = self.matched.nearly_holding if nearly else self.matched.holding
        return self.ids[find(text.casefold(), limit)]

    def artists_with(self, text: str, limit: int, *, nearly: bool = False) -> list[tuple[str, int]]:
        """Find artists as :meth:`ids_with` finds songs; return each artist's name and number of songs."""
        names, counts, lines = self._artists
        find = lines.nearly_holding if nearly else lines.holding
        return [(names[i], counts[i]) for i in find(text.casefold(), limit)]

    @cached_property
    def _artists(self) -> tuple[list[str], list[int], PackedTexts]:
        """Return the artists' names, song counts and lines to search, in descending order of song counts."""
        artist = self.columns.artist
        counts = artist.sizes()
        order = np.argsort(-counts, kind="stable")
        names = [artist.names[i] for i in order.tolist()]
        return names, counts[order].tolist(), PackedTexts.pack(name.casefold() for name in names)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        arrays: dict[str, npt.NDArray[Any]] = {"ids": self.ids}
        for name in _LABELS:
            labels = getattr(self.columns, name)
            arrays |= {name: labels.codes, f"{name}_names": np.frombuffer(json.dumps(labels.names).encode(), np.uint8)}
        arrays |= {name: getattr(self.columns, name) for name in _NUMBERS}
        for name in ("titles", "matched"):
            lines = getattr(self, name)
            arrays |= {name: np.frombuffer(lines.text, np.uint8), f"{name}_starts": lines.starts}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> Self:
        columns: dict[str, Any] = {name: partial(_labels, arrays[name], arrays[f"{name}_names"]) for name in _LABELS}
        columns |= {name: arrays[name] for name in _NUMBERS}
        texts = {name: partial(_texts, arrays[name], arrays[f"{name}_starts"]) for name in ("titles", "matched")}
        return cls(ids=arrays["ids"], columns=SongColumns(**columns), **texts)


def song_label(title: str, by: str) -> str:
    return f"{title} — {by}" if by else title


def nobody(stand_in: str | None) -> str:
    """Return the text shown for an unknown artist; empty if the folder's name is not informative either."""
    return f"in “{stand_in}”" if stand_in else ""


def stand_in_of(group: str) -> str | None:
    """Return the folder name that is shown for an unknown artist, given the song's group."""
    return stand_in_name(Path(group.removeprefix(_FOLDER)), ()) if group.startswith(_FOLDER) else None


def _labels(codes: Int32Array, names: Uint8Array) -> Labels:
    return Labels(codes, json.loads(names.tobytes()))


def _texts(text: Uint8Array, starts: Int64Array) -> PackedTexts:
    return PackedTexts(text.tobytes(), starts)


def _join_names(names: list[str], added: Labels) -> tuple[list[str], Int32Array]:
    """Return `names` extended by the new names in `added`, and the codes of the added songs."""
    added_names = set(added.names)
    code_of = {name: code for code, name in enumerate(names) if name in added_names}
    new = [name for name in added.names if name not in code_of]
    code_of |= {name: len(names) + i for i, name in enumerate(new)}
    codes = np.array([*(code_of[name] for name in added.names), -1], dtype=np.int32)
    return [*names, *new], codes[added.codes]


def _drop_unused(labels: Labels) -> Labels:
    used = labels.sizes() > 0
    if used.all():
        return labels
    codes = np.append(np.cumsum(used, dtype=np.int32) - 1, np.int32(-1))
    return Labels(codes[labels.codes].astype(np.int32), list(compress(labels.names, used.tolist())))


def some_ids(ids: Iterable[int]) -> sa.Select[tuple[int]]:
    """Return song ids as a query for ``in_``, because the number of variables in a statement is limited."""
    listed = json.dumps([int(i) for i in ids])
    return sa.select(sa.func.json_each(listed).table_valued("value").c.value)


def read_table(connection: sa.Connection, roots: Sequence[Path], ids: Iterable[int] | None = None) -> SongTable:
    """Read all songs with a file, or those in `ids`; 9 s for a million songs. `roots` are the library's folders."""
    s, f = schema.songs.c, schema.files.c
    folder = sa.func.min(sa.type_coerce(f.folder, sa.Text)).label("folder")  # creating Path objects would take seconds
    files = sa.select(f.song_id, folder).where(f.missing_since.is_(None)).group_by(f.song_id)
    condition: sa.ColumnElement[bool] = sa.true()
    if ids is not None:
        wanted = some_ids(ids)
        files, condition = files.where(f.song_id.in_(wanted)), s.id.in_(wanted)
    folders = files.subquery()
    selected = (s.id, s.title, s.artist, s.genre, folders.c.folder, s.key, s.mode, s.year, s.duration_s, s.added_at)
    query = sa.select(*selected, *(s[name] for name in DESCRIPTORS)).join(folders, folders.c.song_id == s.id)
    query = query.where(condition).order_by(s.id)
    # the driver returns rows faster than SQLAlchemy
    cursor = connection.execute(query).cursor
    assert cursor is not None
    code_of: tuple[dict[str, int], ...] = ({}, {}, {}, {}, {})
    numbers, codes = [np.empty((0, 1 + len(_NUMBERS)))], [np.empty((5, 0), dtype=np.int32)]
    titles, matched = [], []
    while rows := cursor.fetchmany(_BLOCK):
        new_ids, names, artists, genres, places, keys, modes, years, *others = zip(*rows, strict=True)
        # None (unknown) becomes nan
        numbers.append(np.array([new_ids, [year or 0 for year in years], *others], dtype=np.float64).T)
        labels = zip(code_of, (artists, genres, places, keys, modes), strict=True)
        block = [
            [-1 if text is None else known.setdefault(text, len(known)) for text in column] for known, column in labels
        ]
        codes.append(np.array(block, dtype=np.int32))
        titles.append(PackedTexts.pack(names))
        texts = (f"{title} {artist or ''}".casefold() for title, artist in zip(names, artists, strict=True))
        matched.append(PackedTexts.pack(texts))
    values = np.concatenate(numbers)
    columns = _make_columns(values, np.concatenate(codes, axis=1), [*map(list, code_of)], roots)
    song_ids = values[:, 0].astype(np.int64)
    return SongTable(ids=song_ids, columns=columns, titles=PackedTexts.join(titles), matched=PackedTexts.join(matched))


def _make_columns(
    numbers: Float64Array, codes: Int32Array, texts: Sequence[list[str]], roots: Sequence[Path]
) -> SongColumns:
    """Make the columns from rows (song id, then :data:`_NUMBERS`), and from the codes and names of five labels."""
    artist, genre, folder, key, mode = codes
    artists, genres, stored, keys, modes = texts
    heard = zip(DESCRIPTORS, numbers[:, 4:].T.astype(np.float32), strict=True)
    paths = [schema.path_of(name) for name in stored]
    by_artist, folders = Labels(artist, artists), Labels(folder, [str(path) for path in paths])
    return SongColumns(
        artist=by_artist, genre=Labels(genre, genres), folder=folders, key=Labels(key, keys),
        mode=Labels(mode, modes), group=_groups(numbers[:, 0].astype(np.int64), by_artist, folder, paths, roots),
        year=numbers[:, 1].astype(np.int16), duration_s=np.ascontiguousarray(numbers[:, 2]),
        added_at=np.ascontiguousarray(numbers[:, 3]),
        **{name: np.ascontiguousarray(values) for name, values in heard},
    )  # fmt: skip


def _groups(ids: Int64Array, artist: Labels, folder: Int32Array, paths: Sequence[Any], roots: Sequence[Path]) -> Labels:
    """Return each song's group: its artist, the folder that replaces an unknown artist, or the song alone."""
    code_of: dict[str, int] = {}

    def code(group: str | None) -> int:
        return code_of.setdefault(group, len(code_of)) if group else -1

    by_artist = np.array([*(code(artist_group(name, Path(), ())) for name in artist.names), -1], np.int32)
    codes = by_artist[artist.codes]
    unknown = np.flatnonzero(codes < 0)
    by_folder = np.full(len(paths), -1, dtype=np.int32)
    for place in np.unique(folder[unknown]).tolist():
        by_folder[place] = code(artist_group(None, paths[place], roots))
    codes[unknown] = by_folder[folder[unknown]]
    alone = np.flatnonzero(codes < 0)
    codes[alone] = [code(f"song:{song_id}") for song_id in ids[alone].tolist()]
    return _drop_unused(Labels(codes, list(code_of)))
