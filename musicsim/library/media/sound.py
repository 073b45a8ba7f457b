"""Songs that can be played, from their files or from elsewhere.

The hook ``sound`` is a module with two functions. ``songs_with_sound(library, song_ids) -> set[int]`` returns the songs
that it can play. ``respond(library, song, request) -> Response | None`` serves a browser that plays one of them.
"""

from collections.abc import Collection

from musicsim.hooks import load_hooks
from musicsim.library.library import Library
from musicsim.library.stores.songs import Song
from musicsim.public import is_public


def has_sound(library: Library, song: Song) -> bool:
    if song.path.is_file() or is_public():  # only the owner may play songs from elsewhere
        return song.path.is_file()
    return bool(songs_elsewhere(library, [song.id]))


def songs_elsewhere(library: Library, song_ids: Collection[int]) -> set[int]:
    """Return the ids of the songs that an extension can play."""
    return {song_id for sound in load_hooks("sound") for song_id in sound.songs_with_sound(library, song_ids)}
