"""Commands that add models with vectors from other programs."""

from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli import console
from musicsim.explorer.refresh.fitting import free_name
from musicsim.extensions.embeddings.adding import add_onnx as run_onnx
from musicsim.extensions.embeddings.adding import add_own_vectors, describe_matches
from musicsim.extensions.embeddings.onnx_models import OnnxModel
from musicsim.extensions.embeddings.store import AboutEmbedding, Matched

_STOPPED = 130


def add_embedding(
    file: Annotated[
        Path,
        typer.Argument(help=".npz, .npy or .parquet file with one vector per song and the song's id, path or hash."),
    ],
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
    name: Annotated[str, typer.Option(help="Name of the model; the file's name by default.")] = "",
) -> None:
    """Songs are matched by id, by path (absolute, or relative to a library folder), or by the hash of their file.
    The exit code is 3 if a row was left out or does not match a song in the library.
    """
    with console.open_library(library) as lib, console.progress_bar() as progress:
        source = file.expanduser().absolute()
        model_id, about, matched = add_own_vectors(lib, source, free_name(lib, name or source.stem), progress)
        record = lib.models.get(model_id)
    _show_added(record.name, about, matched, as_json=as_json)


def add_onnx(
    file: Annotated[Path, typer.Argument(help="ONNX file of an audio model, including the weights.")],
    sample_rate: Annotated[int, typer.Option(help="Sample rate that the model was trained on, in Hz.", metavar="HZ")],
    window: Annotated[float, typer.Option(help="Seconds of audio per input to the model.", metavar="SECONDS")],
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
    output: Annotated[
        str, typer.Option(help="Output that contains the vector, if the model has several outputs.", metavar="NAME")
    ] = "",
    name: Annotated[str, typer.Option(help="Name of the model; the file's name by default.")] = "",
) -> None:
    """After Ctrl-C, run the same command to resume. The exit code is 3 if some songs have no vector."""
    try:
        onnx = OnnxModel(file.expanduser().absolute(), sample_rate, window, output)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        with console.open_library(library) as lib, console.progress_bar() as progress:
            model_id, about, matched = run_onnx(lib, onnx, free_name(lib, name or onnx.path.stem), progress)
            record = lib.models.get(model_id)
    except KeyboardInterrupt:
        console.errors.print("stopped. Run the same command to resume.")
        raise typer.Exit(_STOPPED) from None
    _show_added(record.name, about, matched, as_json=as_json)


def _show_added(name: str, about: AboutEmbedding, matched: Matched, *, as_json: bool) -> None:
    if as_json:
        console.emit({
            "model": name, "vectors": about.n_rows, "dimensions": about.n_dimensions, "songs": len(matched.song_ids),
            "unmatched": matched.n_unmatched, "problems": about.problems,
        })  # fmt: skip
    else:
        console.echo(describe_matches(about, matched))
        for problem in about.problems:
            console.warn("left out", problem)
        console.echo(f"{name} was added. Activate it with `musicsim models use {name!r}`.")
    if matched.n_unmatched or about.problems:
        raise typer.Exit(console.SOME_FAILED)
