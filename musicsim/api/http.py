"""The interface for other programs; its description is at ``/api/docs``."""

from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, HTTPException, Query, Request
from fastapi.responses import JSONResponse

from musicsim import __version__
from musicsim.errors import AudioError, MusicsimError, NotFoundError
from musicsim.explorer.libraries import library_folders, open_library
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.playlists.request import ARTIST_SPACING, SURPRISE, Wish
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.search.feedback import thumbs_by_id
from musicsim.explorer.search.query import Filters, Hit, find_similar, read_example
from musicsim.explorer.snapshot.snapshot import snapshot_under, take_snapshot
from musicsim.library import Song

__all__ = ["http_interface"]

_LARGEST_UPLOAD = 200 * 2**20
_Count = Annotated[int, Query(ge=1, le=200)]
_PerArtist = Annotated[int, Query(ge=0, description="at most so many of one artist; 0: no limit")]
_Names = Annotated[list[str] | None, Query()]
_Judged = Annotated[list[int] | None, Query(description="ids of answers")]
_Model = Annotated[str | None, Query(description="name of a model; the one in use by default")]


def _song(song: Song) -> dict[str, Any]:
    names = ("id", "title", "artist", "album", "year", "genre", "duration_s")
    return {name: getattr(song, name) for name in names}


def _hits(hits: list[Hit]) -> list[dict[str, Any]]:
    return [{**_song(h.song), "similarity": round(h.similarity, 4), "reason": h.reason} for h in hits]


_router = APIRouter()


@_router.get("/libraries")
def libraries() -> list[str]:
    """Names of the libraries, the default one first."""
    return [folder.name for folder in library_folders()]


@_router.get("/models")
def models(library: str | None = None) -> list[dict[str, Any]]:
    """The models of a library: what each is, whether it is in use, and what it came to on held-out artists."""
    opened = open_library(library)
    names = ("name", "kind", "is_active", "created_at", "n_songs_fitted", "n_dimensions", "settings")
    return [
        {name: getattr(record, name) for name in names}
        | {"leads": load_report(opened.models.path(record.id)).get("leads")}
        for record in opened.models.all()
    ]


@_router.get("/songs")
def songs(library: str | None = None, search: str = "", limit: _Count = 50) -> list[dict[str, Any]]:
    """Songs whose title or artist holds the text; those whose title begins with it come first."""
    return [_song(song) for song in take_snapshot(open_library(library)).songs_with(search, limit)]


@_router.get("/songs/{song_id}/similar")
def similar(
    song_id: int,
    library: str | None = None,
    k: _Count = 10,
    per_artist: _PerArtist = 2,
    genre: _Names = None,
    artist: _Names = None,
    model: _Model = None,
    fits: _Judged = None,
    does_not_fit: _Judged = None,
) -> list[dict[str, Any]]:
    """The songs that sound most like a song of the library; those that fit, or do not, bend what is meant by it."""
    filters = Filters(artists=frozenset(artist or ()), genres=frozenset(genre or ()))
    snapshot = snapshot_under(open_library(library), model)
    try:
        thumbs = thumbs_by_id(snapshot.library, fits or (), does_not_fit or ())
    except ValueError as error:
        raise HTTPException(422, str(error)) from error
    return _hits(
        find_similar(snapshot, song_id, k, max_per_artist=per_artist or None, filters=filters, thumbs=thumbs)
    )


@_router.post("/similar")
async def similar_to_file(
    request: Request,
    library: str | None = None,
    k: _Count = 10,
    per_artist: _PerArtist = 2,
    model: _Model = None,
) -> Any:
    """The songs that sound most like the audio file in the request's body."""
    from starlette.concurrency import run_in_threadpool

    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > _LARGEST_UPLOAD:
            return JSONResponse({"error": "the file is larger than 200 MB"}, 413)

    def answer() -> list[dict[str, Any]]:
        snapshot = snapshot_under(open_library(library), model)
        example = read_example(snapshot, bytes(data), "the file that was sent")
        return _hits(find_similar(snapshot, example, k, max_per_artist=per_artist or None))

    return await run_in_threadpool(answer)


@_router.get("/playlist")
def playlist(
    library: str | None = None,
    length: _Count = 12,
    minutes: Annotated[float | None, Query(gt=0, le=24 * 60)] = None,
    dialect: str | None = None,
    first: int | None = None,
    through: Annotated[list[int] | None, Query()] = None,
    like: Annotated[list[int] | None, Query()] = None,
    spacing: Annotated[int, Query(ge=0)] = ARTIST_SPACING,
    surprise: Annotated[float, Query(ge=0, le=1)] = SURPRISE,
    seed: int | None = None,
    model: _Model = None,
) -> list[dict[str, Any]]:
    """A playlist with the reason of every transition; `through` passes songs by, `like` stays around them."""
    wish = Wish(
        length=length, minutes=minutes, dialect=dialect, first=first, through=tuple(through or ()),
        seeds=tuple(like or ()), spacing=spacing, surprise=surprise,
    )  # fmt: skip
    drawn = Walk(snapshot_under(open_library(library), model)).draw(wish, seed)
    return [
        {**_song(song), "reason": edge.reason if edge else None}
        for song, edge in zip(drawn.songs, drawn.edges, strict=True)
    ]


async def _error(request: Request, error: Exception) -> JSONResponse:
    """An error of ours in words, with the status it deserves."""
    status = 404 if isinstance(error, NotFoundError) else 422 if isinstance(error, AudioError) else 409
    return JSONResponse({"error": str(error)}, status)


def http_interface() -> FastAPI:
    """The FastAPI application that is mounted at ``/api``."""
    api = FastAPI(title="musicsim", version=__version__)
    api.add_exception_handler(MusicsimError, _error)
    api.include_router(_router)
    return api
