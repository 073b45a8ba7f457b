"""Facts about the map for a client that draws it: its colors, the models, and the numbers of songs."""

from functools import lru_cache

from fastapi import APIRouter, Response

from musicsim.api.bodies import TextSafeJSON
from musicsim.api.parameters import LibraryQuery, ModelQuery
from musicsim.explorer import Snapshot, open_library, render_fields, snapshot_under
from musicsim.explorer.snapshot.map_columns import colors_offered
from musicsim.public import is_public, visitor_may

router = APIRouter()


@router.get("/map", response_description="facts about the map")
@visitor_may
def describe_map(library: LibraryQuery = None, model: ModelQuery = None) -> Response:
    """Describe the map of a library under a model; `/maps/{model id}/places` has its points."""
    snapshot = snapshot_under(open_library(library), model)
    models, record = snapshot.library.models, snapshot.record
    native = models.native()
    n_duplicates = int((snapshot.rows_of(snapshot.representative_of) >= 0).sum())
    return TextSafeJSON(
        {
            "colors": _colors_of(snapshot, is_public()),
            "models": [render_fields(one, "id", "name") for one in models.all() if models.is_whole(one)],
            "model": record and render_fields(record, "id", "name"),
            "is_native": record is None or native is None or record.id == native.id,
            "n_songs": snapshot.n_songs,
            "n_indexed": snapshot.n_indexed,
            "n_duplicates": len(snapshot.representative_of),
            "n_waiting": snapshot.n_songs - snapshot.n_indexed - n_duplicates,
        }
    )


@lru_cache(maxsize=8)
def _colors_of(snapshot: Snapshot, _public: bool) -> list[str]:
    return colors_offered(snapshot)
