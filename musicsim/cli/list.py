"""The command ``musicsim list``."""

from typing import Annotated

import typer

from musicsim.cli.console import JsonOption, LibraryOption, clock, emit, open_library, show, song_json, whole
from musicsim.cli.options import take_request
from musicsim.explorer.requests.listing import ListRequest, in_order


@take_request(ListRequest)
def list_songs(
    request: ListRequest,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    search: Annotated[str, typer.Option("--search", "-s", help="Part of a title or artist.")] = "",
) -> None:
    with open_library(library) as lib:
        songs = in_order((song for song in lib.songs() if song.matches(search)), request)
    if as_json:
        emit([song_json(song) for song in songs])
        return
    heads = ["id", "title", "artist", "album", "year", "genre", "length", "tempo", "key", "LUFS", "bright", "energy"]
    rows = [
        (
            *(s.id, s.title, s.artist or "", s.album or "", s.year or "", s.genre or "", clock(s.duration_s)),
            *(whole(s.tempo), s.key_words, whole(s.loudness), whole(s.brightness), whole(s.energy)),
        )
        for s in songs
    ]
    show(heads, rows)
