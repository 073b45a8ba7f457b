"""Commands that answer: similar songs, and the app itself."""

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


def run_app(
    library: LibraryOption = None,
    host: Annotated[
        str | None,
        typer.Option(
            help="Listen on this address, 0.0.0.0 for all of them, so that others who reach it can use the app too; "
            "by default only this machine can.",
            metavar="ADDRESS",
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="Port of the page; the next free one is taken.", min=1, max=65535)] = 8501,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A name by which browsers may reach the app, such as that of a proxy in front of it.", metavar="NAME"
        ),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
    demo: Annotated[bool, typer.Option("--demo", help="Compose the demo if the library has no songs.")] = False,
    public: Annotated[
        bool,
        typer.Option(
            "--public",
            help="A demonstration for strangers: they listen, search and generate playlists, and change nothing.",
        ),
    ] = False,
    keep_answers: Annotated[
        Path | None,
        typer.Option(
            help="With --public: keep visitors' answers of the Compare page in this folder, without "
            "names; `musicsim answers import` reads them.",
            metavar="FOLDER",
        ),
    ] = None,
) -> None:
    """Open the app in the browser."""
    from musicsim.cli.serve import serve

    serve(
        library,
        host=host,
        port=port,
        allowed_hosts=allow_host or (),
        browser=browser,
        demo=demo,
        public=public,
        keep_answers=keep_answers,
        say=typer.echo,
    )


def run_job(library: Path, job_id: int) -> None:
    """Do a background job of a library in this process; the app starts these."""
    from musicsim.explorer.job_process import run

    with open_library(library) as lib:
        state = run(lib, job_id)
    if state == "failed":
        raise typer.Exit(1)
