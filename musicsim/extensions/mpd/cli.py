"""Commands for MPD: queue and save playlists, and keep the queue filled."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli import PlaylistSongs, SavedOption, console, load_or_generate, take_request
from musicsim.explorer import PlaylistRequest
from musicsim.extensions.mpd.client import UPDATE_ADVICE, Mpd, mpd_address
from musicsim.extensions.mpd.keep_filled import QueueFiller
from musicsim.extensions.mpd.keep_filled import keep_filled as follow
from musicsim.library import Song
from musicsim.wording import count

group = typer.Typer(no_args_is_help=True)


@group.command()
@take_request(PlaylistRequest)
def queue(
    request: PlaylistRequest,
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
    saved: SavedOption = None,
    replace: Annotated[bool, typer.Option("--replace", help="Clear the queue first.")] = False,
    play: Annotated[bool, typer.Option("--play", help="Start playing at the first of these songs.")] = False,
    model: console.ModelOption = None,
) -> None:
    """Append a generated or saved playlist to MPD's queue.

    Songs that MPD does not have are listed, and the exit code is then 3.

    Examples:
        musicsim mpd queue --first 12 --play
        musicsim mpd queue --saved Evening --replace
    """
    with _open(library, request, saved, model) as (chosen, mpd):
        unknown = mpd.queue(chosen.songs, replace=replace, play=play)
        notes = _notes(chosen, mpd, unknown)
    _report("queued", chosen.songs, unknown, notes, as_json=as_json)


@group.command()
@take_request(PlaylistRequest)
def save(
    request: PlaylistRequest,
    name: Annotated[str, typer.Argument(help="Name of the playlist in MPD.")],
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
    saved: SavedOption = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the playlist with this name in MPD.")] = False,
    model: console.ModelOption = None,
) -> None:
    """Save a generated or saved playlist as a stored playlist in MPD.

    Songs that MPD does not have are listed, and the exit code is then 3.

    Examples:
        musicsim mpd save Evening --saved Evening
        musicsim mpd save Today --minutes 60 --replace
    """
    with _open(library, request, saved, model) as (chosen, mpd):
        unknown = mpd.save(name, chosen.songs, replace=replace)
        notes = _notes(chosen, mpd, unknown)
    _report(f"saved as “{name}”", chosen.songs, unknown, notes, as_json=as_json)


@contextmanager
def _open(
    library: Path | None, request: PlaylistRequest, saved: str | None, model: str | None
) -> Iterator[tuple[PlaylistSongs, Mpd]]:
    with console.open_library(library) as lib:
        chosen = load_or_generate(lib, request, saved, model)
        with Mpd(lib, mpd_address(lib)) as mpd:
            yield chosen, mpd


def _notes(chosen: PlaylistSongs, mpd: Mpd, unknown: Sequence[Song]) -> list[str]:
    is_early = bool(unknown) and mpd.is_updating()
    return [*chosen.notes, *([UPDATE_ADVICE] if is_early else [])]


def _report(
    action: str, songs: Sequence[Song], unknown: Sequence[Song], notes: Sequence[str], *, as_json: bool
) -> None:
    ids = {song.id for song in unknown}
    sent = [song for song in songs if song.id not in ids]
    if as_json:
        known, lacking = (list(map(console.song_json, part)) for part in (sent, unknown))
        console.emit({"songs": known, "unknown": lacking, "notes": notes})
    else:
        console.echo("\n".join([f"{count(len(sent), 'song')} {action} in MPD.", *notes]))
        for song in unknown:
            console.warn("MPD does not have", song.label)
    if unknown:
        raise typer.Exit(console.SOME_FAILED)


@group.command()
@take_request(PlaylistRequest)
def keep_filled(
    request: PlaylistRequest,
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
    ahead: Annotated[int, typer.Option(min=1, max=100, help="Number of songs to keep after the current song.")] = 5,
    apart: Annotated[
        int, typer.Option(min=0, help="Minimum number of songs before a repeat; at most half of the library.")
    ] = 100,
    model: console.ModelOption = None,
) -> None:
    """Keep MPD's queue filled with the next songs of a playlist, until Ctrl-C.

    The command continues if MPD is restarted. It takes the options of a playlist, except the length. With --json, each
    song is one object on its own line.

    Examples:
        musicsim mpd keep-filled
        musicsim mpd keep-filled --like 12 --ahead 10
    """

    def report(sentence: str) -> None:
        console.errors.print(console.safe(sentence), highlight=False, soft_wrap=True)

    with console.open_library(library) as lib:
        filler = QueueFiller(lib, request, model=model, n_ahead=ahead, n_apart=apart)
        for appended in follow(filler, lib, mpd_address(lib), report):
            for song, reason in appended.songs:
                if as_json:
                    console.emit({"song": console.song_json(song), "reason": reason})
                else:
                    console.echo(f"{song.label} ({reason})" if reason else song.label)
            for song in appended.unknown:
                console.warn("MPD does not have", song.label)
