"""The ``musicsim add``, ``scan`` and ``demo`` commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from musicsim import library as libraries
from musicsim.cli.console import (
    SOME_FAILED,
    JsonOption,
    LibraryOption,
    emit,
    failure_json,
    job_bar,
    open_library,
    show_failures,
    warn,
)
from musicsim.explorer import refresh, use_pool
from musicsim.progress import Canceled
from musicsim.wording import count

_ALSO = {
    "known": "recognized by their sound",
    "ignored": "excluded by .musicsimignore",
    "missing": "missing",
    "back": "found again",
}
_Workers = Annotated[
    int | None, typer.Option("--workers", "-w", min=1, help="Number of worker processes; one per core by default.")
]


def add(
    sources: Annotated[
        list[Path] | None, typer.Argument(help="Folders of music, or music files.", metavar="SOURCE")
    ] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    retry: Annotated[bool, typer.Option("--retry", help="Retry files that failed before.")] = False,
    anyway: Annotated[bool, typer.Option("--anyway", help="Add short and silent files, too.")] = False,
    workers: _Workers = None,
    shortest: Annotated[
        float | None,
        typer.Option(
            min=0, help="Skip files shorter than this many seconds. Saved as a library setting.", metavar="SECONDS"
        ),
    ] = None,
) -> None:
    """Unchanged songs are not analyzed again. A file that you name explicitly is added even if it is short.

    Examples:
        musicsim add ~/Music
        musicsim add ~/Downloads/song.mp3 --library ~/jazz
    """
    if not sources:
        raise typer.BadParameter("give a folder or a file.")
    with open_library(library, create=True) as lib:
        if shortest is not None:
            lib.set_setting("shortest_s", shortest)
        options = {"retry": retry, "anyway": anyway}
        paths = [str(libraries.absolute(source)) for source in sources]
        with use_pool(lib), job_bar(lib, "add", paths=paths, **options) as progress:
            done = refresh.add_and_refresh(lib, sources, **options, n_workers=workers, progress=progress)
            progress.end_scan(done)
        show_scan(lib, done, sources, as_json)


def scan(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders to scan; by default, all folders of the library.", metavar="FOLDER"),
    ] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    workers: _Workers = None,
) -> None:
    """Examples:
    musicsim scan
    musicsim scan ~/Music/New --json
    """
    with open_library(library) as lib:
        paths = [str(libraries.absolute(folder)) for folder in folders or ()]
        with use_pool(lib), job_bar(lib, "scan", folders=paths) as progress:
            done = refresh.scan_again(lib, folders or (), n_workers=workers, progress=progress)
            progress.end_scan(done)
        show_scan(lib, done, folders or lib.files.roots(), as_json)


def show_scan(lib: libraries.Library, report: libraries.AddReport, sources: list[Path], as_json: bool) -> None:
    """Print the outcome of a scan; exit with code 3 if files failed."""
    below = [libraries.absolute(source) for source in sources]
    listed = [f for f in lib.files.failures() if any(libraries.is_below(f.path, place) for place in below)]
    failures = [f for f in listed if f.kind not in libraries.SKIPPED]
    result = {
        "library": str(lib.folder),
        **{name: getattr(report, f"n_{name}") for name in ("added", "unchanged", *_ALSO)},
        "absent": [str(path) for path in report.absent],
        "songs": len(lib),
        "failed": [failure_json(f) for f in failures],
        "skipped": [failure_json(f) for f in listed if f.kind in libraries.SKIPPED],
    }
    if as_json:
        emit(result)
    else:
        also = [f"{result[name]} {words}" for name, words in _ALSO.items() if result[name]]
        typer.echo(", ".join([f"{count(report.n_added, 'song')} added", *also]) + f"; {len(lib)} in the library.")
        for path in report.absent:
            warn("not found", path)
        show_failures(listed)
    if failures:
        raise typer.Exit(SOME_FAILED)


def demo(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    seed: Annotated[int, typer.Option(help="A different seed composes different music.")] = 0,
) -> None:
    """Examples:
    musicsim demo
    musicsim demo --seed 7 --library ~/other-demo
    """
    with open_library(library, create=True) as lib:
        with job_bar(lib, "demo", seed=seed) as progress:
            if not refresh.build_demo(lib, seed=seed, progress=progress):
                raise Canceled
        counts = lib.counts()
    if as_json:
        emit({"library": str(lib.folder), **counts})
    else:
        made = [count(int(counts[f"{noun}s"]), noun) for noun in ("song", "playlist")]
        typer.echo(f"{' and '.join(made)}. To see them, run `musicsim app`.")
