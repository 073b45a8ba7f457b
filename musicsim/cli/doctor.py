"""Commands for when something is wrong: what it is, what mends it, and a report of it for others."""

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from musicsim.cli._console import SOME_FAILED, JsonOption, LibraryOption, emit, open_library, plain, progress_bar


def doctor(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Do what can be done without losing anything, and say what was done.")
    ] = False,
) -> None:
    """Examine the library and this machine, and say what to do; exit code 3: problems remain."""
    from musicsim.explorer.health.doctor import PROBLEM, repair

    folder, done = _folder(library), []
    with ExitStack() as stack:
        opened = _opened(folder, stack)
        findings = _found(folder, opened)
        if fix and any(finding.fix for finding in findings):
            with progress_bar() as tell:
                done = repair(opened, findings, tell)
            findings = _found(folder, opened)
    if as_json:
        emit({"findings": [asdict(finding) for finding in findings], "done": done})
    else:
        for sentence in done:
            typer.echo(f"done     {sentence}")
        for finding in findings:
            typer.echo(plain(_line(finding)))
    if any(finding.level == PROBLEM for finding in findings):
        raise typer.Exit(SOME_FAILED)


def report(
    file: Annotated[Path, typer.Argument(help="Where to write it; JSON if the name ends in .json, else text.")],
    library: LibraryOption = None,
) -> None:
    """Write a file for a bug report: findings, versions, settings, sizes and log, without titles, names or paths."""
    from musicsim.explorer.health.doctor import Finding
    from musicsim.explorer.health.report import bug_report, write_report

    folder = _folder(library)
    with ExitStack() as stack:
        opened = _opened(folder, stack)
        lib = None if isinstance(opened, Finding) else opened
        write_report(bug_report(_found(folder, opened), folder, lib), file.expanduser().absolute())
    typer.echo(plain(f"{file} is written. Read it before you send it."))


_MAX_NAMES = 3


def _line(finding: Any) -> str:
    """A finding for people: how bad, what, what to do, and the first of what it is about."""
    names = ", ".join(finding.names[:_MAX_NAMES]) + ", …" * (len(finding.names) > _MAX_NAMES)
    about = f" ({names})" if names else ""
    return f"{finding.level:<8} {finding.what}: {finding.words}{about}. {finding.remedy}".rstrip()


def _opened(folder: Path, stack: ExitStack) -> Any:
    """The library in a folder, or what keeps it from being opened."""
    from musicsim.errors import LibraryError, NotFoundError
    from musicsim.explorer.health.doctor import NOTE, PROBLEM, Finding

    try:
        return stack.enter_context(open_library(folder))
    except NotFoundError as error:
        return Finding("library", NOTE, "there is none yet", "Add some music.", (str(error),))
    except LibraryError as error:
        return Finding("library", PROBLEM, "cannot be opened", "Restore a backup.", (str(error),))


def _found(folder: Path, opened: Any) -> list[Any]:
    """What is found of the machine, and of the library where it opens."""
    from musicsim.explorer.health.doctor import Finding, examine
    from musicsim.explorer.health.machine import look_at
    from musicsim.explorer.progress import teller

    if isinstance(opened, Finding):
        return [*look_at(folder), opened]
    with progress_bar(is_noted=False) as tell:
        return [*look_at(folder), *examine(opened, teller(tell))]


def _folder(library: Path | None) -> Path:
    from musicsim.explorer.libraries import default_folder

    return (library or default_folder()).expanduser().absolute()
