"""The command ``musicsim failed``."""

import typer

from musicsim.cli.console import SOME_FAILED, JsonOption, LibraryOption, echo, emit, failure_json, open_library
from musicsim.library.stores.files import SKIPPED


def list_failures(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    with open_library(library) as lib:
        failures = lib.files.failures()
    if as_json:
        emit([failure_json(f) for f in failures])
    else:
        for failure in failures:
            echo(failure.reason)
    if any(f.kind not in SKIPPED for f in failures):
        raise typer.Exit(SOME_FAILED)
