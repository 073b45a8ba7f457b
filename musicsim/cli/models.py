"""Commands on similarity models: learn one from listeners, list, use, rename, delete, send and take in models."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from musicsim.cli._console import JsonOption, LibraryOption, emit, errors, open_library, plain, progress_bar, show
from musicsim.cli._options import taking
from musicsim.explorer.progress import Stopped, teller
from musicsim.explorer.requests.training import TrainingRequest

_Name = Annotated[str, typer.Argument(help="Name of a model, as `musicsim models list` shows it.")]
_STOPPED = 130

group = typer.Typer(help="List, use, rename, delete, export, import and add models.", no_args_is_help=True)


# --- training -------------------------------------------------------------------------------------


@taking(TrainingRequest)
def train(request: TrainingRequest, library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """Train a model of similarity, and evaluate it on held-out artists.

    Ctrl-C once stops and keeps the best so far; twice changes nothing.
    """
    from musicsim.explorer.refresh.learned_model import learn
    from musicsim.explorer.refresh.model_text import name_for, report_of

    with open_library(library) as lib:
        with _watched() as watcher:
            try:
                name = name_for(lib, request.supervision, request.name)
                model_id = learn(lib, request.settings, name, watcher, use=request.use)
            except Stopped:
                errors.print("stopped; nothing was kept.")
                raise typer.Exit(_STOPPED) from None
        record = lib.models.get(model_id)
        report = report_of(lib, record)
    if as_json:
        emit({"model": record.name, "in_use": record.is_active, "report": report})
    else:
        _tell(record.name, report, is_active=record.is_active, was_asked=request.use)


class _Terminal:
    """The watcher of a training in the foreground: a bar, and what Ctrl-C asks for."""

    def __init__(self, report: Any) -> None:
        self._report, self._line = report, ""
        self.interrupts = 0

    def tell(self, message: str, done: int = 0, total: int = 0) -> None:
        if self.interrupts > 1:
            raise Stopped
        self._report(message=self._line or message, done=done, total=total)

    def trace(self, point: dict[str, Any]) -> None:
        if "setting" in point:
            self._line = f"{point['setting']}: held out {point['quality']:.3f}"
            return
        strength = "all songs" if point["C"] is None else f"C {point['C']:g}"
        quality = f", held out {point['quality']:.3f}" if "quality" in point else ""
        self._line = f"{strength}: gap {point['gap']:.1%}{quality}"

    def is_enough(self) -> bool:
        return self.interrupts > 0


@contextmanager
def _watched() -> Iterator[_Terminal]:
    """A watcher with a bar on stderr; a third Ctrl-C is the usual one again."""
    with progress_bar() as report:
        watcher = _Terminal(report)

        def interrupted(*_: object) -> None:
            watcher.interrupts += 1
            if watcher.interrupts == 1:
                errors.print("keeping the best so far; Ctrl-C again to leave everything as it was.")
            else:
                signal.signal(signal.SIGINT, signal.default_int_handler)

        before = signal.signal(signal.SIGINT, interrupted)
        try:
            yield watcher
        finally:
            signal.signal(signal.SIGINT, before)


def _tell(name: str, report: dict[str, Any], *, is_active: bool, was_asked: bool) -> None:
    """The verdict for people."""
    from musicsim.explorer.refresh.model_text import figures, headline, judged_on, source_rows

    _, sentence = headline(report)
    typer.echo(plain(f"{name}: {sentence}"))
    for rows, caption in ((figures(report), judged_on(report)), (source_rows(report), "")):
        if rows:
            show(rows[0], [row.values() for row in rows], caption=caption)
    if is_active:
        typer.echo("It is in use now.")
    elif was_asked:
        typer.echo("It is not in use, because it was not shown to be better.")
    else:
        typer.echo(plain(f"To use it: musicsim models use {name!r}"))


# --- models ---------------------------------------------------------------------------------------


def list_models(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """List the models of the library: what they are, how good, and which is in use."""
    from musicsim.explorer.refresh.model_catalogue import stale_reason
    from musicsim.explorer.refresh.model_text import headline, kind_words, report_of

    with open_library(library) as lib:
        rows = [
            {
                "name": record.name,
                "in_use": record.is_active,
                "kind": record.kind,
                "words": kind_words(record),
                "songs": record.n_songs_fitted,
                "dimensions": record.n_dimensions,
                "created_at": record.created_at,
                "settings": record.settings,
                "stale": stale_reason(lib, record),
                "report": report_of(lib, record) or None,
            }
            for record in lib.models.all()
        ]
    if as_json:
        emit(rows)
        return
    lines = []
    for row in rows:
        verdict = headline(row["report"])[0] if row["report"] else ""
        facts = [row[name] for name in ("name", "words", "songs", "dimensions")]
        lines.append(["*" if row["in_use"] else "", *facts, "; ".join(filter(None, (verdict, row["stale"])))])
    show(("", "name", "what it is", "songs", "dimensions", "verdict"), lines)


def use(name: _Name, library: LibraryOption = None) -> None:
    """Use a model."""
    with open_library(library) as lib:
        record = lib.models.named(name)
        lib.models.activate(record.id)
    typer.echo(plain(f"{record.name} is in use now."))


def rename(
    name: _Name, to: Annotated[str, typer.Argument(help="Its new name.")], library: LibraryOption = None
) -> None:
    """Rename a model."""
    with open_library(library) as lib:
        record = lib.models.named(name)
        lib.models.rename(record.id, to)
        renamed = lib.models.get(record.id).name
    typer.echo(plain(f"{record.name} was renamed to {renamed}."))


def delete(name: _Name, library: LibraryOption = None) -> None:
    """Delete a model; the built-in ones cannot be deleted, and Sound replaces a deleted model that was in use."""
    with open_library(library) as lib:
        record = lib.models.named(name)
        lib.models.delete(record.id)
        active = lib.models.get()
    typer.echo(plain(f"{record.name} was deleted; {active.name} is in use."))


def export(
    name: _Name,
    file: Annotated[Path | None, typer.Argument(help=("Output file; NAME.musicsim in this folder by default."))] = None,
    library: LibraryOption = None,
) -> None:
    """Export a model, without any songs, as one file for other libraries."""
    from musicsim.explorer.models.files import FILE_ENDING, save_model_file

    with open_library(library) as lib:
        record = lib.models.named(name)
        target = file or Path(record.name.replace("/", "_") + FILE_ENDING)
        save_model_file(lib, record.id, target.expanduser().absolute())
    typer.echo(plain(str(target)))


def import_model(
    file: Annotated[Path, typer.Argument(help="A file that `musicsim models export` wrote.")],
    library: LibraryOption = None,
) -> None:
    """Import a model from another library, and apply it to all songs."""
    from musicsim.explorer.refresh.model_catalogue import take_model

    with open_library(library) as lib, progress_bar() as report:
        model_id = take_model(lib, file.expanduser().absolute(), teller(report))
        name = lib.models.get(model_id).name
    typer.echo(plain(f"{name} was imported; `musicsim models use {name!r}` activates it."))


def add(
    representation: Annotated[
        str,
        typer.Argument(
            help="ppk, histogram, tfidf, gmm, semantic (tags predicted from sound), tags, harmony, rhythm, "
            "or one that an extension adds; any other name lists them."
        ),
    ],
    library: LibraryOption = None,
    codewords: Annotated[int, typer.Option(min=2, max=4096, help=("Codewords, for ppk, histogram and tfidf."))] = 1024,
    tau: Annotated[int, typer.Option(min=1, help="Codewords per frame (top-τ).")] = 4,
    name: Annotated[str, typer.Option(help="Name of the model.")] = "",
) -> None:
    """Compute other features of all songs, to compare with and to train on."""
    from musicsim.explorer.models.representations import offered
    from musicsim.explorer.refresh.fitting import RepresentationSettings, free_name
    from musicsim.explorer.refresh.model_catalogue import add_representation

    if representation not in offered():
        raise typer.BadParameter(f"REPRESENTATION should be one of {', '.join(offered())}, not {representation!r}.")
    if tau > codewords:
        raise typer.BadParameter(f"--tau {tau} should be at most --codewords {codewords}.")
    settings = RepresentationSettings(representation, codewords, tau)
    with open_library(library) as lib, progress_bar() as report:
        made = add_representation(lib, settings, free_name(lib, name or settings.name), teller(report))
        record = lib.models.get(made)
    typer.echo(plain(f"{record.name} was added; `musicsim models use {record.name!r}` activates it."))


for command in (use, rename, delete, export, add):
    group.command()(command)
group.command("list")(list_models)
group.command("import")(import_model)
