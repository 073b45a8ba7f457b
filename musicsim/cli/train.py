"""The ``musicsim train`` command."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from musicsim.cli.console import JsonOption, LibraryOption, echo, emit, errors, job_bar, open_library, show
from musicsim.cli.options import take_request
from musicsim.cli.terminal import STOPPED
from musicsim.explorer import JobProgress
from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.refresh.model_text import describe_split, figures, headline, name_for, report_of, source_rows
from musicsim.explorer.requests.training import TrainingRequest
from musicsim.library import Library
from musicsim.progress import Canceled


@take_request(TrainingRequest)
def train(request: TrainingRequest, library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """Press Ctrl-C once to stop and keep the best model so far, or twice to discard it.

    Examples:
        musicsim train --from plays --quick
        musicsim train --from genre --use
    """
    with open_library(library) as lib:
        name = name_for(lib, request.supervision, request.name)
        try:
            with _watch(lib, request.job_arguments(name)) as watcher:
                model_id = learn(lib, request.settings, name, watcher, use=request.use)
        except Canceled:
            errors.print("stopped; nothing was saved.")
            raise typer.Exit(STOPPED) from None
        record = lib.models.get(model_id)
        report = report_of(lib, record)
    if as_json:
        emit({"model": record.name, "in_use": record.is_active, "report": report})
    else:
        _show(record.name, report, is_active=record.is_active, was_asked=request.use)


class _Terminal:
    """Progress of a training run in the terminal, shown as a bar; Ctrl-C stops the run."""

    def __init__(self, progress: JobProgress) -> None:
        self._progress, self._line = progress, ""
        self.interrupts = 0

    def __call__(self, message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
        if self.interrupts > 1:
            raise Canceled
        self._progress(self._line or message, done, total, **facts)

    def trace(self, point: dict[str, Any]) -> None:
        self._progress.trace(point)
        if "setting" in point:
            self._line = f"{point['setting']}: held out {point['quality']:.3f}"
            return
        strength = "all songs" if point["C"] is None else f"C {point['C']:g}"
        quality = f", held out {point['quality']:.3f}" if "quality" in point else ""
        self._line = f"{strength}: gap {point['gap']:.1%}{quality}"

    def is_enough(self) -> bool:
        return self.interrupts > 0 or self._progress.is_enough()


@contextmanager
def _watch(library: Library, arguments: dict[str, Any]) -> Iterator[_Terminal]:
    """Print a progress bar to stderr and count Ctrl-C presses. After the second press, Ctrl-C interrupts as usual."""
    with job_bar(library, "train", **arguments) as progress:
        watcher = _Terminal(progress)

        def interrupt(*_: object) -> None:
            watcher.interrupts += 1
            if watcher.interrupts == 1:
                errors.print("stopping and keeping the best model so far; press Ctrl-C again to discard it.")
            else:
                signal.signal(signal.SIGINT, signal.default_int_handler)

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield watcher
        finally:
            signal.signal(signal.SIGINT, before)


def _show(name: str, report: dict[str, Any], *, is_active: bool, was_asked: bool) -> None:
    _, sentence = headline(report)
    echo(f"{name}: {sentence}")
    for rows, caption in ((figures(report), describe_split(report)), (source_rows(report), "")):
        if rows:
            show(rows[0], [row.values() for row in rows], caption=caption)
    if is_active:
        typer.echo("The model is now in use.")
    elif was_asked:
        typer.echo("The model is not in use, because it is not significantly better.")
    else:
        echo(f"To use the model, run: musicsim models use {name!r}")
