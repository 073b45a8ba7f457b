"""The command ``musicsim duplicates``."""

from typing import Annotated

import typer

from musicsim.cli.console import JsonOption, LibraryOption, emit, open_library, show, song_json
from musicsim.errors import NotFoundError
from musicsim.explorer.snapshot.same_sound import groups
from musicsim.wording import clock


def duplicates(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    part: Annotated[tuple[int, int] | None, typer.Option(help="Mark two songs, given by id, as different.")] = None,
    join: Annotated[tuple[int, int] | None, typer.Option(help="Undo --part for two songs, given by id.")] = None,
) -> None:
    with open_library(library) as lib:
        for pair, is_same in ((part, False), (join, True)):
            if pair is not None and not lib.duplicates.judge(pair, is_same=is_same):
                raise NotFoundError(f"{pair[0]} and {pair[1]} are not listed as duplicates.")
        duplicate_groups = groups(lib.songs(), lib.duplicates.pairs())
    if as_json:
        emit([[song_json(song) for song in group] for group in duplicate_groups])
        return
    rows = [
        (number, song.id, song.title, song.by, clock(song.duration_s), song.path)
        for number, group in enumerate(duplicate_groups, 1)
        for song in group
    ]
    show(("group", "id", "title", "artist", "length", "file"), rows)
