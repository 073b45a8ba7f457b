"""The ``musicsim info`` and ``settings`` commands."""

import json
from typing import Annotated

import typer

from musicsim.cli.console import JsonOption, LibraryOption, emit, open_library, show
from musicsim.explorer import jobs, render_fields
from musicsim.explorer.refresh.outdated import pending_upgrade


def info(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """Examples:
    musicsim info
    musicsim info --library ~/jazz --json
    """
    with open_library(library) as lib:
        record, job = lib.models.active(), jobs.current(lib)
        facts = {"library": str(lib.folder), **lib.counts(), "roots": [str(root) for root in lib.files.roots()]}
        renamed = {"features": "n_features", "dimensions": "n_dimensions", "fitted_on_songs": "n_songs_fitted"}
        facts["model"] = record and render_fields(record, "id", "name", **renamed)
        upgrade = pending_upgrade(lib)
        facts["upgrade"] = upgrade and upgrade.words
        facts["job"] = job and render_fields(job, "kind", "state", "done", "total")
    if as_json:
        emit(facts)
        return
    show((), [(name, _words(value)) for name, value in facts.items()])


def _words(value: object) -> object:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')}: {part}" for name, part in value.items() if part is not None)
    if isinstance(value, list):
        return value
    return f"{value:.2f}" if isinstance(value, float) else str("none" if value is None else value)


def settings(
    name: Annotated[str | None, typer.Argument(help="Name of a setting; without it, all settings are listed.")] = None,
    value: Annotated[str | None, typer.Argument(help="New value of the setting.")] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Examples:
    musicsim settings
    musicsim settings shortest_s 20
    """
    with open_library(library) as lib:
        if name is not None and value is not None:
            try:
                is_text = isinstance(lib.settings.get(name), str)
                lib.set_setting(name, value if is_text else json.loads(value))
            except ValueError as error:  # includes JSON errors
                raise typer.BadParameter(f"{name} {value}: {error}") from error
        stored = lib.settings
    if name is not None:
        if name not in stored:
            raise typer.BadParameter(f"the setting {name} does not exist: choose from {', '.join(stored)}")
        stored = {name: stored[name]}
    if as_json:
        emit(stored)
    else:
        for key, setting in stored.items():
            typer.echo(f"{key} {json.dumps(setting)}")
