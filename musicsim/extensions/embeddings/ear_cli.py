"""The commands that add a learned ear, and one that understands texts."""

from pathlib import Path
from typing import Annotated, Any

import typer

from musicsim.cli import console
from musicsim.errors import LibraryError
from musicsim.extensions.embeddings.adding import add_ear as run_add_ear
from musicsim.extensions.embeddings.adding import add_text as run_add_text
from musicsim.extensions.embeddings.front_ends import FRONT_ENDS
from musicsim.extensions.embeddings.weights import ABOUT, find_weights, install_weights
from musicsim.public import refuse_visitors


def add_ear(
    file: Annotated[
        Path | None,
        typer.Argument(help="An ONNX network, or the package musicnn; by default, musicnn is downloaded after asking."),
    ] = None,
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
    front_end: Annotated[
        str,
        typer.Option(
            help=f"Mel spectrogram that the network takes as input: {', '.join(FRONT_ENDS)}. Not for musicnn.",
            metavar="NAME",
        ),
    ] = "",
    output: Annotated[
        str, typer.Option(help="Output that contains the vector, if the network has several.", metavar="NAME")
    ] = "",
    every: Annotated[int, typer.Option(help="Use one of this many patches; 1 uses all, and takes longest.")] = 6,
    name: Annotated[str, typer.Option(help="Name of the model of the network alone; the file's by default.")] = "",
    use: Annotated[bool, typer.Option(help="Make the model of Sound and the network together the active one.")] = True,
    yes: console.YesOption = False,
) -> None:
    """Describe all songs with an audio network, and compare them by Sound and the network together.

    After Ctrl-C, run the same command to resume. Songs that are added later are described, too.
    """
    source = _take_weights(yes=yes) if file is None else file.expanduser().absolute()
    options: dict[str, Any] = {"front_end": front_end, "output": output, "every": every, "model_name": name, "use": use}
    try:
        with console.open_library(library) as lib, console.job_bar(lib, "ear", path=str(source), **options) as progress:
            known = {record.id for record in lib.models.all()}
            ids = run_add_ear(lib, source, progress, **options)
            names = [lib.models.get(model_id).name for model_id in ids]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if as_json:
        console.emit({"models": names, "in_use": use})
    else:
        outcome = "was already there" if ids[1] in known else "was added"
        console.echo(f"{names[1]} {outcome}{', and is now in use' if use else ''}. {names[0]} is the network alone.")


def _take_weights(*, yes: bool) -> Path:
    """Return the folder of MusiCNN; if it is not installed, ask whether to download it."""
    refuse_visitors()
    folder = find_weights()
    if folder is not None:
        return folder
    if not console.confirm(f"Download {ABOUT}?", yes=yes):
        raise LibraryError("nothing was downloaded. Use --yes to download MusiCNN, or name a file.")
    return install_weights()


def add_text(
    audio: Annotated[Path, typer.Argument(help="ONNX file of the audio network.", metavar="AUDIO")],
    text: Annotated[Path, typer.Argument(help="ONNX file of the text network.", metavar="TEXT")],
    tokenizer: Annotated[Path, typer.Argument(help="File tokenizer.json of the text network.", metavar="TOKENIZER")],
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
    every: Annotated[int, typer.Option(help="Use one of this many windows; 1 uses all, and takes longest.")] = 3,
    name: Annotated[str, typer.Option(help="Name of the model; the name of the audio network by default.")] = "",
) -> None:
    """Describe all songs with an audio network, so that words without a match find songs by sound.

    The model in use stays the same. After Ctrl-C, run the same command to resume. Songs that are added later are
    described, too.
    """
    audio, text, tokenizer = (file.expanduser().absolute() for file in (audio, text, tokenizer))
    paths = {"audio": str(audio), "text": str(text), "tokenizer": str(tokenizer)}
    options: dict[str, Any] = {"every": every, "model_name": name}
    try:
        with console.open_library(library) as lib, console.job_bar(lib, "text", **paths, **options) as progress:
            record = lib.models.get(run_add_text(lib, audio, text, tokenizer, progress, **options))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if as_json:
        console.emit({"model": record.name, "dimensions": record.n_dimensions})
    else:
        console.echo(f"{record.name} was added. Try: musicsim similar --words 'sounds like calm piano'")
