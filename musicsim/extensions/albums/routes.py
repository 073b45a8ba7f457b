"""Requests about albums over HTTP."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query

from musicsim.api import LibraryQuery, ModelQuery, read_query
from musicsim.explorer import open_library, render_song, snapshot_under, take_snapshot
from musicsim.extensions.albums.catalogue import find_album, find_albums, songs_of
from musicsim.extensions.albums.movements import keep_together
from musicsim.extensions.albums.rendering import render_album, render_similar
from musicsim.extensions.albums.request import AlbumListRequest, AlbumPlaylistRequest, SimilarAlbumsRequest
from musicsim.extensions.albums.similar import find_similar_albums, walk_albums

_SongId = Annotated[int, Query(ge=0, lt=2**63)]
_AlbumPath = Annotated[int, Path(description="id of the album")]
router = APIRouter()


@router.get("/albums", response_description="a list of albums")
def list_albums(
    request: Annotated[AlbumListRequest, Depends(read_query(AlbumListRequest))], library: LibraryQuery = None
) -> list[dict[str, Any]]:
    """List the albums of a library."""
    return [render_album(album) for album in find_albums(take_snapshot(open_library(library)), request)]


@router.get("/albums/movements", response_description="a list of songs in order")
def keep_movements(
    song: Annotated[list[_SongId], Query(description="ids of the songs of a playlist, in order", max_length=1000)],
    library: LibraryQuery = None,
) -> list[dict[str, Any]]:
    """Keep movements together in a playlist: the whole work replaces its first movement."""
    opened = open_library(library)
    ids, _ = keep_together(take_snapshot(opened), song)
    return [render_song(one) for one in opened.songs_in_order(ids)]


@router.get("/albums/{album_id}/similar", response_description="a list of albums, each with `similarity`, from 0 to 1")
def list_similar(
    album_id: _AlbumPath,
    request: Annotated[SimilarAlbumsRequest, Depends(read_query(SimilarAlbumsRequest))],
    library: LibraryQuery = None,
    model: ModelQuery = None,
) -> list[dict[str, Any]]:
    """Find the albums that sound most like an album."""
    snapshot = snapshot_under(open_library(library), model)
    return [render_similar(one) for one in find_similar_albums(snapshot, find_album(snapshot, album_id), request)]


@router.get(
    "/albums/{album_id}/playlist",
    response_description=(
        "a list of albums in order, each with its `similarity` to the album before it, and `songs`, a list of songs in "
        "track order"
    ),
)
def generate_playlist(
    album_id: _AlbumPath,
    request: Annotated[AlbumPlaylistRequest, Depends(read_query(AlbumPlaylistRequest))],
    library: LibraryQuery = None,
    model: ModelQuery = None,
) -> list[dict[str, Any]]:
    """Generate a playlist of whole albums: an album, then the most similar one, and so on."""
    snapshot = snapshot_under(open_library(library), model)
    steps = walk_albums(snapshot, find_album(snapshot, album_id), request)
    return [
        render_similar(step) | {"songs": [render_song(song) for song in songs_of(snapshot, step.album)]}
        for step in steps
    ]
