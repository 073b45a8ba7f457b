"""The ``musicsim list``, ``edit``, ``artists``, ``duplicates``, ``failed``, ``missing`` and ``forget`` commands."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console

from musicsim.audio import DESCRIPTORS
from musicsim.cli.console import (
    SOME_FAILED,
    JsonOption,
    LibraryOption,
    echo,
    emit,
    failure_json,
    open_library,
    show,
    song_json,
)
from musicsim.cli.options import take_request
from musicsim.errors import NotFoundError
from musicsim.explorer.requests.search import ListRequest, sort_songs
from musicsim.explorer.snapshot.same_sound import agreements, groups
from musicsim.library import SKIPPED, Song, absolute
from musicsim.wording import clock, count


def _whole_number(name: str, song: Song) -> str:
    value = getattr(song, name)
    return "" if value is None else f"{value:.0f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


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
        descriptor.heading: _Column(name, len(descriptor.heading), partial(_whole_number, name))
        for name, descriptor in DESCRIPTORS.items()
    },
}
_ALWAYS = ("id", "title", "artist", "length")
_BORDERS = 3  # characters per column


@take_request(ListRequest)
def list_songs(
    request: ListRequest,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    search: Annotated[str, typer.Option("--search", "-s", help="Part of a title or artist name.", metavar="TEXT")] = "",
) -> None:
    with open_library(library) as lib:
        songs = sort_songs((song for song in lib.songs() if song.matches(search)), request)
    if as_json:
        emit([song_json(song) for song in songs])
    if search and not songs:
        raise NotFoundError(f"no song matches {search!r}.")
    if as_json:
        return
    texts = {name: [column.text(song) for song in songs] for name, column in _COLUMNS.items()}
    names = _fitting(texts, Console().width, request.sort)
    caption = "--json shows all values." if len(names) < len(_COLUMNS) else ""
    show(names, zip(*(texts[name] for name in names), strict=True), caption=caption)


def _fitting(texts: Mapping[str, Sequence[str]], width: int, sort: str) -> list[str]:
    """Return the names of the columns that fit into a terminal: the first four, that of the order, then the others."""
    names = sorted(_COLUMNS, key=lambda name: (name not in _ALWAYS, _COLUMNS[name].value != sort))
    widths = (min(max(map(len, [name, *texts[name]])), _COLUMNS[name].width) for name in names)
    ends = accumulate(n + _BORDERS for n in widths)
    return [name for name, end in zip(names, ends, strict=True) if end < width or name in _ALWAYS]


def edit(
    songs: Annotated[list[int], typer.Argument(help="Song ids, as shown by `musicsim list`.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
    title: Annotated[str | None, typer.Option(help="New title.")] = None,
    artist: Annotated[str | None, typer.Option(help="New artist.")] = None,
    album_artist: Annotated[str | None, typer.Option(help="New album artist.")] = None,
    album: Annotated[str | None, typer.Option(help="New album.")] = None,
    track: Annotated[int | None, typer.Option(help="New number on the album.")] = None,
    year: Annotated[int | None, typer.Option(help="New year.")] = None,
    genre: Annotated[str | None, typer.Option(help="New genre.")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Restore the files' own tags.")] = False,
) -> None:
    """An empty string clears a tag."""
    tags = {
        "title": title, "artist": artist, "album_artist": album_artist, "album": album, "track": track, "year": year,
        "genre": genre,
    }  # fmt: skip
    changes = {name: value for name, value in tags.items() if value is not None}
    with open_library(library) as lib:
        for song_id in songs:
            lib.song(song_id)  # raises an error before anything changes
        if undo:
            lib.edits.undo(songs)
        if changes:
            try:
                lib.edits.edit(songs, changes)
            except ValueError as error:
                raise typer.BadParameter(str(error)) from error
        edited = lib.songs(songs, missing=True)
    if as_json:
        emit([song_json(song) for song in edited])
    else:
        for song in edited:
            echo(f"{song.id}  {song.label}")


def artists(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    merge: Annotated[
        list[str] | None, typer.Option(help="A spelling to merge; can be repeated.", metavar="ARTIST")
    ] = None,
    into: Annotated[str | None, typer.Option(help="The artist to merge the spellings into.", metavar="ARTIST")] = None,
    part: Annotated[str | None, typer.Option(help="Undo the merges into this artist.", metavar="ARTIST")] = None,
) -> None:
    with open_library(library) as lib:
        if merge:
            if not into:
                raise typer.BadParameter("give the artist to merge them into: --into NAME")
            lib.edits.merge(merge, into)
        if part:
            lib.edits.part(part)
        suggestions, aliases = lib.edits.suggestions(), lib.edits.aliases()
    if as_json:
        emit({"suggestions": [[names[0], list(names)] for names in suggestions], "merged": aliases})
        return
    for names in suggestions:
        echo(f"{names[0]}: {', '.join(names)}")
    for spelling, artist in aliases.items():
        echo(f"merged: {spelling} into {artist}")


def duplicates(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    part: Annotated[
        tuple[int, int] | None, typer.Option(help="Mark two songs, given by id, as different.", metavar="ID ID")
    ] = None,
    join: Annotated[
        tuple[int, int] | None, typer.Option(help="Undo --part for two songs, given by id.", metavar="ID ID")
    ] = None,
) -> None:
    with open_library(library) as lib:
        for pair, is_same in ((part, False), (join, True)):
            if pair is not None and not lib.duplicates.judge(pair, is_same=is_same):
                raise NotFoundError(f"{pair[0]} and {pair[1]} are not listed as duplicates.")
        pairs = lib.duplicates.pairs()
        duplicate_groups = groups(lib.songs(), pairs)
    agreement_of = agreements(pairs)

    matched = [
        [(song, agreement_of.get(frozenset((group[0].id, song.id)))) for song in group] for group in duplicate_groups
    ]
    if as_json:
        emit([[song_json(song) | {"match": match} for song, match in group] for group in matched])
        return
    rows = [
        (number, song.id, song.title, song.by, clock(song.duration_s), _share(match), song.path)
        for number, group in enumerate(matched, 1)
        for song, match in group
    ]
    show(("group", "id", "title", "artist", "length", "match", "file"), rows)


def list_failures(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    with open_library(library) as lib:
        failures = lib.files.failures()
    if as_json:
        emit([failure_json(f) for f in failures])
    else:
        for failure in failures:
            echo(failure.reason)
    if any(f.kind not in SKIPPED for f in failures):
        raise typer.Exit(SOME_FAILED)


def list_missing(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    forget_all: Annotated[
        bool, typer.Option("--forget", help="Remove these songs, with their plays, tags and playlist entries.")
    ] = False,
) -> None:
    """A missing song returns with its plays and playlists when its file is found again."""
    with open_library(library) as lib:
        songs = lib.missing_songs()
        if forget_all:
            lib.files.forget_songs(song.id for song in songs)
    if as_json:
        emit([song_json(song) for song in songs])
        return
    for song in songs:
        echo(f"{song.id}  {song.label}  {song.path}")
    if forget_all:
        typer.echo(f"{count(len(songs), 'song')} removed.")


def forget(
    folder: Annotated[
        Path, typer.Argument(help="A folder in the library, as listed by `musicsim info`.", metavar="FOLDER")
    ],
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    with open_library(library) as lib:
        root = absolute(folder)
        if root not in lib.files.roots():
            raise NotFoundError(f"{root} is not a folder of this library. `musicsim info` lists its folders.")
        n_songs = lib.files.forget_root(root)
    if as_json:
        emit({"folder": str(root), "forgotten": n_songs})
    else:
        typer.echo(f"{count(n_songs, 'song')} removed.")
