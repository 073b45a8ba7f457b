"""Mixing over HTTP: the transition from a song to the next one, and an order in which neighbors fit."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from musicsim.api.bodies import Body, SongId, describe_body, read_body
from musicsim.api.parameters import LibraryQuery, SongPath
from musicsim.api.responses import wait_for
from musicsim.errors import AudioError
from musicsim.explorer import open_library, order_for_mixing
from musicsim.explorer.mixing.ordering import MAX_ORDERED
from musicsim.explorer.mixing.song_ends import EndsOfSongs, SongEnds
from musicsim.explorer.mixing.transitions import Transition, plan_transition
from musicsim.library import Library, Song
from musicsim.library.processes.decoding import Decoding, decoder
from musicsim.public import visitor_may

_ends = EndsOfSongs(decoder())

NextQuery = Annotated[int, Query(description="id of the next song")]


class OrderBody(Body):
    """Songs to order."""

    songs: list[SongId] = Field(max_length=MAX_ORDERED, description="Ids of songs; the first one stays first.")


router = APIRouter()


@router.get(
    "/songs/{song_id}/transition",
    response_description="an object with `tempos` (beats per minute), `keys`, `reason` (empty for a fade on the beat), "
    "`n_beats`, `leave_s`, `enter_s` and `duration_s` (seconds), and `rates` (speeds during the fade)",
)
@visitor_may
async def transition(
    song_id: SongPath, next_id: NextQuery, request: Request, library: LibraryQuery = None
) -> dict[str, Any]:
    """Return where to leave a song and enter the next one, so that their beats coincide during the fade.

    If this is not possible, `reason` says why. Both songs are decoded, which takes some seconds.
    """

    def find_songs() -> tuple[Library, Song, Song]:
        opened = open_library(library)
        return opened, opened.song(song_id), opened.song(next_id)

    opened, first, second = await run_in_threadpool(find_songs)
    try:
        tasks = [await run_in_threadpool(_ends.ends_of, opened, song) for song in (first, second)]
        leaving, arriving = [await _finish(task, request) for task in tasks]
    except (AudioError, OSError):
        keys = first.key_words, second.key_words
        return asdict(Transition((first.tempo, second.tempo), keys, "a file is missing or cannot be decoded"))
    return asdict(plan_transition(first, second, (leaving, arriving)))


async def _finish(ends: SongEnds | Decoding[SongEnds], request: Request) -> SongEnds:
    return await wait_for(ends, request) if isinstance(ends, Decoding) else ends


@router.post(
    "/songs/order",
    response_description="an object with `songs`, a list of ids",
    responses={413: {}, 415: {}},
    openapi_extra=describe_body(OrderBody),
)
@visitor_may
async def order(
    body: Annotated[OrderBody, Depends(read_body(OrderBody))], library: LibraryQuery = None
) -> dict[str, list[int]]:
    """Order songs so that keys and tempos of neighbors fit; ids that the library does not know are left out."""

    def find_order() -> list[int]:
        return [song.id for song in order_for_mixing(open_library(library).songs_in_order(body.songs))]

    return {"songs": await run_in_threadpool(find_order)}
