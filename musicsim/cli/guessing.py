"""Command that guesses labels of songs that have none."""

from enum import StrEnum
from typing import Annotated

import typer
from rich.table import Table

from musicsim.cli._console import (
    JsonOption,
    LibraryOption,
    ModelOption,
    emit,
    open_library,
    safe,
    show,
    song_json,
)

__all__ = ["register"]


class _Target(StrEnum):
    GENRE = "genre"
    ARTIST = "artist"


class _Voters(StrEnum):
    VECTORS = "vectors"
    CODES = "codes"


def register(app: typer.Typer) -> None:
    """Add the command of this module to the program."""
    app.command()(guess)


def guess(
    target: Annotated[_Target, typer.Argument(help="What songs are without.")] = _Target.GENRE,
    library: LibraryOption = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Enter the guesses as edits; the files stay as they are.")
    ] = False,
    by: Annotated[
        _Voters, typer.Option(help="Who votes: the nearest songs, or those with the nearest learned codes.")
    ] = _Voters.VECTORS,
    votes: Annotated[
        int | None,
        typer.Option(help="Only what has so many votes: 6 of 10 for a genre, 2 of 3 for an artist.", min=1),
    ] = None,
) -> None:
    """Guess the genre, or artist and album, of songs that have none, from songs that sound like them."""
    from musicsim.explorer.guess import USUAL_VOTES, guess_labels
    from musicsim.explorer.snapshot import snapshot_under

    least = USUAL_VOTES[target] if votes is None else votes
    with open_library(library) as lib:
        found = guess_labels(snapshot_under(lib, model), target, by=by)
        kept = [g for g in found.guesses if g.votes[0] >= least]
        entered = [g.entered(least) for g in kept]
        if accept:
            tags = {tag for labels in entered for tag in labels}
            lib.edits.replace(tags, {g.song.id: labels for g, labels in zip(kept, entered, strict=True)})
    if as_json:
        guesses = [
            {"song": song_json(g.song), **labels, "votes": g.votes, "of": g.n_voters}
            for g, labels in zip(kept, entered, strict=True)
        ]
        emit({"guesses": guesses, "right": found.right, "judged": found.n_judged, "accepted": accept})
        return
    table = Table("id", "title", "by", target.value, "votes")
    for g, labels in zip(kept, entered, strict=True):
        said = ", ".join(labels.values())
        cells = g.song.id, g.song.title, g.song.by, said, f"{g.votes[0]} of {g.n_voters}"
        table.add_row(*(safe(cell) for cell in cells))
    show(table)
    if least in found.right:
        typer.echo(
            f"Of {found.n_judged:,} songs whose {target.value} is known, {found.right[least]:.0%} of such guesses "
            "are right."
        )
