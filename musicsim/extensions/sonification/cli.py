"""The ``musicsim sonify`` command."""

from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli import JsonOption, LibraryOption, ModelOption, echo, emit, open_library, progress_bar, show, song_json
from musicsim.errors import LibraryError
from musicsim.explorer import describe_codewords, snapshot_under
from musicsim.extensions.sonification.grains import find_codeword_grains, find_edge_grains, load_codebook
from musicsim.extensions.sonification.rendering import ENDINGS, check_ending, render_grains

_KINDS = ("codeword", "edge")


def sonify(
    kind: Annotated[str, typer.Argument(help="codeword or edge.", metavar="KIND")],
    name: Annotated[str, typer.Argument(help="Number of the codeword, or name of the edge.")],
    file: Annotated[Path, typer.Argument(help=f"File to write: {' or '.join(ENDINGS)}.")],
    n: Annotated[
        int | None, typer.Option("--pieces", min=1, max=500, help="Number of pieces. [default: 24 or 10]")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--piece-seconds", min=0.05, max=30, help="Length of a piece. [default: .25 or 3]")
    ] = None,
    library: LibraryOption = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """A codeword: the frames nearest to it, from different songs. An edge, such as a cluster: its central songs.

    Examples:
        musicsim sonify codeword 417 417.wav
        musicsim sonify edge cluster-16:4 cluster.flac --piece-seconds 5
    """
    if kind not in _KINDS:
        raise typer.BadParameter(f"{kind!r} must be one of {', '.join(_KINDS)}.", param_hint="KIND")
    if kind == "codeword" and not (name.isascii() and name.isdigit()):
        raise typer.BadParameter(f"{name!r} must be the number of a codeword.", param_hint="NAME")
    target = file.expanduser().absolute()
    try:
        check_ending(target)  # before the songs are searched
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from error
    with open_library(library) as lib, progress_bar() as progress:
        if kind == "codeword":
            grains = find_codeword_grains(lib, int(name), n=n or 24, seconds=seconds or 0.25, progress=progress)
            words = describe_codewords(load_codebook(lib)[1], [int(name)])[0]
        else:
            grains = find_edge_grains(snapshot_under(lib, model), name, n=n or 10, seconds=seconds or 3.0)
            words = name
        try:
            written = render_grains(grains, target, progress=progress)
        except OSError as error:
            raise LibraryError(f"{target} cannot be written ({error.strerror or error}).") from error
    if as_json:
        pieces = [{"song": song_json(one.song), "start_s": one.start_s, "seconds": one.seconds} for one in written]
        emit({"file": str(target), "words": words, "pieces": pieces})
        return
    rows = [(f"{at * one.seconds:.2f} s", one.song.label, f"{one.start_s:.2f} s") for at, one in enumerate(written)]
    show(("at", "song", "in the song"), rows)
    left_out = f" {len(grains) - len(written)} could not be read." if len(written) < len(grains) else ""
    echo(f"{words}: {len(written)} pieces written to {target}.{left_out}")
