"""The owner's thumbs over HTTP: on the songs of a queue, and on songs in the player."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Query
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from musicsim.api.bodies import Body, SongId, describe_body, read_body
from musicsim.api.parameters import LibraryQuery
from musicsim.explorer import open_library
from musicsim.explorer.search.feedback import thumbs_by_id
from musicsim.library import Library

_MAX_THUMBS = 1_000


class ThumbsBody(Body):
    """Thumbs to save."""

    song: SongId | None = Field(None, description="Id of the song that the queue starts from.")
    queue: dict[SongId, Literal[-1, 1]] | None = Field(
        None, max_length=_MAX_THUMBS, description="1 (fits) or -1 (does not fit), keyed by the id of a song of the "
        "queue. All earlier thumbs of this queue are replaced.",
    )  # fmt: skip
    player: dict[SongId, Literal[-1, 0, 1]] = Field(
        {}, max_length=_MAX_THUMBS, description="1 (liked), -1 (disliked) or 0 (deletes the thumb), keyed by song id."
    )


router = APIRouter()


@router.get(
    "/thumbs",
    response_description=(
        "an object with `queue` and `player`, each with 1 or -1 keyed by song id; `queue` is null without `song`"
    ),
)
def thumbs(
    library: LibraryQuery = None,
    song: Annotated[int | None, Query(ge=1, lt=2**63, description="id of the song that a queue starts from")] = None,
) -> dict[str, Any]:
    """Return the saved thumbs: on the songs of the queue from `song`, and on songs in the player."""
    return _saved(open_library(library), song)


@router.post(
    "/thumbs",
    response_description="an object as in `GET /api/thumbs`",
    responses={413: {}, 415: {}},
    openapi_extra=describe_body(ThumbsBody),
)
async def save_thumbs(
    body: Annotated[ThumbsBody, Depends(read_body(ThumbsBody))], library: LibraryQuery = None
) -> dict[str, Any]:
    """Save thumbs on the songs of a queue, and on songs in the player; either all or none are saved."""
    return await run_in_threadpool(lambda: _save(open_library(library), body))


def _save(library: Library, body: ThumbsBody) -> dict[str, Any]:
    if (body.song is None) != (body.queue is None):
        raise HTTPException(422, "give both `song` and `queue`, or neither.")
    named = {*body.player, *(body.queue or {}), *([] if body.song is None else [body.song])}
    thumbs_by_id(library, named, ())  # names a song that does not exist
    try:
        library.save_thumbs(body.player, body.song, body.queue)
    except ValueError as error:
        raise HTTPException(422, f"queue: {error}") from error
    return _saved(library, body.song)


def _saved(library: Library, song_id: int | None) -> dict[str, Any]:
    queue = None if song_id is None else library.judgments.ratings_of(library.song(song_id).id)
    return {"queue": queue, "player": library.feedback()}
