"""The queue of *Listen* over HTTP; the server remembers nothing about the client."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Response
from pydantic import Field, create_model
from starlette.concurrency import run_in_threadpool

from musicsim.api.bodies import Body, SongId, TextSafeJSON, describe_body, read_body
from musicsim.api.parameters import LibraryQuery, ModelQuery, check_limit
from musicsim.api.sounds import find_sound
from musicsim.explorer import (
    MAX_EXAMPLES,
    PlaylistRequest,
    QueueItem,
    SearchRequest,
    Snapshot,
    Thumbs,
    open_library,
    options_of,
    render_song,
    share_walk,
    snapshot_under,
)
from musicsim.explorer.playlists.farther import share_farther
from musicsim.explorer.playlists.queue import (
    MAX_CALMER,
    SURPRISE,
    Heard,
    QueueRequest,
    build_queue,
    make_queue_request,
    narrow_energy,
)
from musicsim.explorer.playlists.shared_walk import find_walk
from musicsim.explorer.playlists.tracks import make_queue_tracks, render_track
from musicsim.explorer.rendering import list_facts, render_finding
from musicsim.explorer.requests.options import Option, OptionError
from musicsim.explorer.snapshot.words import parse_words
from musicsim.library import Library
from musicsim.public import is_public, visitor_may

_MAX_HEARD, _MAX_REMOVED, _MAX_PINNED, _MAX_THUMBS = 1000, 5000, 500, 200
_MAX_PLACE = 10_000
_MAX_REASON = 500
_MAX_SOUND = 100
_LENGTH = options_of(PlaylistRequest)["length"]
_OPTIONS = options_of(SearchRequest)
_MAX_VALUES = {"like": MAX_EXAMPLES, "unlike": MAX_EXAMPLES, "fits": _MAX_THUMBS, "does_not_fit": _MAX_THUMBS}


def _field(option: Option) -> Any:
    """Return type and default of an option; limits for visitors are checked with each request."""
    low, high = (None, None) if option.n_values > 1 else (option.min, option.max_asked or option.max)
    most: Any = {"max_length": _MAX_VALUES[option.field]} if option.field in _MAX_VALUES else {}
    kind: Any = list[SongId] if option.many and option.element is int else option.annotation
    return kind, Field(option.default_given, description=option.help, ge=low, le=high, **most)


SearchBody = create_model("SearchBody", __base__=Body, **{option.name: _field(option) for option in _OPTIONS.values()})
"""The options of a search, with the names that the query string of ``GET /api/similar`` has."""


class HeardBody(Body):
    """A song that has played or is playing."""

    song_id: SongId
    reason: str = Field("", max_length=_MAX_REASON)
    similarity: float | None = Field(None, ge=0, le=1)


class QueueBody(Body):
    """A request for a queue. It needs a seed: a song, a sound, songs in `search.like`, or words in `search.words`."""

    song: SongId | None = Field(None, description="Id of the song that the queue starts from.")
    sound: str | None = Field(
        None, max_length=_MAX_SOUND, description="`sound` of the answer of `POST /api/sounds`, to start from a sound "
        "file instead of a song.",
    )  # fmt: skip
    search: SearchBody = Field(  # type: ignore[valid-type]
        SearchBody(), description="Filters, further examples, and options for the nearest songs."
    )
    thumbs: dict[SongId, Literal[-1, 0, 1]] = Field(
        {}, max_length=_MAX_THUMBS, description="1 (fits) or -1 (does not fit), keyed by the id of a song."
    )
    target: SongId | None = Field(None, description="Id of the song that the queue leads to.")
    calmer: int = Field(
        0, ge=-MAX_CALMER, le=MAX_CALMER, description="Steps toward calmer songs; livelier if negative."
    )
    surprise: float = Field(
        SURPRISE, ge=0, le=1, description="From 0 (smooth, many of the nearest songs) to 1 (surprising)."
    )
    pins: dict[Annotated[int, Field(ge=0, le=_MAX_PLACE)], SongId] = Field(
        {}, max_length=_MAX_PINNED, description="Ids of songs that keep their place, keyed by the place, from 0."
    )
    removed: list[SongId] = Field([], max_length=_MAX_REMOVED, description="Ids of songs to leave out.")
    opening: list[SongId] = Field(
        [], max_length=_MAX_PINNED, description="Ids of songs that come first, after the heard ones."
    )
    heard: list[HeardBody] = Field(
        [], max_length=_MAX_HEARD, description="Songs that have played or are playing, in order: objects with "
        "`song_id`, `reason` and `similarity`. They keep their places.",
    )  # fmt: skip
    length: int = Field(20, ge=1, le=_LENGTH.max_asked, description="Number of songs.")
    seed: int = Field(0, ge=0, lt=2**32, description="The same seed gives the same queue again.")
    wait: bool = Field(
        True, description="Whether to wait for the songs after the nearest ones if they are not ready, which takes "
        "some seconds after the library has changed.",
    )  # fmt: skip


router = APIRouter()


@router.post(
    "/queue",
    response_description="a queue",
    responses={410: {}, 413: {}, 415: {}},
    openapi_extra=describe_body(QueueBody),
)
@visitor_may
async def queue(
    body: Annotated[QueueBody, Depends(read_body(QueueBody))], library: LibraryQuery = None, model: ModelQuery = None
) -> Response:
    """Return a queue: the songs nearest to a seed, then an endless walk, as on the page Listen.

    The body is a JSON object; all its fields are optional, but it needs a seed: `song` or `sound`, or `like` or
    `words` in `search`. A longer queue starts with the same songs. The server does not remember the queue: to change
    it, send the whole request again. To start from a sound file, send it to `POST /api/sounds` first.
    """
    return await run_in_threadpool(lambda: TextSafeJSON(_answer(open_library(library), model, body)))


def _answer(library: Library, model: str | None, body: QueueBody) -> dict[str, Any]:
    snapshot = snapshot_under(library, model)
    request = _request(snapshot, body)
    walker = share_walk(snapshot) if body.wait else find_walk(snapshot)
    items = build_queue(snapshot, walker, request)
    words = parse_words(snapshot, body.search.words)  # type: ignore[attr-defined]
    seeds = snapshot.songs_by_id([] if body.song is None else [body.song])
    narrowed = narrow_energy(snapshot, request).energy
    return {
        "start": next(iter(_render_items(library, [QueueItem(song) for song in seeds])), None),
        "items": [
            item | {"farther": share}
            for item, share in zip(_render_items(library, items), share_farther(snapshot, request, items), strict=True)
        ],
        "is_complete": walker is not None,
        "words": [{"text": part.text, "meaning": part.words} for part in words.parts],
        "unknown_words": list(words.unknown),
        "energy": narrowed if narrowed != request.search.energy else None,
        "search_trouble": snapshot.search_trouble,
    }


def _request(snapshot: Snapshot, body: QueueBody) -> QueueRequest:
    check_limit(_LENGTH, body.length)
    search = _search_request(body.search)
    if body.song is not None and body.sound is not None:
        raise HTTPException(422, "give either `song` or `sound`.")
    example = body.song if body.sound is None else find_sound(snapshot, body.sound)
    if example is None and not search.like and not search.words:
        raise HTTPException(422, "give a seed: `song` or `sound`, or `like` or `words` in `search`.")
    votes = Thumbs.from_ids(search.fits, search.does_not_fit).votes
    return make_queue_request(
        snapshot, example, search, thumbs=Thumbs((*votes, *body.thumbs.items())), target=body.target,
        calmer=body.calmer, surprise=body.surprise, pins=body.pins, opening=tuple(body.opening),
        heard=tuple(Heard(one.song_id, one.reason, one.similarity) for one in body.heard),
        removed=frozenset(body.removed), length=body.length, seed=body.seed,
        feedback={} if is_public() else snapshot.library.feedback(),  # visitors send theirs as `removed`
    )  # fmt: skip


def _search_request(body: Body) -> SearchRequest:
    values = {option.field: getattr(body, option.name) for option in _OPTIONS.values()}
    for option in _OPTIONS.values():
        check_limit(option, values[option.field])
    try:
        return SearchRequest(**values)
    except OptionError as error:
        raise HTTPException(422, f"search.{error.option.name} must be {error.shortfall}.") from error
    except ValueError as error:
        raise HTTPException(422, f"search: {error}") from error


def _render_items(library: Library, items: list[QueueItem]) -> list[dict[str, Any]]:
    return [
        {"song": render_song(item.song)}
        | render_finding(item.similarity, item.reason)
        | {
            "is_pinned": item.is_pinned,
            "choice_id": item.choice_id,
            "facts": list_facts(item.song),
            "notes": item.song.notes,
            "track": render_track(track),
        }
        for item, track in zip(items, make_queue_tracks(library, items), strict=True)
    ]
