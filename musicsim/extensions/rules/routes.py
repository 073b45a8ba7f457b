"""Rules over HTTP, for the owner only."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Path

from musicsim.api import LibraryQuery, ModelQuery, read_query
from musicsim.explorer import open_library, render_song, snapshot_under
from musicsim.extensions.rules.finding import find_songs, save_checked
from musicsim.extensions.rules.rule import RuleRequest
from musicsim.extensions.rules.store import RuleStore

router = APIRouter()
_Name = Annotated[str, Path(description="name of the rule")]


@router.get(
    "/rules", response_description="a list of objects with `name`, `conditions` (a text) and `rule` (a document)"
)
def list_rules(library: LibraryQuery = None) -> list[dict[str, Any]]:
    """List the saved rules."""
    return [saved.as_json() for saved in RuleStore(open_library(library)).all()]


@router.put("/rules/{name}", response_description="an object as in `GET /api/rules`")
def save_rule(
    name: _Name, request: Annotated[RuleRequest, Depends(read_query(RuleRequest))], library: LibraryQuery = None
) -> dict[str, Any]:
    """Save a rule; it replaces a rule with the same name."""
    try:
        return save_checked(open_library(library), name, request.rule()).as_json()
    except ValueError as error:
        raise HTTPException(422, str(error)) from error


@router.delete("/rules/{name}", response_description="an object as in `GET /api/rules`")
def delete_rule(name: _Name, library: LibraryQuery = None) -> dict[str, Any]:
    """Delete a rule. The answer contains the deleted rule."""
    return RuleStore(open_library(library)).delete(name).as_json()


@router.get("/rules/{name}/songs", response_description="a list of songs in order")
def list_songs(name: _Name, library: LibraryQuery = None, model: ModelQuery = None) -> list[dict[str, Any]]:
    """List the songs that follow a rule now, in order."""
    opened = open_library(library)
    snapshot = snapshot_under(opened, model)
    rule = RuleStore(opened).get(name).rule
    return [render_song(song) for song in snapshot.songs_at(find_songs(snapshot, rule).rows)]
