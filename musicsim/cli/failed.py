"""The command ``musicsim failed``."""

import typer

from musicsim.cli._console import SOME_FAILED, JsonOption, LibraryOption, emit, failure_json, open_library, plain


def failed(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """List files that were not added, each with its reason: failed or skipped."""
    from musicsim.library.stores.files import SKIPPED

    with open_library(library) as lib:
        failures = lib.files.failures()
    if as_json:
        emit([failure_json(f) for f in failures])
    else:
        for failure in failures:
            typer.echo(plain(failure.reason))
    if any(f.kind not in SKIPPED for f in failures):
        raise typer.Exit(SOME_FAILED)
