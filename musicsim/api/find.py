"""The search box of *Listen* over HTTP, and the filters of a search as JSON."""

from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Path, Query, Response

from musicsim.api.bodies import TextSafeJSON
from musicsim.api.parameters import LibraryQuery, ModelQuery
from musicsim.explorer import open_library, snapshot_under, take_snapshot
from musicsim.explorer.search.form import describe_options, find_choices
from musicsim.explorer.search.matches import KINDS, ids_of_match, song_matches, trim_text
from musicsim.explorer.snapshot.words import suggest_words
from musicsim.public import visitor_may

_MAX_IDS = 2_000
_Kind = Literal["artist", "album", "song", "words"]

router = APIRouter()


@router.get(
    "/find",
    response_description=(
        "an object with `matches`, a list of matches, and `suggestions`, words to try if nothing matches"
    ),
)
@visitor_may
def find(
    text: Annotated[str, Query(description="text that the user has typed; only 200 characters are read")],
    library: LibraryQuery = None,
    kind: Annotated[list[_Kind], Query(description="kinds of matches; all by default")] = [],  # noqa: B006  # FastAPI copies it
) -> Response:
    """Find artists, albums and songs whose names contain a text, and read it as words, such as "slow piano".

    If no name contains the text, typos are allowed. The answer has at most 20 names.
    """
    snapshot = take_snapshot(open_library(library))
    typed = trim_text(text)
    matches = song_matches(snapshot, typed, kinds=kind or KINDS) if typed else []
    known = suggest_words(snapshot) if typed and not matches else []
    return TextSafeJSON({"matches": [asdict(match) for match in matches], "suggestions": known})


@router.get(
    "/find/songs", response_description="an object with `ids`, and `n_songs`, the number of ids without the limit"
)
@visitor_may
def songs_of_match(
    kind: Annotated[_Kind, Query(description="kind of the match")],
    value: Annotated[str, Query(description="`value` of the match")],
    library: LibraryQuery = None,
    model: ModelQuery = None,
    limit: Annotated[int, Query(ge=1, le=_MAX_IDS, description="maximum number of ids")] = _MAX_IDS,
) -> Response:
    """Return the songs of a match of `GET /api/find` that can start a queue; for words, best matches first.

    To play an artist or an album, send the first id to `POST /api/queue` as `song`, and some others as `opening` and as
    `like` in `search`.
    """
    if kind == "song" and not (value.isascii() and value.isdigit() and len(value) < 19):
        raise HTTPException(422, "value must be the id of a song if kind is song.")
    snapshot = snapshot_under(open_library(library), model)
    ids = ids_of_match(snapshot, kind, value)
    ids = ids[snapshot.rows_of(ids) >= 0]
    return TextSafeJSON({"ids": ids[:limit].tolist(), "n_songs": len(ids)})


@router.get("/options", response_description="a list of options, in the order of the form")
@visitor_may
def options(library: LibraryQuery = None, model: ModelQuery = None) -> Response:
    """List the options of a search, which `POST /api/queue` and `GET /api/similar` accept, with their possible values.

    An option with more than 200 values has no `choices`; search them with `GET /api/options/{name}`.
    """
    return TextSafeJSON(describe_options(snapshot_under(open_library(library), model)))


@router.get("/options/{name}", response_description="a list of names")
@visitor_may
def choices(
    name: Annotated[str, Path(description="name of an option of the kind `names`")],
    text: Annotated[str, Query(description="part of a value")] = "",
    library: LibraryQuery = None,
) -> Response:
    """List at most 20 values of an option that contain a text; values that begin with it come first."""
    return TextSafeJSON(find_choices(take_snapshot(open_library(library)), name, trim_text(text)))
