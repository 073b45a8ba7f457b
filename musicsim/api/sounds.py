"""Sounds from outside the library over HTTP: sent once, then seeds of queues, and explained like songs."""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from musicsim.api.bodies import TextSafeJSON
from musicsim.api.parameters import LibraryQuery, ModelQuery
from musicsim.api.responses import Refusal
from musicsim.api.sound_files import SOUND_BODY, UPLOAD_NAME, analyze_file, find_place, receive_file, take_slot
from musicsim.api.why import ExamplesQuery, OtherQuery, PlaceQuery, answer_why
from musicsim.explorer import Example, Snapshot, open_library, snapshot_under
from musicsim.explorer.refresh.map_layout import place_on_map
from musicsim.explorer.search.sent_sounds import SENT_SOUNDS, name_sound
from musicsim.explorer.search.uploads import MAX_MINUTES, MINUTES
from musicsim.explorer.snapshot.map_encoding import to_unit
from musicsim.library import content_hash
from musicsim.public import refuse_visitors, visitor_may

_MAX_NAME, _MAX_TICKET = 300, 64

_Name = Annotated[str, Query(max_length=_MAX_NAME, description="name of the sound in messages")]
router = APIRouter()


def find_sound(snapshot: Snapshot, sound: str, name: str = UPLOAD_NAME) -> Example:
    """Return a sound that was sent before, as an example."""
    sent = SENT_SOUNDS.find(snapshot, sound)
    if sent is None:
        raise Refusal(410, "the sound is not in memory anymore: send the sound again.")
    return sent.example(snapshot, name)


@router.post("/sounds", response_description="a sound", responses={413: {}, 503: {}}, openapi_extra=SOUND_BODY)
@visitor_may
async def send_sound(
    request: Request,
    library: LibraryQuery = None,
    model: ModelQuery = None,
    name: _Name = UPLOAD_NAME,
    whole: Annotated[bool, Query(description="whether to analyze more than the first 20 minutes")] = False,
    ticket: Annotated[
        str, Query(max_length=_MAX_TICKET, description="random text by which `GET /api/sounds/line` finds the file")
    ] = "",
) -> Response:
    """Analyze the audio file in the body, so that `sound` of `POST /api/queue` can refer to it.

    The body has the type and the limits of `POST /api/similar`. The server keeps the analyzed sounds that were used
    last, not their files; everyone who sends the same file gets the same `sound`. A request for a sound that was
    dropped has the status 410: send the file again. Visitors to a public demonstration cannot use `whole`.
    """
    if whole:
        refuse_visitors()
    minutes = MAX_MINUTES if whole else MINUTES
    async with receive_file(request, library) as (opened, file):
        with take_slot():
            snapshot = await run_in_threadpool(snapshot_under, opened, model)
            digest = await run_in_threadpool(content_hash, file)
            sound = name_sound(digest, minutes)
            sent = await run_in_threadpool(SENT_SOUNDS.find, snapshot, sound)
            if sent is None:
                analyzed = await analyze_file(request, snapshot, file, minutes, ticket)
                sent = await run_in_threadpool(SENT_SOUNDS.keep, snapshot, sound, digest, analyzed)
            found = sent

    def render() -> Response:
        return TextSafeJSON({"sound": sound} | _render_example(snapshot, found.example(snapshot, name)))

    return await run_in_threadpool(render)


@router.get("/sounds/line", response_description="an object with `n_ahead`, a number or null")
@visitor_may
def place_in_line(
    ticket: Annotated[str, Query(max_length=_MAX_TICKET, description="`ticket` of `POST /api/sounds`")],
) -> dict[str, int | None]:
    """Return the number of files that are analyzed before a file; null if the file is unknown, arriving or done."""
    return {"n_ahead": find_place(ticket)}


@router.get(
    "/sounds/{sound}/why",
    response_description=(
        "an explanation; the first of its `songs` is the sound, whose `id` is 0 if it is not in the library, and which "
        "also has `peaks`"
    ),
    responses={410: {}},
)
@visitor_may
def why_sound(
    sound: Annotated[str, Path(description="`sound` of the answer of `POST /api/sounds`")],
    other: OtherQuery,
    examples: ExamplesQuery,
    example: PlaceQuery = None,
    library: LibraryQuery = None,
    model: ModelQuery = None,
    name: _Name = UPLOAD_NAME,
) -> Response:
    """Explain the similarity of a sound that was sent and a song, like `GET /api/songs/{song_id}/why`."""
    snapshot = snapshot_under(open_library(library), model)
    return TextSafeJSON(answer_why(snapshot, find_sound(snapshot, sound, name), other, examples, example))


def _render_example(snapshot: Snapshot, example: Example) -> dict[str, Any]:
    place = place_on_map(snapshot, example.vector)
    is_placed = bool(np.isfinite(place).all())
    return {
        "duration_s": example.duration_s,
        "notes": list(example.notes),
        "is_cut": example.is_cut,
        "song_id": example.song_id,
        "place": to_unit(snapshot.map_view.home, place[None, :])[0].round(5).tolist() if is_placed else None,
        "peaks": _round_peaks(example),
    }


def _round_peaks(example: Example) -> list[float]:
    return [round(float(peak), 3) for peak in example.peaks]
