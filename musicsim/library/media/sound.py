"""Songs that can be played: from their files, or by an extension.

The hook ``sound`` is a module with two functions. ``songs_with_sound(library, song_ids) -> set[int]`` returns the songs
that it can play. ``respond(library, song, request) -> Response | None`` answers a browser's request to play a song.
"""

from collections.abc import Collection

from musicsim.hooks import load_hooks
from musicsim.library.library import Library
from musicsim.library.stores.songs import Song
from musicsim.public import is_public


def has_sound(library: Library, song: Song) -> bool:
    if song.path.is_file() or is_public():  # visitors can play only files
        return song.path.is_file()
    return bool(songs_elsewhere(library, [song.id]))


def songs_elsewhere(library: Library, song_ids: Collection[int]) -> set[int]:
    """Return the ids of the songs that an extension can play."""
    return {song_id for sound in load_hooks("sound") for song_id in sound.songs_with_sound(library, song_ids)}
