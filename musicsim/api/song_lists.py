"""Songs over HTTP: as tracks for a player, as files to keep, and the artists that are similar to one."""

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Query, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from musicsim.api.bodies import Body, SongId, TextSafeJSON, describe_body, read_body
from musicsim.api.parameters import LibraryQuery, ModelQuery, SongPath
from musicsim.explorer import find_similar_artists, open_library, render_song, snapshot_under, take_snapshot
from musicsim.explorer.playlists.tracks import make_tracks, render_track
from musicsim.explorer.rendering import list_columns
from musicsim.library import PLAYLIST_MIME, as_csv, m3u8
from musicsim.public import visitor_may

MAX_TRACKS, MAX_MARKED, _MAX_ARTISTS = 2_000, 20_000, 20
_FILE_NAME = "selection"


class TracksBody(Body):
    """Songs for a player."""

    songs: list[SongId] = Field(max_length=MAX_TRACKS, description="Ids of songs, in order.")


class MarkedBody(Body):
    """Songs that were marked, for example on the map."""

    songs: list[SongId] = Field(max_length=MAX_MARKED, description="Ids of songs, in order.")


_MarkedSongs = Annotated[MarkedBody, Depends(read_body(MarkedBody))]
router = APIRouter()


@router.post(
    "/tracks",
    response_description="an object with `tracks`, a list of tracks",
    responses={413: {}, 415: {}},
    openapi_extra=describe_body(TracksBody),
)
@visitor_may
async def tracks(body: Annotated[TracksBody, Depends(read_body(TracksBody))], library: LibraryQuery = None) -> Response:
    """Return songs as a player needs them, in the given order; ids that the library does not know are left out."""

    def render() -> Response:
        opened = open_library(library)
        found = make_tracks(opened, opened.songs_in_order(body.songs))
        return TextSafeJSON({"tracks": [render_track(track) for track in found]})

    return await run_in_threadpool(render)


@router.get(
    "/songs/{song_id}/artists", response_description="a list of objects with `name` and `songs`, a list of songs"
)
@visitor_may
def similar_artists(
    song_id: SongPath,
    library: LibraryQuery = None,
    model: ModelQuery = None,
    limit: Annotated[int, Query(ge=1, le=_MAX_ARTISTS, description="maximum number of artists")] = 5,
) -> Response:
    """List the artists with the songs nearest to a song, most similar first, each with its nearest songs."""
    artists = find_similar_artists(snapshot_under(open_library(library), model), song_id, limit)
    return TextSafeJSON(
        [{"name": name, "songs": [render_song(hit.song) for hit in hits]} for name, hits in artists.items()]
    )


@router.post(
    "/songs/table",
    response_description="a CSV file",
    responses={413: {}, 415: {}},
    openapi_extra=describe_body(MarkedBody),
)
@visitor_may
async def table(body: _MarkedSongs, library: LibraryQuery = None) -> Response:
    """Return a table of songs as a CSV file; songs that cannot be compared are left out."""

    def write() -> bytes:
        columns = list_columns(take_snapshot(open_library(library)), body.songs)
        return as_csv(list(columns), zip(*columns.values(), strict=True))

    return _as_file(await run_in_threadpool(write), "text/csv", "csv")


@router.post(
    "/songs/file",
    response_description="an M3U8 file",
    responses={413: {}, 415: {}},
    openapi_extra=describe_body(MarkedBody),
)
@visitor_may
async def playlist_file(body: _MarkedSongs, library: LibraryQuery = None) -> Response:
    """Return songs as an M3U8 file for other players; songs that are missing are left out."""

    def write() -> bytes:
        try:
            return m3u8(_FILE_NAME.capitalize(), take_snapshot(open_library(library)).songs_by_id(body.songs))
        except ValueError as error:
            raise HTTPException(422, str(error)) from error

    return _as_file(await run_in_threadpool(write), PLAYLIST_MIME["m3u8"], "m3u8")


def _as_file(data: bytes, kind: str, suffix: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{_FILE_NAME}.{suffix}"', "Cache-Control": "no-store"}
    return Response(data, headers=headers, media_type=kind)
