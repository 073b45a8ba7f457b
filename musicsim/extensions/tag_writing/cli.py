"""The command group ``musicsim tags``."""

from typing import Annotated, Any

import typer

from musicsim.cli import (
    SOME_FAILED,
    JsonOption,
    LibraryOption,
    YesOption,
    confirm,
    echo,
    emit,
    job_bar,
    open_library,
    progress_bar,
    show,
    take_request,
    warn,
)
from musicsim.explorer import list_changes, take_snapshot
from musicsim.extensions.tag_writing.backups import Backups
from musicsim.extensions.tag_writing.plan import TagPreview, preview
from musicsim.extensions.tag_writing.request import Property, TagRequest
from musicsim.extensions.tag_writing.undoing import undo_tags
from musicsim.extensions.tag_writing.values import describe_values
from musicsim.extensions.tag_writing.writing import write_tags
from musicsim.public import refuse_visitors
from musicsim.wording import count

group = typer.Typer(no_args_is_help=True)


@group.command()
@take_request(TagRequest)
def write(
    request: TagRequest,
    properties: Annotated[
        list[Property], typer.Argument(help=f"Properties to write: {', '.join(Property)}.", metavar="PROPERTY")
    ],
    library: LibraryOption = None,
    as_json: JsonOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes without writing anything.")] = False,
    yes: YesOption = False,
) -> None:
    """Write properties of songs to the tags of their files, and back up the old values.

    Examples:
        musicsim tags write tempo key --dry-run
        musicsim tags write replaygain --genre Jazz
    """
    refuse_visitors()
    names = [str(name) for name in dict.fromkeys(properties)]
    with open_library(library) as lib:
        if dry_run or not yes:
            with progress_bar(is_noted=False) as progress:
                planned = preview(take_snapshot(lib), names, request, progress)
            if dry_run:
                _show_preview(planned, as_json=as_json)
                return
            n_files = count(len(planned.files), "music file")
            if planned.files and not confirm(f"Write {count(planned.n_values, 'value')} to {n_files}?", yes=False):
                raise typer.Exit(1)
        with job_bar(lib, "write_tags", properties=names, request=list_changes(request)) as progress:
            report = write_tags(lib, names, request, progress)
            progress.outcome = report.words
    for problem in report.problems:
        warn("not written", problem)
    if as_json:
        facts = {"run": report.run or None, "files": report.n_files, "values": report.n_values}
        emit(facts | {"unchanged": report.n_unchanged, "problems": report.problems})
    else:
        echo(f"{report.words}.")
        if report.run:
            echo(f"To undo this: musicsim tags undo {report.run}")
    if report.problems:
        raise typer.Exit(SOME_FAILED)


def _show_preview(planned: TagPreview, *, as_json: bool) -> None:
    rows = [
        (file.song, file.target.file, tag, old, new)
        for file in planned.files
        for tag, (old, new) in file.changes.items()
    ]
    if as_json:
        changes: list[dict[str, Any]] = [
            {"song": song.id, "file": str(file), "tag": tag, "old": list(old), "new": list(new) or None}
            for song, file, tag, old, new in rows
        ]
        emit({"changes": changes, "unchanged": planned.n_unchanged, "problems": planned.problems})
        return
    show(
        ("id", "title", "tag", "old", "new"),
        [(song.id, song.title, tag, ", ".join(old), describe_values(new)) for song, _, tag, old, new in rows],
    )
    for problem in planned.problems:
        warn("cannot be written", problem)
    echo(f"{count(planned.n_values, 'value')} would be written to {count(len(planned.files), 'file')}.")


@group.command()
def undo(
    run: Annotated[
        str | None, typer.Argument(help="A run, as shown by `musicsim tags runs`; the newest one by default.")
    ] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Restore the files of a run, byte for byte, unless they have changed since.

    Examples:
        musicsim tags undo
        musicsim tags undo 2026-11-30-201500
    """
    refuse_visitors()
    with open_library(library) as lib:
        name = Backups(lib.folder).find(run).name
        with job_bar(lib, "undo_tags", run=name) as progress:
            report = undo_tags(lib, name, progress)
            progress.outcome = report.words
    for problem in report.problems:
        warn("not restored", problem)
    if as_json:
        emit({"run": report.run, "files": report.n_files, "problems": report.problems})
    else:
        echo(f"{report.words}.")
    if report.problems:
        raise typer.Exit(SOME_FAILED)


@group.command()
def runs(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """List the runs that can be undone, newest first.

    Examples:
        musicsim tags runs
        musicsim tags runs --json
    """
    refuse_visitors()
    with open_library(library) as lib:
        found = [(run.name, len(run.files())) for run in Backups(lib.folder).runs()]
    if as_json:
        emit([{"run": name, "files": n_files} for name, n_files in found])
    else:
        show(("run", "files"), found, empty="No tags were written. Write some with `musicsim tags write PROPERTY`.")
