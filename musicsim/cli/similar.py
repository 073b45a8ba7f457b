"""The ``musicsim similar`` command."""

from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli.console import JsonOption, LibraryOption, ModelOption, emit, open_library, show, warn
from musicsim.cli.matching import count_matching, nothing_matches, warn_about_words
from musicsim.cli.options import take_request
from musicsim.errors import AudioDecodeError, NotFoundError
from musicsim.explorer import Example, SearchRequest, Snapshot, find_requested, render_result, snapshot_under
from musicsim.explorer.search.query import read_example
from musicsim.explorer.snapshot.filtering import describe_unknown


def _read_query(snapshot: Snapshot, song: str) -> int | Example:
    path = Path(song).expanduser()
    if path.is_file():
        return read_example(snapshot, path, path.name)
    if song.isascii() and song.isdigit():
        return int(song)
    raise AudioDecodeError(f"{song} is neither a file nor the id of a song. `musicsim list` shows all ids.")


def nothing_found(snapshot: Snapshot, query: int | Example | None, request: SearchRequest) -> NotFoundError:
    """Return the error of a search without results; it names the filter that excludes the most songs."""
    own = query.song_id if isinstance(query, Example) else query
    left_out = {*request.like, *request.unlike, *request.does_not_fit} | ({own} if own is not None else set())
    return nothing_matches(snapshot, request, count_matching(snapshot, left_out))


@take_request(SearchRequest)
def similar(
    request: SearchRequest,
    song: Annotated[
        str | None,
        typer.Argument(help="A music file, or the id of a song; not needed with --like or --words.", metavar="FILE|ID"),
    ] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    model: ModelOption = None,
) -> None:
    """Examples:
    musicsim similar song.mp3 -k 5
    musicsim similar 12 --like 7 --factor rhythm
    """
    if song is None and not request.like and not request.words:
        raise typer.BadParameter("give a file or the id of a song, or use --like or --words.")
    with open_library(library) as lib:
        snapshot = snapshot_under(lib, model)
        warn_about_words(snapshot, request)
        query = None if song is None else _read_query(snapshot, song)
        results = find_requested(snapshot, query, request)
        if snapshot.search_trouble:
            warn("search", snapshot.search_trouble)
        notes = describe_unknown(snapshot, request)
        if as_json:
            ranked = enumerate(results, 1)
            emit([render_result(hit.song, n, hit.similarity, hit.reason, with_files=True) for n, hit in ranked])
        if not results:
            raise nothing_found(snapshot, query, request)
    if as_json:
        return
    scores = ["" if r.similarity is None else f"{r.similarity:.3f}" for r in results]
    rows = [
        (n, r.song.id, score, r.song.title, r.song.artist or "", r.reason)
        for n, (r, score) in enumerate(zip(results, scores, strict=True), 1)
    ]
    show(("", "id", "similarity", "title", "artist", "why"), rows, caption="\n".join([f"Library: {lib.name}", *notes]))
