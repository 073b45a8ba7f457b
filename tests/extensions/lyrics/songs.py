"""Songs with lyrics."""

from musicsim.extensions.lyrics.store import LyricsStore, UnreadSong

__all__ = ["sing_by_kind"]


def sing_by_kind(library):
    """Add lyrics with words for each kind of sound, one word for all songs, and a unique word per song."""
    kind_of = {song.id: song.genre.lower() for song in library.songs()}
    LyricsStore(library).put(
        (
            UnreadSong(file.song_id, path, file.mtime_ns, None),
            {kind_of[file.song_id]: 3, "la": 9, f"own{file.song_id}": 1},
        )
        for path, file in library.files.list_known().items()
    )
