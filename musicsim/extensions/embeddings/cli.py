"""Commands that add models of vectors from other programs."""

from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli._console import (
    SOME_FAILED,
    JsonOption,
    LibraryOption,
    emit,
    errors,
    open_library,
    plain,
    progress_bar,
    warn,
)
from musicsim.explorer.refresh.fitting import free_name
from musicsim.extensions.embeddings import adding
from musicsim.extensions.embeddings.onnx_models import OnnxModel
from musicsim.extensions.embeddings.store import AboutEmbedding, Matched

_STOPPED = 130


def add_embedding(
    file: Annotated[
        Path,
        typer.Argument(
            help=("An .npz, .npy or .parquet file with one vector per song and the song's id, path or hash.")
        ),
    ],
    library: LibraryOption = None,
    as_json: JsonOption = False,
    name: Annotated[str, typer.Option(help="Name of the model; the file's name by default.")] = "",
) -> None:
    """Make a model from vectors of another program, to search with and to train on.

    Songs are found by id, by path (from the root, or from a folder of the library), or by the hash of their file.
    Exits with code 3 if rows were left out or match no song of the library.
    """
    with open_library(library) as lib, progress_bar() as progress:
        source = file.expanduser().absolute()
        called = free_name(lib, name or source.stem)
        made, about, matched = adding.add_own_vectors(lib, source, called, progress)
        record = lib.models.get(made)
    _show_added(record.name, about, matched, as_json=as_json)


def add_onnx(
    file: Annotated[Path, typer.Argument(help="An ONNX file, a model of sound, that holds its weights.")],
    sample_rate: Annotated[
        int, typer.Option(help="Samples per second that the model was trained on, in Hz.", metavar="HZ")
    ],
    window: Annotated[float, typer.Option(help="Seconds of sound that the model is given at once.", metavar="SECONDS")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
    output: Annotated[
        str, typer.Option(help="The output that is the vector, of a model that has several.", metavar="NAME")
    ] = "",
    name: Annotated[str, typer.Option(help="Name of the model; the file's name by default.")] = "",
) -> None:
    """Run somebody's ONNX model over all songs, and make a model of its vectors, to search with and to train on.

    Ctrl-C stops; the same command then goes on where it was. Exits with code 3 if songs have no vector.
    """
    try:
        onnx = OnnxModel(file.expanduser().absolute(), sample_rate, window, output)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        with open_library(library) as lib, progress_bar() as progress:
            called = free_name(lib, name or onnx.path.stem)
            made, about, matched = adding.add_onnx(lib, onnx, called, progress)
            record = lib.models.get(made)
    except KeyboardInterrupt:
        errors.print("stopped; the same command goes on where it was.")
        raise typer.Exit(_STOPPED) from None
    _show_added(record.name, about, matched, as_json=as_json)


def _show_added(name: str, about: AboutEmbedding, matched: Matched, *, as_json: bool) -> None:
    """Show what was added; exit with code 3 if vectors were left out."""
    if as_json:
        emit(
            {
                "model": name,
                "vectors": about.n_rows,
                "dimensions": about.n_dimensions,
                "songs": len(matched.song_ids),
                "unmatched": matched.n_unmatched,
                "problems": about.problems,
            }
        )
    else:
        typer.echo(plain(adding.match_words(about, matched)))
        for problem in about.problems:
            warn("left out", problem)
        typer.echo(plain(f"{name} was added; `musicsim models use {name!r}` activates it."))
    if matched.n_unmatched or about.problems:
        raise typer.Exit(SOME_FAILED)
