"""*Why?* over HTTP: the sources of the similarity of two songs."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Response

from musicsim.api.bodies import TextSafeJSON
from musicsim.api.parameters import LibraryQuery, ModelQuery, SongPath, read_query
from musicsim.errors import MusicsimError
from musicsim.explorer import Example, SearchRequest, Snapshot, open_library, snapshot_under
from musicsim.explorer.search.explanation import explain, render_examples, render_explanation
from musicsim.explorer.search.requested import combine_examples
from musicsim.hooks import ListFacts
from musicsim.public import is_allowed, visitor_may
from musicsim.registry import load_hooks

router = APIRouter()

OtherQuery = Annotated[int, Query(description="id of the song to compare it with")]
ExamplesQuery = Annotated[SearchRequest, Depends(read_query(SearchRequest, ("like", "unlike", "part")))]
PlaceQuery = Annotated[
    int | None,
    Query(ge=0, description="example to explain: 0 for the first, then those in `like`; the nearest by default"),
]


@router.get("/songs/{song_id}/why", response_description="an explanation")
@visitor_may
def why(
    song_id: SongPath,
    other: OtherQuery,
    examples: ExamplesQuery,
    example: PlaceQuery = None,
    library: LibraryQuery = None,
    model: ModelQuery = None,
) -> Response:
    """Explain the similarity of two songs: its parts, the largest differences, and passages with the same sounds.

    With several examples, the answer also contains the similarity to all of them together.
    """
    snapshot = snapshot_under(open_library(library), model)
    return TextSafeJSON(answer_why(snapshot, song_id, other, examples, example))


def answer_why(
    snapshot: Snapshot, query: int | Example, other_id: int, request: SearchRequest, place: int | None
) -> dict[str, Any]:
    """Return the answer to *Why?*; `request` has more examples, and `place` chooses the one to explain.

    Raises NotFoundError, ModelError, AudioTooShortError or FeatureVersionError.
    """
    examples = combine_examples(snapshot, query, request)
    together = render_examples(snapshot, examples, other_id)
    places = range(len(examples.like))
    if place is None:
        place = max(places, key=lambda i: together["like"][i]["similarity"])
    elif place not in places:
        raise HTTPException(422, f"example must be below {len(places)}, the number of examples.")
    chosen = examples.like[place]
    is_single = len(examples.like) + len(examples.unlike) == 1
    return render_explanation(explain(snapshot, chosen, other_id)) | {
        "examples": None if is_single else together | {"explained": place},
        "more": list(_list_more(snapshot, chosen, other_id)),
    }


def _list_more(snapshot: Snapshot, query: int | Example, other_id: int) -> Iterator[dict[str, Any]]:
    for find_facts in filter(is_allowed, load_hooks(ListFacts)):
        with suppress(MusicsimError):  # the explanation is useful without these facts
            for title, lines in find_facts(snapshot, query, other_id).items():
                yield {"title": title, "lines": lines}
