"""The ``musicsim doctor`` and ``report`` commands: problems, repairs, and a file for bug reports."""

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli import console
from musicsim.cli.console import SOME_FAILED, JsonOption, LibraryOption, echo, emit, open_library, progress_bar
from musicsim.errors import LibraryError, NotFoundError
from musicsim.explorer import default_folder
from musicsim.explorer.health.doctor import NOTE, PROBLEM, Finding, examine, repair
from musicsim.explorer.health.machine import check_machine
from musicsim.explorer.health.report import bug_report, write_report
from musicsim.library import Library

_MAX_NAMES = 3


def doctor(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    fix: Annotated[bool, typer.Option("--fix", help="Make repairs that cannot lose data, and list them.")] = False,
) -> None:
    """Examples:
    musicsim doctor
    musicsim doctor --fix
    """
    folder, done = _folder(library), []
    with ExitStack() as stack:
        opened = _open(folder, stack)
        findings = _examine(folder, opened)
        if fix and isinstance(opened, Library) and any(finding.fix for finding in findings):
            with progress_bar() as progress:
                done = repair(opened, findings, progress)
            findings = _examine(folder, opened)
    if as_json:
        emit({"findings": [asdict(finding) for finding in findings], "done": done})
    else:
        for sentence in done:
            typer.echo(f"done     {sentence}")
        for finding in findings:
            names = ", ".join(finding.names[:_MAX_NAMES]) + ", …" * (len(finding.names) > _MAX_NAMES)
            about = f" ({names})" if names else ""
            echo(f"{finding.level:<8} {finding.what}: {finding.words}{about}. {finding.remedy}".rstrip())
    if any(finding.level == PROBLEM for finding in findings):
        raise typer.Exit(SOME_FAILED)


def report(
    file: Annotated[Path, typer.Argument(help="File to write; JSON if its name ends in .json, otherwise text.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Examples:
    musicsim report report.txt
    musicsim report report.json --library ~/jazz
    """
    folder = _folder(library)
    with ExitStack() as stack:
        opened = _open(folder, stack)
        lib = None if isinstance(opened, Finding) else opened
        write_report(bug_report(_examine(folder, opened), folder, lib), file.expanduser().absolute())
    console.report({"file": str(file)}, f"{file} was written. Read it before you send it.", as_json=as_json)


def _open(folder: Path, stack: ExitStack) -> Library | Finding:
    try:
        return stack.enter_context(open_library(folder))
    except NotFoundError as error:
        return Finding("library", NOTE, "does not exist yet", "Add some music.", (str(error),))
    except LibraryError as error:
        return Finding("library", PROBLEM, "cannot be opened", "Restore a backup.", (str(error),))


def _examine(folder: Path, opened: Library | Finding) -> list[Finding]:
    if isinstance(opened, Finding):
        return [*check_machine(folder), opened]
    with progress_bar(is_noted=False) as progress:
        return [*check_machine(folder), *examine(opened, progress)]


def _folder(library: Path | None) -> Path:
    return (library or default_folder()).expanduser().absolute()
