"""The ``musicsim guess`` command."""

from enum import StrEnum
from typing import Annotated

import typer

from musicsim.cli import JsonOption, LibraryOption, ModelOption, emit, open_library, show, song_json
from musicsim.explorer import snapshot_under
from musicsim.extensions.guessing.guess import MIN_RIGHT, N_VOTES, USUAL_VOTES, enter_guesses, guess_labels
from musicsim.wording import count


class _Target(StrEnum):
    GENRE = "genre"
    ARTIST = "artist"


class _Voters(StrEnum):
    VECTORS = "vectors"
    CODES = "codes"


def guess(
    target: Annotated[_Target, typer.Argument(help="Field to guess.")] = _Target.GENRE,
    library: LibraryOption = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="Save the guesses as edits if at least 80% of guesses like these are right. Files are not changed.",
        ),
    ] = False,
    by: Annotated[
        _Voters,
        typer.Option("--voters", help="Songs that vote: those with the nearest vectors or the nearest learned codes."),
    ] = _Voters.VECTORS,
    votes: Annotated[
        int | None,
        typer.Option(help="Minimum number of votes. Default: 6 of 10 for a genre, 2 of 3 for an artist.", min=1),
    ] = None,
) -> None:
    """Examples:
    musicsim guess genre
    musicsim guess artist --votes 3 --accept
    """
    min_votes = USUAL_VOTES[target] if votes is None else votes
    if min_votes > N_VOTES[target]:
        raise typer.BadParameter(
            f"{min_votes} is more than {N_VOTES[target]}, the number of songs that vote.", param_hint="--votes"
        )
    with open_library(library) as lib:
        result = guess_labels(snapshot_under(lib, model), target, by=by)
        guesses = [(guess, guess.new_tags(min_votes)) for guess in result.select(min_votes)]
        saves = accept and result.can_accept_all(min_votes)
        changes = enter_guesses(lib, [guess for guess, _ in guesses], min_votes) if saves else []
        n_accepted = len({change.song_id for change in changes})
    if as_json:
        shown = [{"song": song_json(g.song), **tags, "votes": g.votes, "of": g.n_voters} for g, tags in guesses]
        judged = result.judged
        emit({"guesses": shown, "right": judged.right, "judged": judged.n_judged, "accepted": n_accepted})
        return
    if guesses:
        rows = [
            (g.song.id, g.song.title, g.song.by, ", ".join(tags.values()), f"{g.votes[0]} of {g.n_voters}")
            for g, tags in guesses
        ]
        show(("id", "title", "by", target.value, "votes"), rows)
    typer.echo(result.summary(min_votes))
    if accept and guesses and not saves:
        typer.echo(
            f"Nothing was saved, because fewer than {MIN_RIGHT:.0%} of guesses like these are known to be right. Raise "
            "--votes, or accept guesses one by one in the app."
        )
    elif accept:
        typer.echo(f"Saved for {count(n_accepted, 'song')}. The files were not changed.")
