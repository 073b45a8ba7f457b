"""Songs as columns: what a million of them are listed, filtered and found by, without an object a song.

A :class:`SongTable` has every song with a file, by id; a few songs of it are replaced where they have changed.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from musicsim._arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int16Array,
    Int32Array,
    Int64Array,
    Uint8Array,
    places_in_order,
)
from musicsim.audio import HEARD
from musicsim.library.db import schema
from musicsim.library.db.packed_texts import PackedTexts
from musicsim.library.tags.artists import artist_group, stand_in_name

_AT_ONCE = 10_000  # rows taken from the database
_FOLDER = "folder:"  # how the group of a folder begins


class _Record:
    """Fixed values; a function given for one computes it on first use."""

    def __init__(self, **values: Any) -> None:
        self._waiting: dict[str, Callable[[], Any]] = {}
        for name, value in values.items():
            (self._waiting if callable(value) else self.__dict__)[name] = value

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__
        compute = values.get("_waiting", {}).get(name)
        if compute is not None:
            values.setdefault(name, compute())  # another thread may have computed it meanwhile
            self._waiting.pop(name, None)  # frees its inputs
        if name not in values:
            raise AttributeError(name)
        return values[name]


@dataclass(frozen=True, slots=True)
class Labels:
    """A text for each song, each distinct text held once."""

    codes: Int32Array  # (n_songs,): places in `names`; -1 where there is none
    names: list[str]  # each is of some song of the library, though perhaps of none among these

    def among(self, wanted: Iterable[str]) -> BoolArray:
        """Which songs have one of some texts, bool (n_songs,)."""
        return self.where(set(wanted).__contains__)

    def where(self, holds: Callable[[str], bool]) -> BoolArray:
        """Which songs have a text of which something holds, bool (n_songs,)."""
        known = np.array([*map(holds, self.names), False])  # the last one: no text
        return known[self.codes]

    def texts(self, rows: npt.ArrayLike | None = None) -> list[str | None]:
        """The text of each song, or of some of them; None where there is none."""
        codes = self.codes if rows is None else self.codes[np.asarray(rows, dtype=np.int64)]
        return [self.names[code] if code >= 0 else None for code in codes.tolist()]

    def counts(self) -> Counter[str]:
        """How many songs have each text."""
        n_songs = np.bincount(self.codes + 1, minlength=len(self.names) + 1)[1:].tolist()
        return Counter({name: n for name, n in zip(self.names, n_songs, strict=True) if n})

    def take(self, rows: Int64Array) -> Self:
        """The same of some songs."""
        return replace(self, codes=self.codes[rows])


class SongColumns(_Record):
    """What filters, limits and colours look at, one entry a song: 50 bytes a song, and the names.

    A search looks at one or two of them: of a million songs, all together take a tenth of a second.
    """

    # as musicsim.library.Song has them
    artist: Labels
    genre: Labels
    folder: Labels
    group: Labels
    key: Labels
    mode: Labels
    year: Int16Array  # (n_songs,), 0 where unknown
    duration_s: Float64Array  # (n_songs,)
    # (n_songs,), nan where unknown
    tempo: Float32Array
    loudness: Float32Array
    brightness: Float32Array
    energy: Float32Array

    def take(self, rows: Int64Array) -> Self:
        """The same of some songs."""

        def taken(name: str) -> Labels | npt.NDArray[Any]:
            column: Labels | npt.NDArray[Any] = getattr(self, name)
            return column.take(rows)

        return type(self)(**{name: partial(taken, name) for name in (*_LABELS, *_NUMBERS)})

    def with_genre(self, genre: Callable[[], Labels]) -> Self:
        """The same with another genre."""
        others = {name: partial(getattr, self, name) for name in (*_LABELS, *_NUMBERS)}
        return type(self)(**others | {"genre": genre})


_LABELS = ("artist", "genre", "folder", "group", "key", "mode")
_NUMBERS = ("year", "duration_s", *HEARD)


class SongTable(_Record):
    """Every song of a library that has a file; 0.2 kB a song."""

    ids: Int64Array  # (n_songs,), ascending
    columns: SongColumns
    titles: PackedTexts
    matched: PackedTexts  # what Song.matches looks into

    def places_of(self, ids: npt.ArrayLike) -> Int64Array:
        """Places of song ids in the table, int64 (n_ids,); -1 where there is none."""
        return places_in_order(self.ids, np.asarray(ids, dtype=np.int64))

    def replaced(self, ids: Iterable[int], new: Self) -> Self:
        """The table without the songs of `ids`, and with those of another table; none of them may be left."""
        places = self.places_of(np.sort(np.fromiter(ids, dtype=np.int64)))
        gone = places[places >= 0]
        left = np.delete(self.ids, gone)
        at = np.searchsorted(left, new.ids)

        def merged(old: npt.NDArray, added: npt.NDArray) -> npt.NDArray:
            return np.insert(np.delete(old, gone), at, added)

        def labels(name: str) -> Labels:
            old, added = getattr(self.columns, name), getattr(new.columns, name)
            names, codes = _joined(old.names, added)
            return _in_use(Labels(merged(old.codes, codes), names))

        columns: dict[str, Any] = {name: labels(name) for name in _LABELS}
        columns |= {name: merged(getattr(self.columns, name), getattr(new.columns, name)) for name in _NUMBERS}
        all_ids = merged(self.ids, new.ids)
        return type(self)(
            # the very same array where the songs are the same, so that what is aligned with it is seen to be so
            ids=self.ids if np.array_equal(all_ids, self.ids) else all_ids,
            columns=SongColumns(**columns),
            titles=self.titles.replaced(gone, new.titles, at),
            matched=self.matched.replaced(gone, new.matched, at),
        )

    def names_at(self, places: Int64Array) -> list[tuple[str, str]]:
        """:attr:`Song.title` and :attr:`Song.by` of the songs at some places."""
        artist, group = self.columns.artist, self.columns.group
        codes = zip(artist.codes[places].tolist(), group.codes[places].tolist(), strict=True)
        return [
            (title, artist.names[a] if a >= 0 and artist.names[a] else nobody(stand_in_of(group.names[g])))
            for title, (a, g) in zip(self.titles.lines(places), codes, strict=True)
        ]

    def ids_with(self, text: str, limit: int, *, nearly: bool = False) -> Int64Array:
        """Ids of the first songs that match a text as :meth:`Song.matches` does; those that begin with it first.

        Those that hold it but for a typo, where it is asked for what `nearly` matches.
        """
        find = self.matched.nearly_holding if nearly else self.matched.holding
        return self.ids[find(text.casefold(), limit)]

    def artists_with(self, text: str, limit: int, *, nearly: bool = False) -> list[tuple[str, int]]:
        """Artists that hold a text in any case, with their numbers of songs, the most first.

        Those that begin with it come before others. `nearly` as of :meth:`ids_with`.
        """
        names, counts, lines = self._artists
        find = lines.nearly_holding if nearly else lines.holding
        return [(names[i], counts[i]) for i in find(text.casefold(), limit)]

    @cached_property
    def _artists(self) -> tuple[list[str], list[int], PackedTexts]:
        """Artists from many songs to few: names, numbers of songs, and what is looked into."""
        artist = self.columns.artist
        counts = np.bincount(artist.codes + 1, minlength=len(artist.names) + 1)[1:]
        order = np.argsort(-counts, kind="stable")
        names = [artist.names[i] for i in order.tolist()]
        return names, counts[order].tolist(), PackedTexts.of(name.casefold() for name in names)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays for an archive without pickle."""
        arrays: dict[str, npt.NDArray[Any]] = {"ids": self.ids}
        for name in _LABELS:
            labels = getattr(self.columns, name)
            arrays |= {name: labels.codes, f"{name}_names": _bytes(json.dumps(labels.names).encode())}
        arrays |= {name: getattr(self.columns, name) for name in _NUMBERS}
        for name in ("titles", "matched"):
            lines = getattr(self, name)
            arrays |= {name: _bytes(lines.text), f"{name}_starts": lines.starts}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> Self:
        """What :meth:`to_arrays` took apart."""
        columns: dict[str, Any] = {name: partial(_labels, arrays[name], arrays[f"{name}_names"]) for name in _LABELS}
        columns |= {name: arrays[name] for name in _NUMBERS}
        texts = {name: partial(_texts, arrays[name], arrays[f"{name}_starts"]) for name in ("titles", "matched")}
        return cls(ids=arrays["ids"], columns=SongColumns(**columns), **texts)


def song_label(title: str, by: str) -> str:
    """Title and artist in one line."""
    return f"{title} — {by}"


def nobody(stand_in: str | None) -> str:
    """What is said where no artist is known."""
    return f"in “{stand_in}”" if stand_in else "unknown artist"


def stand_in_of(group: str) -> str | None:
    """The name of the folder that stands in for an unknown artist, from the group of the song."""
    return stand_in_name(Path(group.removeprefix(_FOLDER)), ()) if group.startswith(_FOLDER) else None


def _bytes(data: bytes) -> Uint8Array:
    return np.frombuffer(data, dtype=np.uint8)


def _labels(codes: Int32Array, names: Uint8Array) -> Labels:
    return Labels(codes, json.loads(names.tobytes()))


def _texts(text: Uint8Array, starts: Int64Array) -> PackedTexts:
    return PackedTexts(text.tobytes(), starts)


def _joined(names: list[str], added: Labels) -> tuple[list[str], Int32Array]:
    """Names with those of a few more songs, and the codes of these among them."""
    new = set(added.names)
    place = {name: code for code, name in enumerate(names) if name in new}
    more = [name for name in added.names if name not in place]
    place |= {name: len(names) + i for i, name in enumerate(more)}
    codes = np.array([*(place[name] for name in added.names), -1], dtype=np.int32)
    return [*names, *more], codes[added.codes]


def _in_use(labels: Labels) -> Labels:
    """The same labels without names that no song has."""
    used = np.bincount(labels.codes + 1, minlength=len(labels.names) + 1)[1:] > 0
    if used.all():
        return labels
    codes = np.append(np.cumsum(used, dtype=np.int32) - 1, np.int32(-1))
    return Labels(
        codes[labels.codes].astype(np.int32),
        [name for name, is_used in zip(labels.names, used.tolist(), strict=True) if is_used],
    )


# --- reading ----------------------------------------------------------------------------------


def some_ids(ids: Iterable[int]) -> sa.Select[tuple[int]]:
    """Song ids as a query, for ``in_``: as many as there may be, where variables of a statement are limited."""
    listed = json.dumps([int(i) for i in ids])
    return sa.select(sa.func.json_each(listed).table_valued("value").c.value)


def read_table(connection: sa.Connection, roots: Sequence[Path], ids: Iterable[int] | None = None) -> SongTable:
    """Read all songs that have a file, or those of `ids`; 9 s for a million. `roots` are the library's folders."""
    s, f = schema.songs.c, schema.files.c
    folder = sa.func.min(sa.type_coerce(f.folder, sa.Text)).label("folder")  # a path each would take seconds
    files = sa.select(f.song_id, folder).where(f.missing_since.is_(None)).group_by(f.song_id)
    which: sa.ColumnElement[bool] = sa.true()
    if ids is not None:
        chosen = some_ids(ids)
        files, which = files.where(f.song_id.in_(chosen)), s.id.in_(chosen)
    here = files.subquery()
    columns = (s.id, s.title, s.artist, s.genre, here.c.folder, s.key, s.mode, s.year, s.duration_s)
    query = sa.select(*columns, *(s[name] for name in HEARD)).join(here, here.c.song_id == s.id)
    query = query.where(which).order_by(s.id)
    # past SQLAlchemy's rows, which take longer to make than the driver's
    cursor = connection.execute(query).cursor
    assert cursor is not None
    reading = _Reading()
    while rows := cursor.fetchmany(_AT_ONCE):
        reading.add(rows)
    return reading.table(roots)


class _Reading:
    def __init__(self) -> None:
        self._numbers: list[Float64Array] = [np.empty((0, 1 + len(_NUMBERS)))]
        self._codes: list[Int32Array] = [np.empty((5, 0), dtype=np.int32)]
        self._places: tuple[dict[str, int], ...] = ({}, {}, {}, {}, {})
        self._titles: list[PackedTexts] = []
        self._matched: list[PackedTexts] = []

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Take rows of id, title, artist, genre, folder, key, mode, year, length and what else can be heard."""
        ids, titles, artists, genres, folders, keys, modes, years, *numbers = zip(*rows, strict=True)
        # what is not known, None, becomes nan
        self._numbers.append(np.array([ids, [year or 0 for year in years], *numbers], dtype=np.float64).T)
        codes = [
            [-1 if value is None else places.setdefault(value, len(places)) for value in values]
            for places, values in zip(self._places, (artists, genres, folders, keys, modes), strict=True)
        ]
        self._codes.append(np.array(codes, dtype=np.int32))
        self._titles.append(PackedTexts.of(titles))
        texts = (f"{title} {artist or ''}".casefold() for title, artist in zip(titles, artists, strict=True))
        self._matched.append(PackedTexts.of(texts))

    def table(self, roots: Sequence[Path]) -> SongTable:
        """The songs that were taken."""
        numbers = np.concatenate(self._numbers)
        ids = numbers[:, 0].astype(np.int64)
        artist, genre, folder, key, mode = np.concatenate(self._codes, axis=1)
        artists, genres, stored, keys, modes = (list(places) for places in self._places)
        heard = zip(HEARD, numbers[:, 3:].T.astype(np.float32), strict=True)
        paths = [schema.path_of(name) for name in stored]
        by_artist, folders = Labels(artist, artists), Labels(folder, [str(path) for path in paths])
        columns = SongColumns(
            artist=by_artist, genre=Labels(genre, genres), folder=folders, key=Labels(key, keys),
            mode=Labels(mode, modes), group=_groups(ids, by_artist, folder, paths, roots),
            year=numbers[:, 1].astype(np.int16), duration_s=np.ascontiguousarray(numbers[:, 2]),
            **{name: np.ascontiguousarray(values) for name, values in heard},
        )  # fmt: skip
        return SongTable(
            ids=ids, columns=columns, titles=PackedTexts.joined(self._titles), matched=PackedTexts.joined(self._matched)
        )


def _groups(ids: Int64Array, artist: Labels, folder: Int32Array, paths: Sequence[Any], roots: Sequence[Path]) -> Labels:
    """What :attr:`Song.group` says: the artist, else the folder that stands in, else the song alone."""
    places: dict[str, int] = {}

    def code(group: str | None) -> int:
        return places.setdefault(group, len(places)) if group else -1

    by_artist = np.array([*(code(artist_group(name, Path(), ())) for name in artist.names), -1], np.int32)
    codes = by_artist[artist.codes]
    nobody = np.flatnonzero(codes < 0)
    by_folder = np.full(len(paths), -1, dtype=np.int32)
    for place in np.unique(folder[nobody]).tolist():
        by_folder[place] = code(artist_group(None, paths[place], roots))
    codes[nobody] = by_folder[folder[nobody]]
    alone = np.flatnonzero(codes < 0)
    codes[alone] = [code(f"song:{song_id}") for song_id in ids[alone].tolist()]
    return _in_use(Labels(codes, list(places)))
