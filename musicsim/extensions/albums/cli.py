"""The command group ``musicsim albums``."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from musicsim.cli import (
    ExportOption,
    JsonOption,
    LibraryOption,
    ModelOption,
    RelativeOption,
    SavedOption,
    SaveOption,
    emit,
    export_playlist,
    load_or_generate,
    open_library,
    save_playlist,
    show,
    song_json,
    take_request,
)
from musicsim.errors import NotFoundError
from musicsim.explorer import PlaylistRequest, snapshot_under, take_snapshot
from musicsim.extensions.albums.catalogue import Album, find_album, find_albums, songs_of
from musicsim.extensions.albums.movements import keep_together
from musicsim.extensions.albums.rendering import render_album, render_similar
from musicsim.extensions.albums.request import AlbumListRequest, AlbumPlaylistRequest, SimilarAlbumsRequest
from musicsim.extensions.albums.similar import SimilarAlbum, find_similar_albums, walk_albums
from musicsim.extensions.albums.works import group_works
from musicsim.library import find_ending
from musicsim.wording import clock, count

_Album = Annotated[
    str, typer.Argument(help="Id of an album, as shown by `musicsim albums list`, or its name.", metavar="ALBUM")
]

_COLUMNS = ("id", "album", "artist", "year", "songs", "length")

group = typer.Typer(no_args_is_help=True)


def _facts(album: Album) -> tuple[Any, ...]:
    return album.id, album.name, album.by, album.year or "", len(album.song_ids), clock(album.duration_s)


def _steps(found: Sequence[SimilarAlbum]) -> list[tuple[Any, ...]]:
    return [(number, *_facts(one.album), f"{one.similarity:.3f}") for number, one in enumerate(found, 1)]


@group.command("list")
@take_request(AlbumListRequest)
def list_command(request: AlbumListRequest, library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """List the albums of the library.

    Examples:
        musicsim albums list
        musicsim albums list --search miles --sort year
    """
    with open_library(library) as lib:
        albums = find_albums(take_snapshot(lib), request)
    if as_json:
        emit([render_album(album) for album in albums])
    if request.search and not albums:
        raise NotFoundError(f"no album matches {request.search!r}.")
    if not as_json:
        show(_COLUMNS, map(_facts, albums), empty="This library has no albums. Add music with `musicsim add FOLDER`.")


@group.command("show")
def show_command(album: _Album, library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """List the songs of an album by work and track.

    Examples:
        musicsim albums show "Kind of Blue"
        musicsim albums show "Kind of Blue" --json
    """
    with open_library(library) as lib:
        snapshot = take_snapshot(lib)
        found = find_album(snapshot, album)
        works = group_works(songs_of(snapshot, found))
    if as_json:
        songs = [{"song": song_json(song), "work": work.title or None} for work in works for song in work.songs]
        emit(render_album(found) | {"songs": songs})
        return
    rows = [
        (song.track or "", song.id, song.title, song.artist or "", work.title, clock(song.duration_s))
        for work in works
        for song in work.songs
    ]
    show(("track", "id", "title", "artist", "work", "length"), rows, title=found.label)


@group.command()
@take_request(SimilarAlbumsRequest)
def similar(
    request: SimilarAlbumsRequest,
    album: _Album,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    model: ModelOption = None,
) -> None:
    """List the albums that sound most like an album.

    Examples:
        musicsim albums similar "Kind of Blue"
        musicsim albums similar "Kind of Blue" -k 5 --per-artist 1
    """
    with open_library(library) as lib:
        snapshot = snapshot_under(lib, model)
        found = find_similar_albums(snapshot, find_album(snapshot, album), request)
    if as_json:
        emit([render_similar(one) for one in found])
    else:
        nothing = "No other album can be compared. Add more music with `musicsim add FOLDER`."
        show(("", *_COLUMNS, "similarity"), _steps(found), empty=nothing)


@group.command()
@take_request(AlbumPlaylistRequest)
def playlist(
    request: AlbumPlaylistRequest,
    album: _Album,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    export: ExportOption = None,
    relative: RelativeOption = False,
    model: ModelOption = None,
) -> None:
    """Generate a playlist of whole albums, each in track order: an album, then the most similar one, and so on.

    Examples:
        musicsim albums playlist "Kind of Blue"
        musicsim albums playlist "Kind of Blue" --albums 3 -o evening.m3u8
    """
    if export:
        find_ending(export)  # raises an error before anything is generated
    with open_library(library) as lib:
        snapshot = snapshot_under(lib, model)
        steps = walk_albums(snapshot, find_album(snapshot, album), request)
        songs = [song for step in steps for song in songs_of(snapshot, step.album)]
    notes = export_playlist(songs, export, is_relative=relative) if export else []
    if as_json:
        file = str(export) if export else None
        emit({"albums": [render_similar(step) for step in steps], "songs": list(map(song_json, songs)), "file": file})
        return
    minutes = sum(song.duration_s for song in songs) / 60
    caption = [f"{count(len(songs), 'song')}, {minutes:.0f} minutes", *notes]
    show(("", *_COLUMNS, "similarity"), _steps(steps), caption=caption)


@group.command()
@take_request(PlaylistRequest)
def movements(
    request: PlaylistRequest,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    saved: SavedOption = None,
    save: SaveOption = None,
    export: ExportOption = None,
    relative: RelativeOption = False,
    model: ModelOption = None,
) -> None:
    """Keep movements together in a generated or saved playlist: the whole work replaces its first movement.

    Examples:
        musicsim albums movements --like 12
        musicsim albums movements --saved Evening -o evening.m3u8
    """
    if export:
        find_ending(export)  # raises an error before anything is generated
    with open_library(library) as lib:
        chosen = load_or_generate(lib, request, saved, model)
        ids, sentence = keep_together(snapshot_under(lib, model), [song.id for song in chosen.songs])
        songs = lib.songs_in_order(ids)
        notes = [sentence, *chosen.notes, *save_playlist(lib, save, songs, chosen.details)]
    if export:
        notes += export_playlist(songs, export, is_relative=relative)
    if as_json:
        emit({"songs": list(map(song_json, songs)), "notes": notes, "file": str(export) if export else None})
        return
    rows = [(number, song.id, song.title, song.artist or "") for number, song in enumerate(songs, 1)]
    show(("", "id", "title", "artist"), rows, caption=notes)
