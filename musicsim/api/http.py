"""The HTTP interface for other programs, documented at ``/api/docs``.

The hook ``http_router`` is a ``fastapi.APIRouter`` with more routes. Only the owner may use them, except endpoints
marked with :func:`musicsim.public.visitor_may`.
"""

import os
import pathlib
import threading
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Path, Query, Request
from fastapi.responses import JSONResponse, Response
from fastapi_offline import FastAPIOffline
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from musicsim import __version__
from musicsim.api import find, queue, thumbs, why
from musicsim.api.budgets import address_of
from musicsim.api.parameters import ModelQuery, read_query
from musicsim.api.responses import filter_routes, status_of, wait_for
from musicsim.errors import LibraryError, MusicsimError
from musicsim.explorer import jobs
from musicsim.explorer.libraries import default_folder, library_folders, open_library
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.playlists.shared_walk import share_walk
from musicsim.explorer.refresh.model_text import name_for
from musicsim.explorer.rendering import render_fields, render_model, render_result, render_song, render_steps
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.requests.search import MAX_RESULTS, SearchRequest
from musicsim.explorer.requests.training import TrainingRequest
from musicsim.explorer.search.query import Hit, make_example
from musicsim.explorer.search.requested import find_requested
from musicsim.explorer.search.uploads import MAX_MINUTES, MINUTES, decode_upload, max_mb
from musicsim.explorer.snapshot.snapshot import snapshot_under, take_snapshot
from musicsim.hooks import load_hooks
from musicsim.library.disk.scratch import scratch_of
from musicsim.library.scan.files import content_hash
from musicsim.public import is_public, safe_message, visitor_may

# Forms and simple requests from other sites cannot have these types: browsers send a preflight request first, which
# the app rejects.
_AUDIO_TYPES = ("audio/", "video/", "application/octet-stream", "application/ogg")
_MAX_UPLOADS = 32  # uploads that are waiting or being processed
_RETRY_AFTER_S = 15
_MAX_OFFSET = 10_000_000
_SOUND_BODY = {
    "required": True,
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
}
_UPLOAD_NAME = "the uploaded file"  # name of an upload in messages
_MAX_UNWRITTEN = 1 << 20  # bytes; chunks are 64 kB, and a thread call per chunk would take longer than writing it


def _render_results(hits: list[Hit]) -> list[dict[str, Any]]:
    return [render_result(hit.song, rank, hit.similarity, hit.reason) for rank, hit in enumerate(hits, 1)]


_Search = Annotated[SearchRequest, Depends(read_query(SearchRequest))]
router = APIRouter()


@router.get("/libraries")
@visitor_may
def libraries() -> list[str]:
    """List the names of the libraries, with the default library first."""
    return [folder.name for folder in library_folders()]


@router.get("/models")
@visitor_may
def models(library: str | None = None) -> list[dict[str, Any]]:
    """List the models of a library, with their kinds and their scores on held-out artists."""
    opened = open_library(library)
    return [
        render_model(record, load_report(opened.models.path(record.id)))
        | ({} if is_public() else {"settings": record.settings})
        for record in opened.models.all()
    ]


@router.post("/models", status_code=202)
def train(
    request: Annotated[TrainingRequest, Depends(read_query(TrainingRequest))], library: str | None = None
) -> dict[str, Any]:
    """Start a training job. The response contains the model's name and the job's id; see `/jobs/{job}` for progress."""
    opened = open_library(library)
    name = name_for(opened, request.supervision, request.name)
    return {"job": jobs.start(opened, "train", request.job_arguments(name)), "name": name}


@router.get("/jobs/{job_id}")
def job(job_id: Annotated[int, Path(ge=0, lt=2**63)], library: str | None = None) -> dict[str, Any]:
    """Return the progress and outcome of a job."""
    opened = open_library(library)
    jobs.current(opened)  # updates the state of a job whose process has died
    fields = ("id", "kind", "state", "message", "done", "total", "seconds_left")
    return render_fields(opened.jobs.get(job_id), *fields)


@router.get("/songs")
@visitor_may
def songs(
    library: str | None = None,
    search: str = "",
    limit: Annotated[int, Query(ge=1, le=MAX_RESULTS)] = 50,
    offset: Annotated[int, Query(ge=0, le=_MAX_OFFSET, description="number of songs to skip")] = 0,
) -> list[dict[str, Any]]:
    """List songs whose title or artist contains `search`; songs whose title begins with it come first.

    To list all songs, add `limit` to `offset` until a response has fewer songs.
    """
    return [render_song(song) for song in take_snapshot(open_library(library)).songs_with(search, limit, offset)]


@router.get("/songs/{song_id}/similar")
@visitor_may
def similar(
    song_id: int, search: _Search, library: str | None = None, model: ModelQuery = None
) -> list[dict[str, Any]]:
    """Find the songs that sound most like a song in the library; `like` and `unlike` adjust the query."""
    snapshot = snapshot_under(open_library(library), model)
    return _render_results(find_requested(snapshot, song_id, search))


@router.get("/similar")
@visitor_may
def similar_to_several(search: _Search, library: str | None = None, model: ModelQuery = None) -> list[dict[str, Any]]:
    """Find songs that are similar to several songs (repeat `like`) but not to others (`unlike`).

    With `words` alone, the results are the songs that match the words, without similarities.
    """
    if not search.like and not search.words:
        raise HTTPException(422, "give songs with `like`, or a description with `words`.")
    return _render_results(find_requested(snapshot_under(open_library(library), model), None, search))


class _Refusal(HTTPException):
    """A refused upload; its response has an `error` instead of a `detail`."""


upload_slots = threading.BoundedSemaphore(_MAX_UPLOADS)
"""Slots for uploads that are waiting or being processed."""


@router.post("/similar", responses={413: {}, 503: {}}, openapi_extra={"requestBody": _SOUND_BODY})
@visitor_may
async def similar_to_file(
    request: Request,
    response: Response,
    search: _Search,
    library: str | None = None,
    model: ModelQuery = None,
    minutes: Annotated[
        float, Query(gt=0, le=MAX_MINUTES, description="number of minutes to analyze, from the start of the file")
    ] = MINUTES,
) -> list[dict[str, Any]]:
    """Find the songs most similar to the audio file in the body, sent as `application/octet-stream` or its own type.

    The maximum size is 200 MB, or 20 MB in a public demonstration. The `Musicsim-Notes` header contains notes about the
    file, for example, that only its first minutes were analyzed. Files are processed in order of arrival. If too many
    are waiting, the status is 503, with a `Retry-After` header.
    """
    media_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if not media_type.startswith(_AUDIO_TYPES):
        raise HTTPException(
            415,
            "the body must be an audio file: send it with 'Content-Type: application/octet-stream' or its own type.",
        )
    opened = await run_in_threadpool(open_library, library)
    with (await run_in_threadpool(scratch_of, opened.folder)).folder() as folder:
        file = folder / "upload"
        await _write_body(request, file)
        # only files that have arrived completely take a slot, so that slow uploads do not block others
        if not upload_slots.acquire(blocking=False):
            message = f"{_MAX_UPLOADS} files are already waiting: try again later."
            raise _Refusal(503, message, {"Retry-After": str(_RETRY_AFTER_S)})
        try:
            snapshot = await run_in_threadpool(snapshot_under, opened, model)
            decoding = await run_in_threadpool(
                decode_upload, snapshot, file, _UPLOAD_NAME, minutes, visitor=address_of(request.scope)
            )
            try:
                sound = await wait_for(decoding, request)
                digest = await run_in_threadpool(content_hash, file)
            finally:
                decoding.drop()
        finally:
            upload_slots.release()

    def find() -> list[dict[str, Any]]:
        example = make_example(snapshot, sound, digest, _UPLOAD_NAME)
        return _render_results(find_requested(snapshot, example, search))

    results = await run_in_threadpool(find)
    if sound.notes:
        response.headers["Musicsim-Notes"] = "; ".join(sound.notes)
    return results


async def _write_body(request: Request, path: pathlib.Path) -> None:
    max_bytes = max_mb() << 20
    too_large = _Refusal(413, f"the file is larger than {max_mb()} MB: send a part of it.")
    if int(request.headers.get("Content-Length", 0)) > max_bytes:
        raise too_large
    n_bytes, unwritten = 0, bytearray()
    try:
        with path.open("wb") as file:
            async for chunk in request.stream():
                n_bytes += len(chunk)
                if n_bytes > max_bytes:
                    raise too_large
                unwritten += chunk
                if len(unwritten) >= _MAX_UNWRITTEN:
                    await run_in_threadpool(file.write, unwritten)
                    unwritten = bytearray()
            await run_in_threadpool(file.write, unwritten)
    except OSError as error:
        raise LibraryError(f"the file cannot be stored for analysis ({error.strerror}). Free some space.") from error


@router.get("/playlist")
@visitor_may
def playlist(
    request: Annotated[PlaylistRequest, Depends(read_query(PlaylistRequest))],
    library: str | None = None,
    model: ModelQuery = None,
) -> list[dict[str, Any]]:
    """Generate a playlist through `through` and near `like`, with a reason for each transition (null if unknown).

    `probability` and `without` are those of the song with and without its `edge`; `instead` is the id of the song that
    gains most without the edge.
    """
    drawn = share_walk(snapshot_under(open_library(library), model)).generate(request, request.seed, effects=True)
    return render_steps(drawn.songs, drawn.steps_as_json())


async def _show_refusal(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, _Refusal)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def _show_error(request: Request, error: Exception) -> JSONResponse:
    """Return the message of a MusicsimError, without this machine's paths."""
    assert isinstance(error, MusicsimError)
    message = safe_message(error).replace(f"{default_folder().parent}{os.sep}", "")
    return JSONResponse({"error": message}, status_of(error))


def http_interface() -> FastAPI:
    """Return the FastAPI application to mount at ``/api``."""
    api = FastAPIOffline(title="musicsim", version=__version__, redoc_url=None)
    api.add_exception_handler(MusicsimError, _show_error)
    api.add_exception_handler(_Refusal, _show_refusal)
    api.add_exception_handler(ClientDisconnect, lambda *_: Response(status_code=499))  # for the server's log
    for one in (router, queue.router, find.router, thumbs.router, why.router, *load_hooks("http_router")):
        api.include_router(APIRouter(routes=filter_routes(one.routes)))
    return api
