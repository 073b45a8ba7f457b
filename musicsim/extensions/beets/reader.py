"""The library of beets, an SQLite file that is only read: genres and styles as tags, ratings, MusicBrainz ids.

Songs are named by the paths of their files, which newer versions write relative to beets' folder of music. Four of
five stars are the tag "rated 4". beets writes ids of other services under the same names: only those that
MusicBrainz can have given are read.
"""

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from musicsim.errors import LibraryError
from musicsim.library.importing.formats import Format
from musicsim.library.importing.json_formats import plain
from musicsim.library.importing.records import Gatherer, NamedSong
from musicsim.library.importing.sources import RawBytes
from musicsim.library.tags.file_tags import MBID

_TAG_COLUMNS = ("genres", "genre", "style")  # "genres" takes the place of "genre" from beets 2.6 on
_BETWEEN = re.compile(r"\\␀|[;,\0]")
_WEIGHT = 100.0  # of a tag that says no more than that it is there
_SCALES = (1, 5, 10, 100)  # of ratings: mpdstats gives at most 1, people type stars


def read_beets(data: RawBytes, rows: Gatherer) -> None:
    """Read items with what they are tagged as; songs without tags are entered for their ids.

    Raises LibraryError if the file is damaged, in use, or no library of beets.
    """
    source = data.source
    if source.member is not None:
        raise LibraryError(f"{source.label}: beets' library is read where it is. Unpack it first.")
    try:
        address = f"{source.path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=5)) as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            ratings = _ratings(connection)
            for item in _items(connection):
                _enter(rows, item, ratings.get(item["id"], 0.0))
    except sqlite3.Error as error:
        raise LibraryError(
            f"{source.label}: cannot be read as a library of beets ({error}). Wait until beets is done, or restore it."
        ) from error


def _items(connection: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    here = [row[1] for row in connection.execute("PRAGMA table_info(items)")]
    wanted = ("id", "path", "artist", "title", "album", "mb_trackid", *_TAG_COLUMNS)
    columns = [name for name in wanted if name in here]
    for row in connection.execute(f"SELECT {', '.join(columns)} FROM items ORDER BY id"):
        yield dict(zip(columns, row, strict=True))


def _ratings(connection: sqlite3.Connection) -> dict[int, float]:
    """Ratings from 0 to 1 by item, whatever scale they were given on."""
    found: dict[int, float] = {}
    for item, value in connection.execute(
        "SELECT entity_id, CAST(value AS REAL) FROM item_attributes WHERE key = 'rating'"
    ):
        found[item] = value or 0.0
    top = max(found.values(), default=0.0)
    scale = next((scale for scale in _SCALES if top <= scale), top)
    return {item: value / scale for item, value in found.items()}


def _enter(rows: Gatherer, item: dict[str, Any], rating: float) -> None:
    path = item.get("path") or b""
    mbid = str(item.get("mb_trackid") or "").lower()
    artist, title, album = (plain(str(item.get(name) or "")) for name in ("artist", "title", "album"))
    place = os.fsdecode(path) if isinstance(path, bytes) else str(path)
    song = NamedSong(artist, title, album, mbid if re.fullmatch(MBID, mbid) else "", place)
    rows.name(song)
    texts = [str(item.get(name) or "") for name in _TAG_COLUMNS]
    if texts[0]:
        texts[1] = ""
    tags = {plain(tag).casefold(): plain(tag) for text in texts for tag in _BETWEEN.split(text) if plain(tag)}
    for tag in tags.values():
        rows.add(song, (tag, ""), _WEIGHT)
    if rating > 0:
        rows.add(song, (f"rated {max(1, round(5 * rating))}", ""), _WEIGHT)


FORMATS = {
    "beets": Format(
        "library of beets (library.db)", "tags", read_beets, RawBytes,
        signs=("SQLite format 3\0", "item_attributes", "album_attributes"),  # the file's kind, and names of two tables
    )
}  # fmt: skip
