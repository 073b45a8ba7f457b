"""The command ``musicsim similar``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from musicsim.cli._console import JsonOption, LibraryOption, ModelOption, emit, open_library, show, song_json, warn
from musicsim.cli._options import taking
from musicsim.explorer.requests.search import SearchRequest


def _query(snapshot: Any, song: str) -> Any:
    """A song id, or an Example read from a file."""
    from musicsim.errors import AudioDecodeError
    from musicsim.explorer.search.query import read_example

    path = Path(song).expanduser()
    if path.is_file():
        return read_example(snapshot, path, path.name)
    if song.isascii() and song.isdigit():
        return int(song)
    raise AudioDecodeError(f"{song}: neither a file nor the number of a song. `musicsim list` shows the numbers.")


@taking(SearchRequest)
def similar(
    request: SearchRequest,
    song: Annotated[
        str | None,
        typer.Argument(
            help="A file of music, or the id of a song; not needed with --like, or with --words alone.",
            metavar="[FILE|ID]",
        ),
    ] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    model: ModelOption = None,
) -> None:
    """List the songs that sound most like a file, a song of the library or several, or that words describe."""
    from musicsim.explorer.search.requested import find_requested
    from musicsim.explorer.snapshot.snapshot import snapshot_under

    if song is None and not request.like and not request.words:
        raise typer.BadParameter("name a file or the id of a song, or say --like or --words.")
    with open_library(library) as lib:
        snapshot = snapshot_under(lib, model)
        hits = find_requested(snapshot, None if song is None else _query(snapshot, song), request)
        trouble = snapshot.search_trouble
    if trouble:
        warn("search", trouble)
    if as_json:
        emit(
            [
                {
                    "rank": rank,
                    "similarity": None if h.similarity is None else round(h.similarity, 4),
                    "reason": h.reason,
                    "song": song_json(h.song),
                }
                for rank, h in enumerate(hits, 1)
            ]
        )
        return
    rows = [
        (
            rank,
            h.song.id,
            "" if h.similarity is None else f"{h.similarity:.3f}",
            h.song.title,
            h.song.artist or "",
            h.reason,
        )
        for rank, h in enumerate(hits, 1)
    ]
    show(("", "id", "similarity", "title", "artist", "why"), rows)
