"""The option of `musicsim playlist` that renders a mix."""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from musicsim.cli.playlist import OutputFile, note_output
from musicsim.extensions.mixtape.mixtape import render_mix
from musicsim.library import Library, Song

_MixOption = Annotated[
    Path | None, typer.Option(help="Also render a mix, 30 s of each song, crossfaded: .m4a, .opus, .flac or .wav.")
]


def add_mix_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--mix`` to the command that generates playlists."""
    signature = inspect.signature(command)
    mix_parameter = inspect.Parameter("mix", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_MixOption)

    @wraps(command)
    def run(*, context: typer.Context, mix: Path | None = None, **options: Any) -> None:
        def render(library: Library, songs: Sequence[Song]) -> list[str]:
            if mix is None:
                return []
            rendered = render_mix(library, songs, mix.expanduser().absolute())
            return [f"not in the mix: {song.label} ({why})" for song, why in rendered.left_out]

        note_output(context, OutputFile("mix", mix, render))
        command(context=context, **options)

    parameters = [*signature.parameters.values(), mix_parameter]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
