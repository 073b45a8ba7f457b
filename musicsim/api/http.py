"""The HTTP interface for other programs, documented at ``/api/docs``."""

import os
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Path, Query, Request
from fastapi.responses import JSONResponse, Response
from fastapi_offline import FastAPIOffline
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from musicsim import __version__
from musicsim.api import find, maps, mixing, queue, saving, song_lists, sounds, thumbs, why
from musicsim.api.parameters import LibraryQuery, ModelQuery, SongPath, read_query
from musicsim.api.responses import Refusal, filter_routes, status_of
from musicsim.api.sound_files import SOUND_BODY, UPLOAD_NAME, analyze_file, receive_file, take_slot
from musicsim.errors import MusicsimError
from musicsim.explorer import (
    Hit,
    PlaylistRequest,
    SearchRequest,
    default_folder,
    find_requested,
    job_views,
    jobs,
    load_report,
    make_example,
    open_library,
    render_fields,
    render_result,
    render_song,
    share_walk,
    snapshot_under,
    take_snapshot,
)
from musicsim.explorer.libraries import library_folders
from musicsim.explorer.refresh.model_text import name_for
from musicsim.explorer.rendering import render_model, render_steps
from musicsim.explorer.requests.search import MAX_RESULTS
from musicsim.explorer.requests.training import TrainingRequest
from musicsim.explorer.search.uploads import MAX_MINUTES, MINUTES
from musicsim.library import content_hash
from musicsim.public import is_public, safe_message, visitor_may
from musicsim.registry import load_each

_MAX_OFFSET = 10_000_000


def _render_results(hits: list[Hit]) -> list[dict[str, Any]]:
    return [render_result(hit.song, rank, hit.similarity, hit.reason) for rank, hit in enumerate(hits, 1)]


_Search = Annotated[SearchRequest, Depends(read_query(SearchRequest))]
router = APIRouter()


@router.get("/libraries", response_description="a list of names")
@visitor_may
def libraries() -> list[str]:
    """List the names of the libraries, with the default library first."""
    return [folder.name for folder in library_folders()]


@router.get("/models", response_description="a list of models")
@visitor_may
def models(library: LibraryQuery = None) -> list[dict[str, Any]]:
    """List the models of a library, with their kinds and their scores on held-out artists."""
    opened = open_library(library)
    return [
        render_model(record, load_report(opened.models.path(record.id)))
        | ({} if is_public() else {"settings": record.settings})
        for record in opened.models.all()
    ]


@router.post(
    "/models",
    response_description="an object with `job`, the id of the job, and `name`, the name of the model",
    status_code=202,
)
def train(
    request: Annotated[TrainingRequest, Depends(read_query(TrainingRequest))], library: LibraryQuery = None
) -> dict[str, Any]:
    """Start a training job. The response contains the model's name and the job's id; see `/jobs/{job}` for progress."""
    opened = open_library(library)
    name = name_for(opened, request.supervision, request.name)
    return {"job": jobs.start(opened, "train", request.job_arguments(name)), "name": name}


@router.get("/jobs/{job_id}", response_description="a job")
def job(
    job_id: Annotated[int, Path(ge=0, lt=2**63, description="id of the job")], library: LibraryQuery = None
) -> dict[str, Any]:
    """Return the progress and outcome of a job."""
    opened = open_library(library)
    jobs.current(opened)  # updates the state of a job whose process has died
    fields = ("id", "kind", "state", "message", "done", "total", "seconds_left")
    return render_fields(opened.jobs.get(job_id), *fields)


@router.get("/jobs/views/{name}", include_in_schema=False)  # for the app's own pages
def view_jobs(
    name: str,
    response: Response,
    library: LibraryQuery = None,
    job: Annotated[int, Query(ge=0, lt=2**63)] = 0,
    revision: bool = False,
) -> dict[str, Any]:
    """Return what a page shows of a library's jobs."""
    if name not in job_views.VIEWS:
        raise HTTPException(404, f"there is no view {name}.")
    opened = open_library(library)
    response.headers["Cache-Control"] = "no-store"
    return job_views.VIEWS[name](opened, job, opened.revision if revision else None).render()


@router.get("/songs", response_description="a list of songs")
@visitor_may
def songs(
    library: LibraryQuery = None,
    search: Annotated[str, Query(description="part of a title or artist")] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_RESULTS, description="maximum number of songs")] = 50,
    offset: Annotated[int, Query(ge=0, le=_MAX_OFFSET, description="number of songs to skip")] = 0,
) -> list[dict[str, Any]]:
    """List songs whose title or artist contains `search`; songs whose title begins with it come first.

    To list all songs, add `limit` to `offset` until a response has fewer songs.
    """
    return [render_song(song) for song in take_snapshot(open_library(library)).songs_with(search, limit, offset)]


@router.get("/songs/{song_id}/similar", response_description="a list of results, best first")
@visitor_may
def similar(
    song_id: SongPath, search: _Search, library: LibraryQuery = None, model: ModelQuery = None
) -> list[dict[str, Any]]:
    """Find the songs that sound most like a song in the library; `like` and `unlike` adjust the query."""
    snapshot = snapshot_under(open_library(library), model)
    return _render_results(find_requested(snapshot, song_id, search))


@router.get("/similar", response_description="a list of results, best first")
@visitor_may
def similar_to_several(search: _Search, library: LibraryQuery = None, model: ModelQuery = None) -> list[dict[str, Any]]:
    """Find songs that are similar to several songs (repeat `like`) but not to others (`unlike`).

    With `words` alone, the results are the songs that match the words, without similarities.
    """
    if not search.like and not search.words:
        raise HTTPException(422, "give songs with `like`, or a description with `words`.")
    return _render_results(find_requested(snapshot_under(open_library(library), model), None, search))


@router.post(
    "/similar",
    response_description="a list of results, best first",
    responses={413: {}, 503: {}},
    openapi_extra=SOUND_BODY,
)
@visitor_may
async def similar_to_file(
    request: Request,
    response: Response,
    search: _Search,
    library: LibraryQuery = None,
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
    async with receive_file(request, library) as (opened, file):
        with take_slot():
            snapshot = await run_in_threadpool(snapshot_under, opened, model)
            sound = await analyze_file(request, snapshot, file, minutes)
            digest = await run_in_threadpool(content_hash, file)

    def find() -> list[dict[str, Any]]:
        example = make_example(snapshot, sound, digest, UPLOAD_NAME)
        return _render_results(find_requested(snapshot, example, search))

    results = await run_in_threadpool(find)
    if sound.notes:
        response.headers["Musicsim-Notes"] = "; ".join(sound.notes)
    return results


@router.get(
    "/playlist", response_description="a list of songs in order, each with `reason`, which is null if it is not known"
)
@visitor_may
def playlist(
    request: Annotated[PlaylistRequest, Depends(read_query(PlaylistRequest))],
    library: LibraryQuery = None,
    model: ModelQuery = None,
) -> list[dict[str, Any]]:
    """Generate a playlist through `through` and near `like`, with a reason for each transition (null if unknown).

    `probability` and `without` are those of the song with and without its `edge`; `instead` is the id of the song that
    gains most without the edge.
    """
    drawn = share_walk(snapshot_under(open_library(library), model)).generate(request, request.seed, effects=True)
    return render_steps(drawn.songs, drawn.steps_as_json())


async def _show_refusal(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refusal)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def _show_error(request: Request, error: Exception) -> JSONResponse:
    """Return the message of a MusicsimError, without this machine's paths."""
    assert isinstance(error, MusicsimError)
    message = safe_message(error).replace(f"{default_folder().parent}{os.sep}", "")
    return JSONResponse({"error": message}, status_of(error))


def routers() -> list[APIRouter]:
    """Return the routes of the interface, with those of extensions."""
    own = (module.router for module in (queue, find, maps, mixing, song_lists, sounds, saving, thumbs, why))
    return [router, *own, *load_each(lambda extension: extension.http_router)]


def http_interface() -> FastAPI:
    """Return the FastAPI application to mount at ``/api``."""
    api = FastAPIOffline(title="musicsim", version=__version__, redoc_url=None)
    api.add_exception_handler(MusicsimError, _show_error)
    api.add_exception_handler(Refusal, _show_refusal)
    api.add_exception_handler(ClientDisconnect, lambda *_: Response(status_code=499))  # for the server's log
    for one in routers():
        api.include_router(APIRouter(routes=filter_routes(one.routes)))
    return api
