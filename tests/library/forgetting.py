"""Songs that leave a library."""

from musicsim.library.db import schema


def forget(library, song_id):
    """As when its file has gone and the listener lets it go."""
    with library.write() as connection:
        connection.execute(schema.files.delete().where(schema.files.c.song_id == song_id))
    assert library.files.forget_songs([song_id]) == 1
