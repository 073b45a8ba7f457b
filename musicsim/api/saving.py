"""Playlists, tags and sound files that the owner saves over HTTP."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from musicsim.api.bodies import Body, SongId, describe_body, read_body
from musicsim.api.parameters import LibraryQuery
from musicsim.api.song_lists import MAX_MARKED
from musicsim.api.sound_files import SOUND_BODY, receive_file
from musicsim.explorer import jobs, open_library
from musicsim.explorer.playlists.draft import MAX_NAME, draft_queue, propose_free_name, save_new_draft
from musicsim.explorer.refresh.add_music import keep_upload
from musicsim.explorer.search.feedback import check_songs
from musicsim.library import Library

_MAX_SONGS = 5_000
_MAX_REASON = 500
_MAX_TAG = 60
_MAX_FILE_NAME = 300
_MAX_START = 500


class PlaylistBody(Body):
    """A playlist to save."""

    name: str = Field(max_length=MAX_NAME, description="Name. If a playlist has it, a number is added.")
    songs: list[SongId] = Field(min_length=1, max_length=_MAX_SONGS, description="Ids of songs, in order.")
    reasons: list[Annotated[str, Field(max_length=_MAX_REASON)]] = Field(
        [], max_length=_MAX_SONGS, description="Why each song follows the one before it; empty texts where nothing is "
        "known. Leave it out, or give one text per song.",
    )  # fmt: skip
    pins: list[SongId] = Field(
        [], max_length=_MAX_SONGS, description="Ids of songs that stay in place if the playlist is generated again."
    )


class TagBody(Body):
    """A tag for songs."""

    tag: str = Field(max_length=_MAX_TAG, description="Tag.")
    songs: list[SongId] = Field(min_length=1, max_length=MAX_MARKED, description="Ids of songs.")


router = APIRouter()


@router.get("/playlists/name", response_description="an object with `name`")
def propose_name(
    start: Annotated[str, Query(max_length=_MAX_START, description="title of the song that a queue starts from")],
    library: LibraryQuery = None,
) -> dict[str, Any]:
    """Propose a name for a playlist that no other playlist has."""
    return {"name": propose_free_name(open_library(library), f"From {start}")}


@router.post(
    "/playlists",
    response_description="an object with `name`, `id` and `n_songs`",
    status_code=201,
    responses={413: {}, 415: {}},
    openapi_extra=describe_body(PlaylistBody),
)
async def save_playlist(
    body: Annotated[PlaylistBody, Depends(read_body(PlaylistBody))], library: LibraryQuery = None
) -> dict[str, Any]:
    """Save a queue as a playlist, without replacing another."""
    return await run_in_threadpool(lambda: _save_playlist(open_library(library), body))


def _save_playlist(library: Library, body: PlaylistBody) -> dict[str, Any]:
    if body.reasons and len(body.reasons) != len(body.songs):
        raise HTTPException(422, "reasons: give one text per song.")
    check_songs(library, body.songs)
    draft = draft_queue(body.songs, body.reasons, body.pins)
    name, saved = save_new_draft(library, draft, _trim(body.name, "name"))
    return {"name": name, "id": saved.saved_id, "n_songs": len(saved.song_ids)}


@router.post(
    "/tags",
    response_description="an object with `tag`, and `n_songs`, the number of songs",
    responses={413: {}, 415: {}},
    openapi_extra=describe_body(TagBody),
)
async def add_tag(
    body: Annotated[TagBody, Depends(read_body(TagBody))], library: LibraryQuery = None
) -> dict[str, Any]:
    """Add a tag to songs."""
    return await run_in_threadpool(lambda: _add_tag(open_library(library), body))


def _add_tag(library: Library, body: TagBody) -> dict[str, Any]:
    tag, song_ids = _trim(body.tag, "tag"), list(dict.fromkeys(body.songs))
    check_songs(library, song_ids)
    library.add_tags([{"song_id": song_id, "tag": tag, "weight": 1.0} for song_id in song_ids])
    return {"tag": tag, "n_songs": len(song_ids)}


@router.post(
    "/songs",
    response_description="an object with `job`, the id of the job",
    status_code=202,
    responses={413: {}},
    openapi_extra=SOUND_BODY,
)
async def add_song(
    request: Request,
    name: Annotated[str, Query(min_length=1, max_length=_MAX_FILE_NAME, description="name of the file")],
    library: LibraryQuery = None,
) -> dict[str, Any]:
    """Keep the audio file in the body in the library's folder, and start a job that adds it; see `/jobs/{job}`.

    The body has the type and the limits of `POST /api/similar`.
    """
    async with receive_file(request, library) as (opened, file):

        def add() -> dict[str, Any]:
            path = keep_upload(opened, name, file)
            return {"job": jobs.start(opened, "add", {"paths": [str(path)]})}

        return await run_in_threadpool(add)


def _trim(text: str, field: str) -> str:
    trimmed = " ".join(text.split())
    if not trimmed:
        raise HTTPException(422, f"{field}: give at least one letter.")
    return trimmed
