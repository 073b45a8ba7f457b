"""The interface for other programs; its description is at ``/api/docs``."""

import os
import pathlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Path, Query, Request
from fastapi.responses import JSONResponse, Response
from fastapi_offline import FastAPIOffline
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from musicsim import __version__
from musicsim.api.budgets import address_of
from musicsim.api.offered import offered
from musicsim.api.options import asked_for
from musicsim.api.waiting import outcome
from musicsim.errors import AudioError, LibraryError, MusicsimError, NotFoundError, OwnerOnlyError
from musicsim.explorer import jobs
from musicsim.explorer.libraries import default_folder, library_folders, open_library
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.refresh.model_text import name_for
from musicsim.explorer.rendering import render_fields, render_model, render_result, render_song
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.requests.search import MAX_RESULTS, SearchRequest
from musicsim.explorer.requests.training import TrainingRequest
from musicsim.explorer.search.query import Hit, make_example
from musicsim.explorer.search.requested import find_requested
from musicsim.explorer.search.uploads import MAX_MINUTES, MINUTES, decode_upload, max_mb
from musicsim.explorer.snapshot.snapshot import snapshot_under, take_snapshot
from musicsim.library.disk.scratch import scratch_of
from musicsim.library.scan.files import content_hash
from musicsim.public import is_public, safe_message, visitor_may

# None of these can a form or a plain request of another site's page have: its browser asks us first, and is refused.
_SOUND_TYPES = ("audio/", "video/", "application/octet-stream", "application/ogg")
_MAX_UPLOADS = 32  # that wait or are at work at once
_RETRY_AFTER_S = 15
_SENT = "the file that was sent"  # in messages
_WRITTEN_AT_ONCE = 1 << 20  # chunks are of 64 kB: a thread for each would take longer than the disk
_Count = Annotated[int, Query(ge=1, le=MAX_RESULTS)]
_Minutes = Annotated[float, Query(gt=0, le=MAX_MINUTES, description="of the beginning that are analysed")]
_Model = Annotated[str | None, Query(description="name of a model; the one in use by default")]


def _render_results(hits: list[Hit]) -> list[dict[str, Any]]:
    return [render_song(hit.song) | render_result(rank, hit.similarity, hit.reason) for rank, hit in enumerate(hits, 1)]


router = APIRouter()


@router.get("/libraries")
@visitor_may
def libraries() -> list[str]:
    """Names of the libraries, the default one first."""
    return [folder.name for folder in library_folders()]


@router.get("/models")
@visitor_may
def models(library: str | None = None) -> list[dict[str, Any]]:
    """The models of a library, with their kinds and their results on held-out artists."""
    opened = open_library(library)
    return [
        render_model(record, load_report(opened.models.path(record.id)))
        | ({} if is_public() else {"settings": record.settings})
        for record in opened.models.all()
    ]


@router.post("/models", status_code=202)
def train(
    request: Annotated[TrainingRequest, Depends(asked_for(TrainingRequest))], library: str | None = None
) -> dict[str, Any]:
    """Start a training, which makes a model of the name in the answer; `/jobs/{job}` says how far it is."""
    opened = open_library(library)
    name = name_for(opened, request.supervision, request.name)
    return {"job": jobs.start(opened, "train", request.job_arguments(name)), "name": name}


@router.get("/jobs/{job_id}")
def job(job_id: Annotated[int, Path(ge=0, lt=2**63)], library: str | None = None) -> dict[str, Any]:
    """The progress and the outcome of a job."""
    opened = open_library(library)
    jobs.current(opened)  # notices a process that has gone
    found = opened.jobs.get(job_id)
    return render_fields(found, "id", "kind", "state", "message", "done", "total", "seconds_left")


@router.get("/songs")
@visitor_may
def songs(library: str | None = None, search: str = "", limit: _Count = 50) -> list[dict[str, Any]]:
    """Songs whose title or artist holds the text; those whose title begins with it come first."""
    return [render_song(song) for song in take_snapshot(open_library(library)).songs_with(search, limit)]


@router.get("/songs/{song_id}/similar")
@visitor_may
def similar(
    song_id: int,
    search: Annotated[SearchRequest, Depends(asked_for(SearchRequest))],
    library: str | None = None,
    model: _Model = None,
) -> list[dict[str, Any]]:
    """The songs that sound most like a song of the library; those that fit, or do not, bend what is meant by it."""
    snapshot = snapshot_under(open_library(library), model)
    return _render_results(find_requested(snapshot, song_id, search))


@router.get("/similar")
@visitor_may
def similar_to_several(
    search: Annotated[SearchRequest, Depends(asked_for(SearchRequest))],
    library: str | None = None,
    model: _Model = None,
) -> list[dict[str, Any]]:
    """The songs most like several (`like`, as often as needed), and less like others (`unlike`).

    With `words` alone the songs that fit them, without a similarity.
    """
    if not search.like and not search.words:
        raise HTTPException(422, "say which songs by `like`, or what songs are by `words`.")
    return _render_results(find_requested(snapshot_under(open_library(library), model), None, search))


def _require_sound_type(request: Request) -> None:
    """Refuse a body that does not say that it is a file of sound."""
    media_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if not media_type.startswith(_SOUND_TYPES):
        raise HTTPException(
            415,
            "the body is to be an audio file: send it with 'Content-Type: application/octet-stream' or its own type.",
        )


class _Refusal(Exception):
    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status


_uploads = threading.BoundedSemaphore(_MAX_UPLOADS)


@contextmanager
def _one_of_few() -> Iterator[None]:
    """Be one of the uploads that are taken at once."""
    if not _uploads.acquire(blocking=False):
        raise _Refusal(503, f"{_MAX_UPLOADS} files are waiting already: send yours again later.")
    try:
        yield
    finally:
        _uploads.release()


@router.post("/similar", responses={413: {}, 503: {}})
@visitor_may
async def similar_to_file(
    request: Request,
    response: Response,
    search: Annotated[SearchRequest, Depends(asked_for(SearchRequest))],
    library: str | None = None,
    model: _Model = None,
    minutes: _Minutes = MINUTES,
) -> list[dict[str, Any]]:
    """The songs that sound most like the audio file in the body, sent as `application/octet-stream` or its own type.

    It may have 200 MB, in a public demonstration 20. The header `Musicsim-Notes` has notes about the file, also if it
    is longer than the minutes that were analysed. Files wait in one line; if it is too long, the answer is 503 with
    `Retry-After`.
    """
    _require_sound_type(request)
    opened = await run_in_threadpool(open_library, library)
    with (await run_in_threadpool(scratch_of, opened.folder)).folder() as folder:
        file = await _received(request, folder / "upload")
        with _one_of_few():  # only for files that have arrived: slow senders do not block others
            snapshot = await run_in_threadpool(snapshot_under, opened, model)
            ask = partial(decode_upload, visitor=address_of(request.scope))
            decoding = await run_in_threadpool(ask, snapshot, file, _SENT, minutes)
            try:
                sound = await outcome(decoding, request)
                digest = await run_in_threadpool(content_hash, file)
            finally:
                decoding.drop()

    def answer() -> list[dict[str, Any]]:
        example = make_example(snapshot, sound, digest, _SENT)
        return _render_results(find_requested(snapshot, example, search))

    hits = await run_in_threadpool(answer)
    if sound.notes:
        response.headers["Musicsim-Notes"] = "; ".join(sound.notes)
    return hits


async def _received(request: Request, path: pathlib.Path) -> pathlib.Path:
    """Write the body of a request to a file as it comes."""
    max_bytes = max_mb() << 20
    if int(request.headers.get("Content-Length", 0)) > max_bytes:
        raise _too_large()
    n_bytes, waiting = 0, bytearray()
    try:
        with path.open("wb") as file:
            async for chunk in request.stream():
                n_bytes += len(chunk)
                if n_bytes > max_bytes:
                    raise _too_large()
                waiting += chunk
                if len(waiting) >= _WRITTEN_AT_ONCE:
                    await run_in_threadpool(file.write, waiting)
                    waiting = bytearray()
            await run_in_threadpool(file.write, waiting)
    except OSError as error:
        raise LibraryError(f"the file cannot be kept while it is analysed ({error.strerror}). Make room.") from error
    return path


def _too_large() -> _Refusal:
    return _Refusal(413, f"the file is larger than {max_mb()} MB: send a part of it.")


@router.get("/playlist")
@visitor_may
def playlist(
    request: Annotated[PlaylistRequest, Depends(asked_for(PlaylistRequest))],
    library: str | None = None,
    model: _Model = None,
) -> list[dict[str, Any]]:
    """A playlist with the reason of every transition; `through` passes songs by, `like` stays around them."""
    drawn = Walk(snapshot_under(open_library(library), model)).draw(request, request.seed)
    return [
        render_song(song) | {"reason": edge.reason if edge else None}
        for song, edge in zip(drawn.songs, drawn.edges, strict=True)
    ]


async def _refused(request: Request, error: Exception) -> JSONResponse:
    """An upload that is not taken."""
    assert isinstance(error, _Refusal)
    headers = {"Retry-After": str(_RETRY_AFTER_S)} if error.status == 503 else None
    return JSONResponse({"error": str(error)}, error.status, headers)


async def _gone(request: Request, error: Exception) -> Response:
    """Return the status that logs show for a client that has closed its connection."""
    return Response(status_code=499)


async def _error(request: Request, error: Exception) -> JSONResponse:
    """An error of ours in words, with the status it deserves and without the paths of this machine."""
    kinds = {NotFoundError: 404, AudioError: 422, OwnerOnlyError: 403}
    status = next((status for kind, status in kinds.items() if isinstance(error, kind)), 409)
    words = safe_message(error).replace(f"{default_folder().parent}{os.sep}", "")
    return JSONResponse({"error": words}, status)


def http_interface() -> FastAPI:
    """The FastAPI application that is mounted at ``/api``."""
    api = FastAPIOffline(title="musicsim", version=__version__, redoc_url=None)
    api.add_exception_handler(MusicsimError, _error)
    api.add_exception_handler(_Refusal, _refused)
    api.add_exception_handler(ClientDisconnect, _gone)
    api.include_router(APIRouter(routes=offered(router.routes)))
    return api
