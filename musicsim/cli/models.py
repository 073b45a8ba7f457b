"""The command group ``musicsim models``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli.console import JsonOption, LibraryOption, emit, job_bar, open_library, report, show
from musicsim.explorer import (
    MODEL_FILE_ENDING,
    RepresentationSettings,
    add_representation,
    free_name,
    import_model_file,
    stale_reason,
)
from musicsim.explorer.models.files import save_model_file
from musicsim.explorer.models.representations import list_addable
from musicsim.explorer.refresh.model_text import headline, kind_words, report_of
from musicsim.explorer.rendering import render_model

_Name = Annotated[str, typer.Argument(help="Name of a model, as shown by `musicsim models list`.")]

group = typer.Typer(no_args_is_help=True)


def list_models(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """List the library's models and their verdicts, and mark the active one.

    Examples:
        musicsim models list
        musicsim models list --json
    """
    with open_library(library) as lib:
        rows = [
            render_model(record, report)
            | {"words": kind_words(record), "settings": record.settings, "stale": stale_reason(lib, record)}
            | {"report": report or None}
            for record in lib.models.all()
            for report in [report_of(lib, record)]
        ]
    if as_json:
        emit(rows)
        return
    lines = []
    for row in rows:
        verdict = headline(row["report"])[0] if row["report"] else ""
        facts = [row[name] for name in ("name", "words", "songs", "dimensions")]
        lines.append(["*" if row["in_use"] else "", *facts, "; ".join(filter(None, (verdict, row["stale"])))])
    show(("", "name", "description", "songs", "dimensions", "verdict"), lines)


def use(name: _Name, library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """Make a model the active one.

    Examples:
        musicsim models use Sound
        musicsim models use "My ears" --library ~/jazz
    """
    with open_library(library) as lib:
        record = lib.models.find(name)
        lib.models.activate(record.id)
    report({"model": record.name}, f"{record.name} is now in use.", as_json=as_json)


def rename(
    name: _Name,
    to: Annotated[str, typer.Argument(help="New name of the model.", metavar="NEW_NAME")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rename a model.

    Examples:
        musicsim models rename "From plays" Mine
        musicsim models rename Mine "My ears" --json
    """
    with open_library(library) as lib:
        record = lib.models.find(name)
        lib.models.rename(record.id, to)
        renamed = lib.models.get(record.id).name
    report({"model": renamed}, f"{record.name} was renamed to {renamed}.", as_json=as_json)


def delete(name: _Name, library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """Delete a model. Built-in models cannot be deleted. If the model was in use, Sound replaces it.

    Examples:
        musicsim models delete Mine
        musicsim models delete "My ears" --library ~/jazz
    """
    with open_library(library) as lib:
        record = lib.models.find(name)
        lib.models.delete(record.id)
        active = lib.models.get()
    facts = {"model": record.name, "in_use": active.name}
    report(facts, f"{record.name} was deleted; {active.name} is now in use.", as_json=as_json)


def export(
    name: _Name,
    file: Annotated[Path | None, typer.Argument(help="Output file; by default, NAME.musicsim.")] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export a model, without songs, to one file for use in other libraries.

    Examples:
        musicsim models export Mine
        musicsim models export Mine for-anna.musicsim
    """
    with open_library(library) as lib:
        record = lib.models.find(name)
        target = file or Path(record.name.replace("/", "_") + MODEL_FILE_ENDING)
        save_model_file(lib, record.id, target.expanduser().absolute())
    report({"model": record.name, "file": str(target)}, f"{record.name} was written to {target}.", as_json=as_json)


def import_model(
    file: Annotated[Path, typer.Argument(help="A file written by `musicsim models export`.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import a model from another library, and apply it to all songs.

    Examples:
        musicsim models import anna.musicsim
        musicsim models import anna.musicsim --library ~/jazz
    """
    path = file.expanduser().absolute()
    with open_library(library) as lib, job_bar(lib, "take_model", path=str(path)) as progress:
        model_id = import_model_file(lib, path, progress)
        name = lib.models.get(model_id).name
    report({"model": name}, f"{name} was imported; `musicsim models use {name!r}` activates it.", as_json=as_json)


def add(
    representation: Annotated[
        str,
        typer.Argument(
            help="ppk, histogram, tfidf, gmm, semantic (tags predicted from sound), tags, harmony, rhythm, "
            "or one from an extension. An unknown name lists all choices."
        ),
    ],
    library: LibraryOption = None,
    as_json: JsonOption = False,
    codewords: Annotated[int, typer.Option(min=2, max=4096, help="Codewords (ppk, histogram, tfidf).")] = 1024,
    tau: Annotated[int, typer.Option(min=1, help="Codewords per frame (top-τ).")] = 4,
    name: Annotated[str, typer.Option(help="Name of the model.")] = "",
) -> None:
    """Add a model with a different representation of all songs, for comparison and training.

    Examples:
        musicsim models add rhythm
        musicsim models add tfidf --codewords 512 --name Words
    """
    if representation not in list_addable():
        raise typer.BadParameter(f"REPRESENTATION must be one of {', '.join(list_addable())}, not {representation!r}.")
    if tau > codewords:
        raise typer.BadParameter(f"--tau {tau} must be at most --codewords {codewords}.")
    settings = RepresentationSettings(representation, codewords, tau)
    with open_library(library) as lib:
        new_name = free_name(lib, name or settings.name)
        with job_bar(lib, "represent", name=new_name, settings=asdict(settings)) as progress:
            model_id = add_representation(lib, settings, new_name, progress)
        record = lib.models.get(model_id)
    sentence = f"{record.name} was added; `musicsim models use {record.name!r}` activates it."
    report({"model": record.name, "dimensions": record.n_dimensions}, sentence, as_json=as_json)


for command in (use, rename, delete, export, add):
    group.command()(command)
group.command("list")(list_models)
group.command("import")(import_model)
