"""Command that guesses labels of songs that have none."""

from enum import StrEnum
from typing import Annotated

import typer

from musicsim.cli._console import JsonOption, LibraryOption, ModelOption, emit, open_library, show, song_json
from musicsim.explorer.snapshot.snapshot import snapshot_under
from musicsim.extensions.guessing.guess import MIN_RIGHT, N_VOTES, USUAL_VOTES, enter_guesses, guess_labels


class _Target(StrEnum):
    GENRE = "genre"
    ARTIST = "artist"


class _Voters(StrEnum):
    VECTORS = "vectors"
    CODES = "codes"


def guess(
    target: Annotated[_Target, typer.Argument(help="The missing field to guess.")] = _Target.GENRE,
    library: LibraryOption = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="Save the guesses as edits, where at least 80 % of such guesses are right; the files are not changed.",
        ),
    ] = False,
    by: Annotated[
        _Voters, typer.Option(help="Who votes: the nearest songs, or those with the nearest learned codes.")
    ] = _Voters.VECTORS,
    votes: Annotated[
        int | None,
        typer.Option(
            help=("Only guesses with at least this many votes: 6 of 10 for a genre, 2 of 3 for an artist."), min=1
        ),
    ] = None,
) -> None:
    """Guess a missing genre, or artist and album, from similar songs."""
    least = USUAL_VOTES[target] if votes is None else votes
    if least > N_VOTES[target]:
        raise typer.BadParameter(
            f"{least} should be at most {N_VOTES[target]}: no more songs vote.", param_hint="--votes"
        )
    with open_library(library) as lib:
        found = guess_labels(snapshot_under(lib, model), target, by=by)
        kept = found.kept(least)
        entered = [g.entered(least) for g in kept]
        saves = accept and found.can_accept_all(least)
        n_accepted = len({change.song_id for change in enter_guesses(lib, kept, least)}) if saves else 0
    if as_json:
        guesses = [
            {"song": song_json(g.song), **labels, "votes": g.votes, "of": g.n_voters}
            for g, labels in zip(kept, entered, strict=True)
        ]
        judged = found.judged
        emit({"guesses": guesses, "right": judged.right, "judged": judged.n_judged, "accepted": n_accepted})
        return
    if kept:
        rows = [
            (g.song.id, g.song.title, g.song.by, ", ".join(labels.values()), f"{g.votes[0]} of {g.n_voters}")
            for g, labels in zip(kept, entered, strict=True)
        ]
        show(("id", "title", "by", target.value, "votes"), rows)
    typer.echo(found.summary(least))
    if accept and kept and not saves:
        typer.echo(
            f"Nothing was saved, as it is not shown that {MIN_RIGHT:.0%} of such guesses are right: ask for more "
            "--votes, or accept single songs in the app."
        )
    elif accept:
        typer.echo(f"Saved for {n_accepted:,} song{'s' * (n_accepted != 1)}; the files are not changed.")
