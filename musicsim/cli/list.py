"""The ``musicsim list`` command, in a module of its own because queries take a third of a second to import."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from musicsim.audio import DESCRIPTORS
from musicsim.cli.console import JsonOption, LibraryOption, emit, open_library, show, song_json
from musicsim.cli.options import take_request
from musicsim.errors import NotFoundError
from musicsim.explorer import Filters, filter_rows, snapshot_under
from musicsim.explorer.requests.query import join_arguments
from musicsim.explorer.requests.search import ListRequest, sort_songs
from musicsim.library import Library, Song
from musicsim.wording import clock


def _descriptor(name: str, song: Song) -> str:
    value = getattr(song, name)
    return "" if value is None else f"{value:.{DESCRIPTORS[name].digits}f}"


class _Column(NamedTuple):
    """A column of `musicsim list`."""

    value: str  # attribute of a song
    width: int  # longer texts are wrapped in a narrow terminal
    text: Callable[[Song], str]


_COLUMNS = {
    "id": _Column("id", 5, lambda s: str(s.id)),
    "title": _Column("title", 24, lambda s: s.title),
    "artist": _Column("artist", 16, lambda s: s.artist or ""),
    "length": _Column("duration_s", 6, lambda s: clock(s.duration_s)),
    "year": _Column("year", 4, lambda s: str(s.year or "")),
    "album": _Column("album", 16, lambda s: s.album or ""),
    "genre": _Column("genre", 12, lambda s: s.genre or ""),
    "key": _Column("key", 8, lambda s: s.key_words),
    **{
        descriptor.heading: _Column(name, max(len(descriptor.heading), 5), partial(_descriptor, name))
        for name, descriptor in DESCRIPTORS.items()
    },
}
_ALWAYS = ("id", "title", "artist", "length")
_BORDERS = 3  # characters per column


@take_request(ListRequest)
def list_songs(
    request: ListRequest,
    query: Annotated[
        list[str] | None,
        typer.Argument(help="Conditions, such as `artist:miles year:..1960 -live`; default: all songs."),
    ] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Examples:
    musicsim list
    musicsim list artist:miles year:..1960 --sort tempo
    """
    words = join_arguments(query or [])
    with open_library(library) as lib:
        songs = sort_songs(_find_songs(lib, words) if words else lib.songs(), request)
    if as_json:
        emit([song_json(song) for song in songs])
    if words and not songs:
        raise NotFoundError(f"no song matches {words!r}.")
    if as_json:
        return
    texts = {name: [column.text(song) for song in songs] for name, column in _COLUMNS.items()}
    names = _fitting(texts, Console().width, request.sort)
    caption = "--json shows all values." if len(names) < len(_COLUMNS) else ""
    rows = zip(*(texts[name] for name in names), strict=True)
    show(names, rows, caption=caption, empty="This library has no songs. Add some with `musicsim add FOLDER`.")


def _find_songs(library: Library, words: str) -> Sequence[Song]:
    snapshot = snapshot_under(library, None)
    mask = filter_rows(snapshot, Filters(words=words))
    return library.songs() if mask is None else snapshot.songs_at(mask.nonzero()[0])


def _fitting(texts: Mapping[str, Sequence[str]], width: int, sort: str) -> list[str]:
    """Return the names of the columns that fit into a terminal: the first four, that of the order, then the others."""
    names = sorted(_COLUMNS, key=lambda name: (name not in _ALWAYS, _COLUMNS[name].value != sort))
    widths = (min(max(map(len, [name, *texts[name]])), _COLUMNS[name].width) for name in names)
    ends = accumulate(n + _BORDERS for n in widths)
    return [name for name, end in zip(names, ends, strict=True) if end < width or name in _ALWAYS]
