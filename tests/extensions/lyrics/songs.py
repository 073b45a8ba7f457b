"""Songs with lyrics."""

from musicsim.extensions.lyrics.store import LyricsStore, ReadWords, UnreadSong

__all__ = ["sing_by_kind"]


def sing_by_kind(library):
    """Lyrics whose words go with the kind of sound; one word that all say, and one of each song's own."""
    kind_of = {song.id: song.genre.lower() for song in library.songs()}
    LyricsStore(library).put(
        ReadWords(
            UnreadSong(file.song_id, path, file.mtime_ns, None),
            {kind_of[file.song_id]: 3, "la": 9, f"own{file.song_id}": 1},
        )
        for path, file in library.files.known().items()
    )
