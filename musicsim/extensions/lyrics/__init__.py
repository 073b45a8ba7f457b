"""Words of lyrics as labels, as a filter, and as a representation of models."""

from musicsim.hooks import Extension

EXTENSION = Extension(
    name="lyrics",
    tables="tables",
    hooks={
        "representations": "encoder:REPRESENTATIONS",
        "song_words": "song_words",
        "text_filter": "song_words:find_songs",
    },
)
