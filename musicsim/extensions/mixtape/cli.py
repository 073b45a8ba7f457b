"""The option ``--mix`` of ``musicsim playlist``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from musicsim.cli.options import add_options
from musicsim.cli.playlist import OutputFile, note_output
from musicsim.extensions.mixtape.mixtape import render_mix
from musicsim.library import Library, Song


@add_options
def add_mix_option(
    command: Callable[..., None],
    *,
    mix: Annotated[
        Path | None, typer.Option(help="Also write a mix of 30 s per song, crossfaded: .m4a, .opus, .flac or .wav.")
    ] = None,
    **values: Any,
) -> None:
    def render(library: Library, songs: Sequence[Song]) -> list[str]:
        if mix is None:
            return []
        rendered = render_mix(library, songs, mix.expanduser().absolute())
        return [f"not in the mix: {song.label} ({reason})" for song, reason in rendered.left_out]

    note_output(values["context"], OutputFile("mix", mix, render))
    command(**values)
