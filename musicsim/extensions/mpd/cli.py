"""Commands for MPD: playlists into its queue and its stored playlists, and a queue that never runs out."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli._console import (
    SOME_FAILED,
    JsonOption,
    LibraryOption,
    ModelOption,
    emit,
    errors,
    open_library,
    plain,
    safe,
    song_json,
    warn,
)
from musicsim.cli._options import taking
from musicsim.cli.playlist import AskedSongs, SavedOption, asked_songs
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.extensions.mpd.client import Mpd, mpd_address
from musicsim.extensions.mpd.keep_filled import QueueFiller
from musicsim.extensions.mpd.keep_filled import keep_filled as follow
from musicsim.library import Song

group = typer.Typer(no_args_is_help=True)


@taking(PlaylistRequest)
def queue(
    request: PlaylistRequest,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    saved: SavedOption = None,
    replace: Annotated[bool, typer.Option("--replace", help="Clear the queue first.")] = False,
    play: Annotated[bool, typer.Option("--play", help="Play from the first of these songs.")] = False,
    model: ModelOption = None,
) -> None:
    """Append a generated or saved playlist to MPD's queue.

    Exits with code 3 if MPD does not have some of the songs, which are listed.
    """
    with _opened(library, request, saved, model) as (asked, mpd):
        unknown = mpd.queue(asked.songs, replace=replace, play=play)
    _tell("queued", asked.songs, unknown, asked.notes, as_json=as_json)


@taking(PlaylistRequest)
def save(
    request: PlaylistRequest,
    name: Annotated[str, typer.Argument(help="What MPD is to call the playlist.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
    saved: SavedOption = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a playlist of this name in MPD.")] = False,
    model: ModelOption = None,
) -> None:
    """Save a generated or saved playlist among MPD's stored playlists.

    Exits with code 3 if MPD does not have some of the songs, which are listed.
    """
    with _opened(library, request, saved, model) as (asked, mpd):
        unknown = mpd.save(name, asked.songs, replace=replace)
    _tell(f"saved as “{name}”", asked.songs, unknown, asked.notes, as_json=as_json)


@contextmanager
def _opened(
    library: Path | None, request: PlaylistRequest, saved: str | None, model: str | None
) -> Iterator[tuple[AskedSongs, Mpd]]:
    """Choose the songs, and connect to MPD."""
    with open_library(library) as lib:
        asked = asked_songs(lib, request, saved, model)
        with Mpd(lib, mpd_address(lib)) as mpd:
            yield asked, mpd


def _tell(done: str, songs: Sequence[Song], unknown: Sequence[Song], notes: Sequence[str], *, as_json: bool) -> None:
    ids = {song.id for song in unknown}
    sent = [song for song in songs if song.id not in ids]
    if as_json:
        emit({"songs": list(map(song_json, sent)), "unknown": list(map(song_json, unknown)), "notes": list(notes)})
    else:
        typer.echo(plain("\n".join([f"{len(sent)} songs {done} in MPD.", *notes])))
        for song in unknown:
            warn("MPD does not have", song.label)
    if unknown:
        raise typer.Exit(SOME_FAILED)


@taking(PlaylistRequest)
def keep_filled(
    request: PlaylistRequest,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    ahead: Annotated[int, typer.Option(min=1, max=100, help="Songs to come after the one that plays.")] = 5,
    apart: Annotated[
        int,
        typer.Option(
            min=0,
            help="A song comes again after so many others at the earliest; in a small library after half of its songs.",
        ),
    ] = 100,
    model: ModelOption = None,
) -> None:
    """Follow what MPD plays and append the next songs of the walk, until it is stopped by Ctrl+C.

    It goes on when MPD comes back after a restart. Its options are those of a playlist but for its length; with --json
    each song is one object on a line.
    """

    def tell(sentence: str) -> None:
        errors.print(safe(sentence), highlight=False, soft_wrap=True)

    with open_library(library) as lib:
        filler = QueueFiller(lib, request, model=model, n_ahead=ahead, n_apart=apart)
        for appended in follow(filler, lib, mpd_address(lib), tell):
            for song, reason in appended.songs:
                if as_json:
                    emit({"song": song_json(song), "reason": reason})
                else:
                    typer.echo(plain(f"{song.label} ({reason})" if reason else song.label))
            for song in appended.unknown:
                warn("MPD does not have", song.label)


group.command("queue")(queue)
group.command("save")(save)
group.command("keep-filled")(keep_filled)
