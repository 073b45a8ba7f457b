"""Songs that can be played: from their files, or by an extension."""

from collections.abc import Collection

from musicsim.hooks import RemoteSound
from musicsim.library.library import Library
from musicsim.library.stores.songs import Song
from musicsim.public import is_public
from musicsim.registry import load_hooks


def has_sound(library: Library, song: Song) -> bool:
    return not find_silent(library, [song])


def find_silent(library: Library, songs: Collection[Song]) -> set[int]:
    """Return the ids of the songs that cannot be played now: they have no file, and no extension plays them."""
    away = {song.id for song in songs if not song.path.is_file()}
    return away if is_public() or not away else away - songs_elsewhere(library, away)  # visitors can play only files


def songs_elsewhere(library: Library, song_ids: Collection[int]) -> set[int]:
    """Return the ids of the songs that an extension can play."""
    return {song_id for sound in load_hooks(RemoteSound) for song_id in sound.songs_with_sound(library, song_ids)}
