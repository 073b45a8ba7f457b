"""The ``musicsim two-ears`` command."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli import (
    JsonOption,
    LibraryOption,
    ModelOption,
    SaveOption,
    echo,
    emit,
    job_bar,
    open_library,
    save_playlist,
    show,
    song_json,
)
from musicsim.explorer import MODEL_FILE_ENDING, import_model_file, snapshot_under
from musicsim.extensions.two_ears.ears import TwoEars
from musicsim.extensions.two_ears.lists import generate_for_both
from musicsim.extensions.two_ears.questions import describe, list_answers, summarize
from musicsim.library import GENERATED

_N_SUREST = 100  # number of dividing triples in the JSON output


def compare_ears(
    friend: Annotated[str, typer.Argument(help="Name of a friend's model, or the .musicsim file to import it from.")],
    library: LibraryOption = None,
    model: ModelOption = None,
    length: Annotated[
        int,
        typer.Option("--length", "-n", min=0, max=500, help="Number of songs. With 0, no playlist for both is made."),
    ] = 0,
    first: Annotated[int | None, typer.Option(help="Id of the playlist's first song; random by default.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The same seed gives the same playlist again.")] = None,
    save: SaveOption = None,
    as_json: JsonOption = False,
) -> None:
    """Both models must be trained on answers. The blind questions are in *Teach > ⋯ > Two ears*.

    Examples:
        musicsim two-ears anna.musicsim
        musicsim two-ears Anna --length 12 --save "Anna and me"
    """
    with open_library(library) as lib:
        if friend.endswith(MODEL_FILE_ENDING):
            path = Path(friend).expanduser().absolute()
            with job_bar(lib, "take_model", path=str(path)) as progress:
                friend = lib.models.get(import_model_file(lib, path, progress)).name
        two = TwoEars([snapshot_under(lib, name) for name in (model, friend)])
        results = summarize(two, list_answers(two, lib))
        both = generate_for_both(two, first, length, random_state=seed) if length else None
        notes = [both.describe(two.people), *save_playlist(lib, save, both.songs, GENERATED)] if both else []
    songs = list(zip(both.songs, [None, *both.reasons], strict=True)) if both else []
    if as_json:
        emit({
            "people": [{"name": ear.person, "model": ear.model_id} | asdict(ear.accuracy) for ear in two.ears],
            "is_difference_shown": two.is_difference_shown, "triples": len(two.triples.triples_),
            "dividing": len(two.find_dividing()), "surest": two.find_dividing(_N_SUREST).tolist(),
            "disagreement": {"dividing": asdict(results.divided), "random": asdict(results.random)},
            "predicted": [{"person": a, "model": b} | asdict(rate) for (a, b), rate in results.predicted.items()],
            "songs": [{"song": song_json(song), "reason": reason} for song, reason in songs],
            "closeness": both.closeness if both else None,
        })  # fmt: skip
        return
    for line in (*two.describe(), *describe(two, results)):
        echo(line)
    if both:
        rows = [(n, song.id, song.title, song.artist or "", reason) for n, (song, reason) in enumerate(songs, 1)]
        show(("", "id", "title", "artist", "reached because"), rows, caption=notes)
