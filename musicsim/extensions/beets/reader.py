"""Genres, styles, ratings and MusicBrainz ids from a beets library, an SQLite file that is opened read-only.

Songs are matched by the paths of their files. Four out of five stars become the tag "rated 4". beets stores ids from
other services in the same columns, so only ids in MusicBrainz format are read.
"""

import os
import re
import sqlite3
from contextlib import closing
from typing import Any

from musicsim.errors import LibraryError
from musicsim.library import MBID, Gatherer, ImportFormat, NamedSong, RawBytes, plain_name

_TAG_COLUMNS = ("genres", "genre", "style")  # "genres" has replaced "genre" since beets 2.6
_COLUMNS = ("id", "path", "artist", "title", "album", "mb_trackid", *_TAG_COLUMNS)
_SEPARATOR = re.compile(r"\\␀|[;,\0]")
_WEIGHT = 100.0  # weight of every tag, because beets stores none
_SCALES = (1, 5, 10, 100)  # possible maximum ratings: 1 with the plugin mpdstats, otherwise any scale that people use


def read_beets(data: RawBytes, rows: Gatherer) -> None:
    """Read beets items with their tags; songs without tags are included for their MusicBrainz ids."""
    source = data.source
    if source.member is not None:
        raise LibraryError(f"{source.label}: a beets library inside an archive cannot be read. Unpack it first.")
    try:
        address = f"{source.path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=5)) as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            ratings = _ratings(connection)
            existing = [row[1] for row in connection.execute("PRAGMA table_info(items)")]
            columns = [name for name in _COLUMNS if name in existing]
            for row in connection.execute(f"SELECT {', '.join(columns)} FROM items ORDER BY id"):
                item = dict(zip(columns, row, strict=True))
                _enter(rows, item, ratings.get(item["id"], 0.0))
    except sqlite3.Error as error:
        raise LibraryError(
            f"{source.label}: cannot read this beets library ({error}). Wait until beets is done, or restore a backup."
        ) from error


def _ratings(connection: sqlite3.Connection) -> dict[int, float]:
    """Return a dict from item id to rating, scaled to the range 0 to 1."""
    query = "SELECT entity_id, CAST(value AS REAL) FROM item_attributes WHERE key = 'rating'"
    ratings = {item: value or 0.0 for item, value in connection.execute(query)}
    top = max(ratings.values(), default=0.0)
    scale = next((scale for scale in _SCALES if top <= scale), top)
    return {item: value / scale for item, value in ratings.items()}


def _enter(rows: Gatherer, item: dict[str, Any], rating: float) -> None:
    path = item.get("path") or b""
    mbid = str(item.get("mb_trackid") or "").lower()
    artist, title, album = (plain_name(str(item.get(name) or "")) for name in ("artist", "title", "album"))
    path = os.fsdecode(path) if isinstance(path, bytes) else str(path)
    song = NamedSong(artist, title, album, mbid if re.fullmatch(MBID, mbid) else "", path)
    rows.name(song)
    texts = [str(item.get(name) or "") for name in _TAG_COLUMNS]
    if texts[0]:
        texts[1] = ""
    tags = {
        plain_name(tag).casefold(): plain_name(tag)
        for text in texts
        for tag in _SEPARATOR.split(text)
        if plain_name(tag)
    }
    for tag in tags.values():
        rows.add(song, (tag, ""), _WEIGHT)
    if rating > 0:
        rows.add(song, (f"rated {max(1, round(5 * rating))}", ""), _WEIGHT)


FORMATS = {
    "beets": ImportFormat(
        "beets library (library.db)", "tags", read_beets, RawBytes,
        signs=("SQLite format 3\0", "item_attributes", "album_attributes"),  # the file type, and names of two tables
    )
}  # fmt: skip
