"""Removal of songs from a library."""

from musicsim.library.db import schema


def forget(library, song_id):
    """Remove a song as if its file had gone and the listener had agreed."""
    with library.write() as connection:
        connection.execute(schema.files.delete().where(schema.files.c.song_id == song_id))
    assert library.files.forget_songs([song_id]) == 1
