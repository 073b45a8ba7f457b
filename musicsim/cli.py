"""The command line: the same services as the pages.

Results go to stdout (``--json`` for machines), progress and warnings to stderr. Exit codes: 0 all well,
1 an error, 2 wrong usage, 3 some files failed and are listed.
"""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from musicsim import __version__
from musicsim.errors import MusicsimError

__all__ = ["SOME_FAILED", "app", "main"]

SOME_FAILED = 3

app = typer.Typer(
    name="musicsim",
    help="Drop a song, see what in your own collection sounds like it, and why.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_errors = Console(stderr=True)
_LibraryOption = Annotated[
    Path | None,
    typer.Option(
        "--library", "-l", help="The library's folder.", envvar="MUSICSIM_LIBRARY", show_envvar=True
    ),
]
_JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for machines.")]


def main() -> None:
    """Entry point: errors of ours become one line and exit code 1."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    try:
        app()
    except MusicsimError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("stopped; what was added stays, the same command goes on from there.")


def _fail(message: str) -> NoReturn:
    _errors.print(f"[red]error:[/red] {_safe(message)}", highlight=False, soft_wrap=True)
    sys.exit(1)


def _safe(text: object) -> str:
    """Text as rich and the terminal can show it: no markup, no lone surrogates, no control characters."""
    from rich.markup import escape

    shown = str(text).encode("utf-8", "backslashreplace").decode()
    return escape("".join(c if c.isprintable() else repr(c)[1:-1] for c in shown))


@contextmanager
def _open(folder: Path | None, *, create: bool = False) -> Iterator[Any]:
    from musicsim.explorer.libraries import default_folder
    from musicsim.library import Library

    with Library.open(folder or default_folder(), create=create) as library:
        yield library


def _emit(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=True, default=str))  # noqa: T201  # this is the program's output


def _show(table: Table) -> None:
    Console().print(table)


def _song_json(song: Any) -> dict[str, Any]:
    names = ("id", "title", "artist", "album", "track", "year", "genre", "duration_s", "folder", "notes")
    return {name: getattr(song, name) for name in names} | {"path": str(song.path)}


@contextmanager
def _progress_bar() -> Iterator[Callable[..., bool | None]]:
    """A bar on stderr that takes a job's report."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=_errors, transient=True) as bar:
        task = bar.add_task("", total=None, speed="")

        def report(**values: Any) -> None:
            speed = values.get("songs_per_second")
            bar.update(
                task,
                description=_safe(values.get("message", ""))[:50],
                completed=values.get("done"),
                total=values.get("total") or None,
                speed=f"{speed:.1f} songs/s" if speed else "",
            )

        yield report


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)
    ] = False,
) -> None:
    if version:
        typer.echo(f"musicsim {__version__}")
        raise typer.Exit


@app.command()
def add(
    sources: Annotated[list[Path], typer.Argument(help="Folders and files of music.")],
    library: _LibraryOption = None,
    as_json: _JsonOption = False,
    retry: Annotated[bool, typer.Option("--retry", help="Try files again that failed before.")] = False,
) -> None:
    """Add folders or files, then bring the model and the map up to them.

    Songs that are in the library and have not changed are not analysed again.
    """
    from musicsim.explorer.building import add_and_refresh
    from musicsim.library.files import absolute

    with _open(library, create=True) as lib:
        before = len(lib)
        with _progress_bar() as report:
            add_and_refresh(lib, sources, retry=retry, report=report)
        below = [absolute(source) for source in sources]
        failed = [f for f in lib.failures() if any(f.path.is_relative_to(place) for place in below)]
        result = {
            "library": str(lib.folder),
            "added": len(lib) - before,
            "songs": len(lib),
            "failed": [{"path": str(f.path), "reason": f.reason} for f in failed],
        }
    if as_json:
        _emit(result)
    else:
        typer.echo(f"{result['added']} songs added, {result['songs']} in the library.")
        for failure in failed:
            _errors.print(
                f"[yellow]not added:[/yellow] {_safe(failure.reason)}", highlight=False, soft_wrap=True
            )
    if failed:
        raise typer.Exit(SOME_FAILED)


@app.command()
def demo(
    library: _LibraryOption = None,
    as_json: _JsonOption = False,
    seed: Annotated[int, typer.Option(help="Another seed composes other music.")] = 0,
) -> None:
    """Compose the demo collection, add it, and import its listeners, tags and playlists."""
    from musicsim.explorer.building import build_demo

    with _open(library, create=True) as lib:
        with _progress_bar() as report:
            build_demo(lib, seed=seed, report=report)
        counts = {"library": str(lib.folder), **lib.counts()}
    if as_json:
        _emit(counts)
    else:
        typer.echo(f"{counts['songs']} songs and {counts['playlists']} playlists. See them: musicsim app")


@app.command("list")
def list_songs(
    library: _LibraryOption = None,
    as_json: _JsonOption = False,
    search: Annotated[str, typer.Option("--search", "-s", help="Part of a title or artist.")] = "",
) -> None:
    """List the songs of the library."""
    with _open(library) as lib:
        songs = [song for song in lib.songs() if song.matches(search)]
    if as_json:
        _emit([_song_json(song) for song in songs])
        return
    table = Table("id", "title", "artist", "album", "year", "genre", "length")
    for s in songs:
        cells = (
            s.id,
            s.title,
            s.artist or "",
            s.album or "",
            s.year or "",
            s.genre or "",
            _clock(s.duration_s),
        )
        table.add_row(*(_safe(cell) for cell in cells))
    _show(table)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


@app.command()
def failed(library: _LibraryOption = None, as_json: _JsonOption = False) -> None:
    """List files that could not be added, each with its reason."""
    with _open(library) as lib:
        failures = lib.failures()
    if as_json:
        _emit([{"path": str(f.path), "reason": f.reason} for f in failures])
    else:
        for failure in failures:
            typer.echo(_plain(failure.reason))
    if failures:
        raise typer.Exit(SOME_FAILED)


def _plain(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _query(snapshot: Any, song: str) -> Any:
    """A song id, or an Example read from a file."""
    from musicsim.errors import AudioDecodeError
    from musicsim.explorer.query import read_example

    path = Path(song).expanduser()
    if path.is_file():
        return read_example(snapshot, path.read_bytes(), path.name)
    if song.isascii() and song.isdigit():
        return int(song)
    raise AudioDecodeError(
        f"{song}: neither a file nor the number of a song. `musicsim list` shows the numbers."
    )


@app.command()
def similar(
    song: Annotated[str, typer.Argument(help="A file of music, or the id of a song.", metavar="FILE|ID")],
    library: _LibraryOption = None,
    as_json: _JsonOption = False,
    k: Annotated[int, typer.Option("-k", help="How many songs.", min=1)] = 10,
    per_artist: Annotated[
        int, typer.Option(help="At most so many of one artist; 0 for no limit.", min=0)
    ] = 2,
    genre: Annotated[list[str] | None, typer.Option(help="Only these genres.")] = None,
    artist: Annotated[list[str] | None, typer.Option(help="Only these artists.")] = None,
    folder: Annotated[list[str] | None, typer.Option(help="Only songs of these folders.")] = None,
    years: Annotated[tuple[int, int] | None, typer.Option(help="First and last year.")] = None,
    seconds: Annotated[
        tuple[float, float] | None, typer.Option(help="Shortest and longest, in seconds.")
    ] = None,
) -> None:
    """List the songs that sound most like a file or a song of the library."""
    from musicsim.explorer.query import Filters, find_similar
    from musicsim.explorer.snapshot import take_snapshot

    filters = Filters(
        frozenset(artist or ()),
        frozenset(genre or ()),
        frozenset(str(Path(f).expanduser().absolute()) for f in folder or ()),
        years,
        seconds,
    )
    with _open(library) as lib:
        snapshot = take_snapshot(lib)
        query = _query(snapshot, song)
        hits = find_similar(snapshot, query, k, max_per_artist=per_artist or None, filters=filters)
    if as_json:
        _emit(
            [
                {
                    "rank": rank,
                    "similarity": round(h.similarity, 4),
                    "reason": h.reason,
                    "song": _song_json(h.song),
                }
                for rank, h in enumerate(hits, 1)
            ]
        )
        return
    table = Table("", "id", "similarity", "title", "artist", "why")
    for rank, hit in enumerate(hits, 1):
        cells = (
            rank,
            hit.song.id,
            f"{hit.similarity:.3f}",
            hit.song.title,
            hit.song.artist or "",
            hit.reason,
        )
        table.add_row(*(_safe(cell) for cell in cells))
    _show(table)


@app.command()
def playlist(
    library: _LibraryOption = None,
    as_json: _JsonOption = False,
    length: Annotated[int, typer.Option("--length", "-n", help="How many songs.", min=1)] = 12,
    first: Annotated[int | None, typer.Option(help="Id of the first song; drawn by default.")] = None,
    spacing: Annotated[int, typer.Option(help="Songs between two of one artist.", min=0)] = 5,
    surprise: Annotated[float, typer.Option(help="0 smooth, 1 as in real playlists.", min=0, max=1)] = 0.2,
    seed: Annotated[int | None, typer.Option(help="Another seed, another route; printed when drawn.")] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", "-o", help="Write it too: a name ending in .m3u8, .xspf or .jspf."),
    ] = None,
    relative: Annotated[
        bool, typer.Option("--relative", help="Paths relative to the exported file.")
    ] = False,
) -> None:
    """Draw a playlist by a walk over what songs have in common; every step says why."""
    import secrets

    from musicsim.errors import LibraryError
    from musicsim.explorer.snapshot import take_snapshot
    from musicsim.explorer.walk import Walk
    from musicsim.library.arrays import atomic_path
    from musicsim.library.exporters import FORMATS

    ending = export.suffix.lower().lstrip(".") if export else "m3u8"
    if ending not in FORMATS:
        raise LibraryError(f"{export}: name a file that ends in {', '.join('.' + name for name in FORMATS)}.")
    seed = secrets.randbelow(2**31) if seed is None else seed
    with _open(library) as lib:
        walk = Walk(take_snapshot(lib))
        drawn = walk.draw(length, first=first, spacing=spacing, surprise=surprise, random_state=seed)
    if export:
        base = export.expanduser().absolute().parent if relative else None
        with atomic_path(export.expanduser().absolute()) as temporary:
            temporary.write_bytes(FORMATS[ending](export.stem, drawn.songs, relative_to=base))
    steps = [
        {"song": _song_json(song), "reason": edge.reason if edge else None}
        for song, edge in zip(drawn.songs, drawn.edges, strict=True)
    ]
    if as_json:
        _emit({"seed": seed, "songs": steps, "note": drawn.note, "file": str(export) if export else None})
        return
    table = Table("", "id", "title", "artist", "reached because", caption=drawn.note or f"seed {seed}")
    for place, (song, edge) in enumerate(zip(drawn.songs, drawn.edges, strict=True), 1):
        cells = (place, song.id, song.title, song.artist or "", edge.reason if edge else "")
        table.add_row(*(_safe(cell) for cell in cells))
    _show(table)


@app.command()
def info(library: _LibraryOption = None, as_json: _JsonOption = False) -> None:
    """What the library holds, which model is in use, and what is running."""
    from musicsim.explorer import jobs

    with _open(library) as lib:
        record, job = lib.models.active(), jobs.current(lib)
        facts = {"library": str(lib.folder), **lib.counts(), "roots": [str(root) for root in lib.roots()]}
        facts["model"] = record and {
            "id": record.id,
            "name": record.name,
            "codewords": record.n_codewords,
            "dimensions": record.n_dimensions,
            "fitted_on_songs": record.n_songs_fitted,
        }
        facts["job"] = job and {"kind": job.kind, "state": job.state, "done": job.done, "total": job.total}
    if as_json:
        _emit(facts)
        return
    table = Table(show_header=False)
    for name, value in facts.items():
        table.add_row(name, _safe(f"{value:.2f}" if isinstance(value, float) else value))
    _show(table)


@app.command("app")
def run_app(
    library: _LibraryOption = None,
    port: Annotated[int, typer.Option(help="Port of the page; the next free one is taken.")] = 8501,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
    demo: Annotated[
        bool, typer.Option("--demo", help="Compose the demo if the library has no songs.")
    ] = False,
) -> None:
    """Open the app in the browser."""
    from musicsim.explorer.serving import serve

    sys.exit(serve(library, port=port, browser=browser, demo=demo))


@app.command("run-job", hidden=True)
def run_job(library: Path, job_id: int) -> None:
    """Do a background job of a library in this process; the app starts these."""
    from musicsim.explorer.jobs import run

    with _open(library) as lib:
        state = run(lib, job_id)
    if state == "failed":
        raise typer.Exit(1)
