"""Options, library access and output for all commands: results go to stdout, progress and warnings to stderr."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event, Thread
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column, Table

from musicsim import LIBRARY_FILE, library, logs
from musicsim.cli.terminal import errors, printable, safe
from musicsim.errors import MusicsimError
from musicsim.explorer import JobProgress, default_folder, jobs, render_song
from musicsim.explorer.job_progress import track
from musicsim.progress import Progress
from musicsim.storage import writing_to
from musicsim.wording import count, speed, time_left

SOME_FAILED = 3
LINE_EVERY_S = 10.0  # interval between the progress lines that replace the bar in a pipe
_MAX_LISTED = 50

_bars: list[Bar] = []  # progress bars on the screen
_log = logging.getLogger(__name__)

LibraryOption = Annotated[
    Path | None,
    typer.Option(
        "--library", "-l", help="The library's folder.", metavar="FOLDER", envvar="MUSICSIM_LIBRARY", show_envvar=True
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Answer yes to all questions, for scripts.")]
ModelOption = Annotated[str | None, typer.Option("--model", help="Name of a model; the active one by default.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout.")]


@contextmanager
def open_library(folder: Path | None, *, create: bool = False) -> Iterator[library.Library]:
    """Open the library in a folder, or the default library; the error for a damaged database includes its path."""
    with (
        library.Library.open(folder or default_folder(), create=create) as opened,
        writing_to(opened.folder),
        logs.open_log(opened.folder),
    ):
        try:
            yield opened
        except (MusicsimError, typer.Exit, typer.BadParameter):
            raise
        except (UnicodeDecodeError, sqlite3.DatabaseError) as error:  # a string in the database is not UTF-8
            raise library.damage_error(opened.folder / LIBRARY_FILE, error) from error
        except Exception:
            opened.check()
            raise


def emit(value: Any) -> None:
    """Print one JSON value."""
    print(json.dumps(value, ensure_ascii=True, default=str), flush=True)  # noqa: T201  # this is the program's output


def report(facts: Mapping[str, Any], sentence: str, *, as_json: bool) -> None:
    """Print the outcome of a command: the facts as JSON, or a sentence."""
    emit(facts) if as_json else echo(sentence)


def show(
    columns: Collection[Column | str],
    rows: Iterable[Iterable[object]],
    *,
    caption: str | Sequence[str] = "",
    title: str = "",
    empty: str = "",
) -> None:
    """Print a table; without columns, omit the header. Cells that are None are empty.

    A list of texts, as a cell or caption, is shown as one line per text. Without rows, only the sentence `empty` is
    shown, if it is given.
    """
    rows = list(rows)
    if empty and not rows:
        echo(empty)
        return
    table = Table(*columns, show_header=bool(columns), caption=_lines_of(caption) or None, title=safe(title) or None)
    for row in rows:
        table.add_row(*map(_lines_of, row))
    Console(emoji=False).print(table)


def _lines_of(cell: object) -> str:
    if isinstance(cell, list | tuple):
        return "\n".join(map(safe, cell))
    return "" if cell is None else safe(cell)


def warn(words: str, text: object) -> None:
    """Print a warning to stderr."""
    errors.print(f"[yellow]{words}:[/yellow] {safe(text)}", highlight=False, soft_wrap=True)


def confirm(question: str, *, yes: bool) -> bool:
    """Print a question to stderr and return the answer; `yes` skips it, and no input (as in a script) means no."""
    if yes:
        return True
    for bar in _bars:  # a running bar would overwrite the question
        bar.stop()
    try:
        return typer.confirm(printable(question), default=False, err=True)
    except typer.Abort:
        errors.print()
        return False
    finally:
        for bar in _bars:
            bar.start()


def song_json(song: library.Song) -> dict[str, Any]:
    """Return a song as JSON, with its path."""
    return render_song(song, with_files=True)


@contextmanager
def progress_bar(*, is_noted: bool = True) -> Iterator[Progress]:
    """Print progress to stderr; with `is_noted`, also add a line about the command to the library's log."""
    logged = _log_command() if is_noted else nullcontext()
    with logged, _bar() if errors.is_terminal else _lines() as progress:
        yield progress


@contextmanager
def _bar() -> Iterator[Progress]:
    columns = (
        BarColumn(bar_width=24),
        TextColumn("{task.fields[counted]}"),
        TextColumn("{task.fields[speed]}"),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.description}"),
    )
    with Bar(*columns, console=errors, transient=True) as bar:
        task = bar.add_task("", total=None, counted="", speed="", left="")
        _bars.append(bar)

        def progress(message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
            speed, left = _pace(facts)
            share = facts.get("share", done / total if total else 0.0)
            bar.update(
                task, description=safe(message)[:50], completed=share, total=1.0 if share or total else None,
                counted=f"{done:,} of {total:,}" if total else "", speed=speed, left=left,
            )  # fmt: skip

        try:
            yield progress
        finally:
            _bars.remove(bar)


@contextmanager
def _lines() -> Iterator[Progress]:
    """Print a line at regular intervals, for pipes and log files; short commands print none."""
    latest, has_ended = [""], Event()

    def progress(message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
        counted = f"{done:,} of {total:,}" if total else ""
        share = f"{facts['share']:.0%}" if "share" in facts else ""
        latest[0] = " · ".join(filter(None, (counted, share, *_pace(facts), printable(message))))

    def repeat() -> None:
        while not has_ended.wait(LINE_EVERY_S):
            errors.print(latest[0] or "working", markup=False, highlight=False, soft_wrap=True)

    printer = Thread(target=repeat, daemon=True)
    printer.start()
    try:
        yield progress
    finally:
        has_ended.set()
        printer.join()


def _pace(facts: Mapping[str, Any]) -> tuple[str, str]:
    pace, left = facts.get("songs_per_second"), facts.get("seconds_left")
    return speed(pace) if pace else "", time_left(left) if left is not None else ""


@contextmanager
def job_bar(lib: library.Library, kind: str, **arguments: Any) -> Iterator[JobProgress]:
    """Run a command as a job after the library's other jobs, and show progress; the app can show and cancel it."""
    job_id = lib.jobs.create(kind, arguments, pid=os.getpid())
    running = jobs.current(lib)
    if running is not None and running.id != job_id:
        title = jobs.job_kinds()[running.kind].title
        errors.print(f"Waiting for the current job: {title}. This command starts when it ends.", highlight=False)
    try:
        with progress_bar() as show, track(lib, job_id, show, waits=True) as progress:
            yield progress
    except KeyboardInterrupt:  # Typer ends the command without a message
        errors.print("stopped; finished work is kept. Run the same command to resume.")
        raise


@contextmanager
def _log_command() -> Iterator[None]:
    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    started, outcome = time.monotonic(), "failed"
    try:
        yield
        outcome = "done"
    except KeyboardInterrupt:
        outcome = "stopped"
        raise
    finally:
        words = (logs.Public(command), logs.Public(outcome), logs.duration(time.monotonic() - started))
        _log.info("command %s: %s in %s", *words)


def plain(text: str) -> str:
    """Escape the bytes of a file name that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def echo(text: str) -> None:
    """Print one line to stdout; bytes that are not UTF-8 are escaped."""
    typer.echo(plain(text))


def failure_json(failure: library.Failure) -> dict[str, str]:
    """Return the failure to add a file, as JSON."""
    return {"path": str(failure.path), "reason": failure.reason, "kind": failure.kind}


def show_failures(failures: Sequence[library.Failure]) -> None:
    """Print the first unreadable files and the number of skipped files to stderr."""
    broken = [f for f in failures if f.kind not in library.SKIPPED]
    for failure in broken[:_MAX_LISTED]:
        warn("not added", failure.reason)
    if len(broken) > _MAX_LISTED:
        warn("not added", f"{len(broken) - _MAX_LISTED} more; `musicsim failed` lists all of them.")
    for kind in library.SKIPPED:
        if n_files := sum(f.kind == kind for f in failures):
            warn("skipped", f"{count(n_files, f'{kind} file')}; `musicsim failed` lists them, --anyway adds them.")
