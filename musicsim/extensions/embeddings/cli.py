"""Commands that add models with vectors from other programs, and of audio networks."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from musicsim.cli import console
from musicsim.errors import LibraryError
from musicsim.explorer import free_name
from musicsim.extensions.embeddings.adding import add_ear as run_add_ear
from musicsim.extensions.embeddings.adding import add_onnx as run_onnx
from musicsim.extensions.embeddings.adding import add_own_vectors, describe_matches
from musicsim.extensions.embeddings.adding import add_text as run_add_text
from musicsim.extensions.embeddings.musicnn import ABOUT, find_weights, install_weights
from musicsim.extensions.embeddings.networks import ENCODERS, FRONT_ENDS, OnnxModel
from musicsim.extensions.embeddings.representations import Distance
from musicsim.extensions.embeddings.vectors import AboutEmbedding, Matched
from musicsim.public import refuse_visitors

_STOPPED = 130
_MUSICNN = Path("musicnn")


def add_embedding(
    file: Annotated[
        Path,
        typer.Argument(help=".npz, .npy or .parquet file with one vector per song and the song's id, path or hash."),
    ],
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
    name: Annotated[str, typer.Option(help="Name of the model; the file's name by default.")] = "",
    distance: Annotated[
        Distance, typer.Option(help="How vectors are compared: by angle, with 95% of their variance, or as they are.")
    ] = Distance.COSINE,
) -> None:
    """Songs are matched by id, by path (absolute, or relative to a library folder), or by the hash of their file.
    The exit code is 3 if a row was left out or does not match a song in the library.

    Examples:
        musicsim models add-embedding vectors.npz
        musicsim models add-embedding vectors.parquet --name Net
    """
    with console.open_library(library) as lib, console.progress_bar() as progress:
        source = file.expanduser().absolute()
        model_id, about, matched = add_own_vectors(
            lib, source, free_name(lib, name or source.stem), progress, distance=distance
        )
        record = lib.models.get(model_id)
    _show_added(record.name, about, matched, as_json=as_json)


def add_onnx(
    file: Annotated[Path, typer.Argument(help="ONNX file of an audio model, including the weights.")],
    library: console.LibraryOption = None,
    encoder: Annotated[
        str,
        typer.Option(
            help=f"A known network, instead of its sample rate and window: {', '.join(ENCODERS)}.", metavar="NAME"
        ),
    ] = "",
    sample_rate: Annotated[
        int | None, typer.Option(help="Sample rate that the model was trained on, in Hz.", metavar="HZ")
    ] = None,
    window: Annotated[
        float | None, typer.Option(help="Seconds of audio per input to the model.", metavar="SECONDS")
    ] = None,
    as_json: console.JsonOption = False,
    output: Annotated[
        str, typer.Option(help="Output that contains the vector, if the model has several outputs.", metavar="NAME")
    ] = "",
    name: Annotated[str, typer.Option(help="Name of the model; the file's name by default.")] = "",
) -> None:
    """After Ctrl-C, run the same command to resume. The exit code is 3 if some songs have no vector.

    Examples:
        musicsim models add-onnx mert.onnx --encoder mert
        musicsim models add-onnx net.onnx --sample-rate 16000 --window 5
    """
    with _check_numbers():
        onnx = OnnxModel(file.expanduser().absolute(), *_input_of(encoder, sample_rate, window), output)
    try:
        with console.open_library(library) as lib, console.progress_bar() as progress:
            model_id, about, matched = run_onnx(lib, onnx, free_name(lib, name or onnx.path.stem), progress)
            record = lib.models.get(model_id)
    except KeyboardInterrupt:
        console.errors.print("stopped. Run the same command to resume.")
        raise typer.Exit(_STOPPED) from None
    _show_added(record.name, about, matched, as_json=as_json)


def _input_of(encoder: str, sample_rate: int | None, window: float | None) -> tuple[int, float]:
    """Return the sample rate and the window of a known network, unless the user chose others."""
    if encoder:
        if encoder not in ENCODERS:
            raise ValueError(f"encoder={encoder!r} should be one of {', '.join(ENCODERS)}.")
        sample_rate, window = sample_rate or ENCODERS[encoder].sample_rate, window or ENCODERS[encoder].window_s
    if sample_rate is None or window is None:
        raise ValueError("use --encoder NAME, or both --sample-rate HZ and --window SECONDS.")
    return sample_rate, window


@contextmanager
def _check_numbers() -> Iterator[None]:
    """Name a number that is out of range as a parameter of the command."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


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


def add_ear(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="An ONNX network, or the file of the package musicnn. By default, or with the word musicnn, the "
            "package is downloaded after asking."
        ),
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
    every: Annotated[
        int, typer.Option("--stride", help="Use one of this many patches; 1 uses all, and takes longest.")
    ] = 6,
    name: Annotated[str, typer.Option(help="Name of the model of the network alone; the file's by default.")] = "",
    use: Annotated[bool, typer.Option(help="Make the model of Sound and the network together the active one.")] = True,
    yes: console.YesOption = False,
) -> None:
    """Describe all songs with an audio network, and compare them by Sound and the network together.

    After Ctrl-C, run the same command to resume. Songs that are added later are described, too.

    Examples:
        musicsim models add-ear
        musicsim models add-ear musicnn-0.1.0.whl --stride 1
    """
    if file is None or (file == _MUSICNN and not file.exists()):
        source = _take_weights(yes=yes)
    else:
        source = file.expanduser().absolute()
    options: dict[str, Any] = {"front_end": front_end, "output": output, "every": every, "model_name": name, "use": use}
    with (
        _check_numbers(),
        console.open_library(library) as lib,
        console.job_bar(lib, "ear", path=str(source), **options) as progress,
    ):
        known = {record.id for record in lib.models.all()}
        ids = run_add_ear(lib, source, progress, **options)
        names = [lib.models.get(model_id).name for model_id in ids]
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
    with console.progress_bar() as progress:
        return install_weights(progress)


def add_text(
    audio: Annotated[Path, typer.Argument(help="ONNX file of the audio network.", metavar="AUDIO")],
    text: Annotated[Path, typer.Argument(help="ONNX file of the text network.", metavar="TEXT")],
    tokenizer: Annotated[Path, typer.Argument(help="File tokenizer.json of the text network.", metavar="TOKENIZER")],
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
    every: Annotated[
        int, typer.Option("--stride", help="Use one of this many windows; 1 uses all, and takes longest.")
    ] = 3,
    name: Annotated[str, typer.Option(help="Name of the model; the name of the audio network by default.")] = "",
) -> None:
    """Describe all songs with an audio network, so that words without a match find songs by sound.

    The model in use stays the same. After Ctrl-C, run the same command to resume. Songs that are added later are
    described, too.

    Examples:
        musicsim models add-text audio.onnx text.onnx tokenizer.json
        musicsim models add-text audio.onnx text.onnx tokenizer.json --stride 1
    """
    files = {"audio": audio, "text": text, "tokenizer": tokenizer}
    options: dict[str, Any] = {kind: str(file.expanduser().absolute()) for kind, file in files.items()}
    options |= {"every": every, "model_name": name}
    with _check_numbers(), console.open_library(library) as lib, console.job_bar(lib, "text", **options) as progress:
        record = lib.models.get(run_add_text(lib, progress=progress, **options))
    if as_json:
        console.emit({"model": record.name, "dimensions": record.n_dimensions})
    else:
        console.echo(f"{record.name} was added. Try: musicsim similar --words 'sounds like calm piano'")
