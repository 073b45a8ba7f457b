"""The options of ``musicsim playlist`` for a mix."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from musicsim.cli import OutputFile, add_options, note_output
from musicsim.explorer import options_of
from musicsim.extensions.mixtape.cue import write_cue
from musicsim.extensions.mixtape.mixtape import Mix, render_mix
from musicsim.extensions.mixtape.request import MixRequest
from musicsim.library import Library, Song, atomic_path
from musicsim.wording import clock

_HELP = {name: f"Mix: {option.help}" for name, option in options_of(MixRequest).items()}
_SECONDS = options_of(MixRequest)["seconds"]


@add_options
def add_mix_option(
    command: Callable[..., None],
    *,
    mix: Annotated[
        Path | None,
        typer.Option(help="Also write the playlist as one audio file, a mix: .m4a, .mp3, .opus, .flac or .wav."),
    ] = None,
    mix_seconds: Annotated[
        float, typer.Option(help=_HELP["seconds"], min=_SECONDS.min, max=_SECONDS.max)
    ] = _SECONDS.default,
    whole: Annotated[bool, typer.Option("--whole", help=_HELP["whole"])] = False,
    beats: Annotated[int | None, typer.Option(help=_HELP["beats"])] = None,
    mix_order: Annotated[bool, typer.Option("--mix-order", help=_HELP["reorder"])] = False,
    cue: Annotated[bool, typer.Option("--cue", help="Mix: Also write a cue sheet next to it.")] = False,
    **values: Any,
) -> None:
    if mix is None and (whole or cue or mix_order or beats is not None):
        raise typer.BadParameter("--whole, --beats, --mix-order and --cue need a mix: add --mix FILE.")
    crossfade_s = min(MixRequest().crossfade_s, mix_seconds / 2)
    try:
        request = MixRequest(seconds=mix_seconds, whole=whole, crossfade_s=crossfade_s, beats=beats, reorder=mix_order)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    target = mix.expanduser().absolute() if mix else None
    sheet = target.with_suffix(".cue") if target and cue else None

    def render(library: Library, songs: Sequence[Song]) -> list[str]:
        if target is None:
            return []
        rendered = render_mix(library, songs, target, request)
        if sheet is not None:
            with atomic_path(sheet) as temporary:
                temporary.write_text(write_cue(rendered, target.name, target.stem), encoding="utf-8", newline="")
        return _describe(rendered, request)

    note_output(values["context"], OutputFile("mix", mix, render))
    note_output(values["context"], OutputFile("cue", sheet, lambda _library, _songs: []))  # written with the mix
    command(**values)


def _describe(mix: Mix, request: MixRequest) -> list[str]:
    """Return the songs that are not in the mix, and for fades on the beat or a new order, the songs that are."""
    notes = [f"not in the mix: {song.label} ({reason})" for song, reason in mix.left_out]
    if request.beats is None and not request.reorder:
        return notes
    fades = ["start", *(fade.words for fade in mix.fades)]
    lines = zip(mix.starts, mix.songs, fades, strict=True)
    return notes + [f"mix {clock(start_s)} {song.label} ({words})" for start_s, song, words in lines]
