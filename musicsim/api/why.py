"""*Why?* over HTTP: the sources of the similarity of two songs."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from musicsim.api.bodies import TextSafeJSON
from musicsim.api.parameters import ModelQuery
from musicsim.explorer.libraries import open_library
from musicsim.explorer.search.explanation import explain, render_explanation
from musicsim.explorer.snapshot.snapshot import snapshot_under
from musicsim.public import visitor_may

router = APIRouter()


@router.get("/songs/{song_id}/why")
@visitor_may
def why(
    song_id: Annotated[int, Path(description="id of the song")],
    other: Annotated[int, Query(description="id of the song to compare it with")],
    library: str | None = None,
    model: ModelQuery = None,
) -> Response:
    """Explain the similarity of two songs: its parts, the largest differences, and passages with the same sounds."""
    snapshot = snapshot_under(open_library(library), model)
    return TextSafeJSON(render_explanation(explain(snapshot, song_id, other)))
