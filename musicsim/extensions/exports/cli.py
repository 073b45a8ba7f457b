"""The ``musicsim export`` command."""

from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli import JsonOption, LibraryOption, ModelOption, emit, open_library, plain, progress_bar, take_request
from musicsim.extensions.exports.export import export as write_export
from musicsim.extensions.exports.request import EXPORTS, ExportRequest
from musicsim.wording import count


@take_request(ExportRequest)
def export(
    request: ExportRequest,
    what: Annotated[str, typer.Argument(help=f"One of {', '.join(EXPORTS)}.", metavar="WHAT")],
    file: Annotated[
        Path, typer.Argument(help="File to write: .parquet, .npz, .csv, .txt (MIREX) or .zip (JAMS, Audacity).")
    ],
    library: LibraryOption = None,
    as_json: JsonOption = False,
    model: ModelOption = None,
) -> None:
    if what not in EXPORTS:
        raise typer.BadParameter(f"{what!r} must be one of {', '.join(EXPORTS)}.", param_hint="WHAT")
    with open_library(library) as lib, progress_bar() as progress:
        exported = write_export(lib, what, file, request, model=model, progress=progress)
    n_rows, n_bytes = exported.n_rows, exported.n_bytes
    if as_json:
        emit({"file": str(exported.path), "rows": n_rows, "bytes": n_bytes, "model": exported.model or None})
    else:
        source = f", from the model {exported.model}" if exported.model else ""
        typer.echo(plain(f"{count(n_rows, 'row')}, {n_bytes / 1e6:.1f} MB{source}: {exported.path}"))


_EXAMPLES = "Examples:\n    musicsim export vectors vectors.npz\n    musicsim export map map.parquet --neighbors 15"
export.__doc__ = "  ".join(f"{name}: {kind.help}" for name, kind in EXPORTS.items()) + f"\n\n{_EXAMPLES}"
