"""The HTTP request for similar songs with a figure per factor."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from musicsim.api import LibraryQuery, ModelQuery, SongPath, read_query
from musicsim.explorer import SearchRequest, open_library, snapshot_under
from musicsim.extensions.factors.figures import find_with_figures
from musicsim.extensions.factors.rendering import render_comparison
from musicsim.public import visitor_may

router = APIRouter()


@router.get(
    "/songs/{song_id}/factors",
    response_description="an object with `songs`, a list of results, best first, each with `factors`, and `n_missing`",
)
@visitor_may
def list_by_factor(
    song_id: SongPath,
    search: Annotated[SearchRequest, Depends(read_query(SearchRequest))],
    library: LibraryQuery = None,
    model: ModelQuery = None,
) -> dict[str, Any]:
    """Find similar songs, each with the percentage of pairs of songs that are farther apart in each factor.

    `n_missing` songs were left out because they lack the factor `by`.
    """
    return render_comparison(find_with_figures(snapshot_under(open_library(library), model), song_id, search))
