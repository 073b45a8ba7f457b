"""Sound files in the bodies of requests: received into a temporary file, and analyzed in order of arrival."""

import pathlib
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from weakref import WeakValueDictionary

from fastapi import HTTPException, Request
from starlette.concurrency import run_in_threadpool

from musicsim import audio
from musicsim.api.budgets import address_of
from musicsim.api.responses import Refusal, wait_for
from musicsim.errors import LibraryError
from musicsim.explorer import Snapshot, open_library
from musicsim.explorer.search.uploads import decode_upload, max_mb
from musicsim.library import Library, scratch_of
from musicsim.library.processes.decoding import Decoding

UPLOAD_NAME = "the uploaded file"
"""Name of an upload in messages."""
SOUND_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
"""``openapi_extra`` for a request with a sound file."""

# Forms and simple requests from other sites cannot have these types: browsers send a preflight request first, which
# the app rejects.
_AUDIO_TYPES = ("audio/", "video/", "application/octet-stream", "application/ogg")
_MAX_UPLOADS = 32  # uploads that are waiting or being processed
_RETRY_AFTER_S = 15
_MAX_UNWRITTEN = 1 << 20  # bytes; chunks are 64 kB, and a thread call per chunk would take longer than writing it

upload_slots = threading.BoundedSemaphore(_MAX_UPLOADS)
"""Slots for uploads that are waiting or being processed."""


_in_line: "WeakValueDictionary[str, Decoding[audio.Sound]]" = WeakValueDictionary()  # files that are waiting, by ticket


@asynccontextmanager
async def receive_file(request: Request, library: str | None) -> AsyncIterator[tuple[Library, pathlib.Path]]:
    """Receive the file in the body; it is deleted at the end of the block. Refuses other bodies, and large files."""
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
        yield opened, file


@contextmanager
def take_slot() -> Iterator[None]:
    """Hold a place among the files that are processed; refuse the file if there is none.

    Only files that have arrived completely take a place, so that slow uploads do not block others.
    """
    if not upload_slots.acquire(blocking=False):
        message = f"{_MAX_UPLOADS} files are already waiting: try again later."
        raise Refusal(503, message, {"Retry-After": str(_RETRY_AFTER_S)})
    try:
        yield
    finally:
        upload_slots.release()


async def analyze_file(
    request: Request, snapshot: Snapshot, file: pathlib.Path, minutes: float, ticket: str = ""
) -> "audio.Sound":
    """Analyze the first minutes of a received file in a worker; :func:`find_place` knows the file by its ticket."""
    visitor = address_of(request.scope)
    decoding = await run_in_threadpool(decode_upload, snapshot, file, UPLOAD_NAME, minutes, visitor=visitor)
    if ticket:
        _in_line[ticket] = decoding
    try:
        return await wait_for(decoding, request)
    finally:
        decoding.drop()


def find_place(ticket: str) -> int | None:
    """Return the number of files that are analyzed before a file; None if the file is unknown or done."""
    decoding = _in_line.get(ticket)
    return None if decoding is None or decoding.future.done() else decoding.n_ahead


async def _write_body(request: Request, path: pathlib.Path) -> None:
    max_bytes = max_mb() << 20
    too_large = Refusal(413, f"the file is larger than {max_mb()} MB: send a part of it.")
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
