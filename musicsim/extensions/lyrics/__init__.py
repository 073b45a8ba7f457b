"""Words of lyrics as labels, as a filter, and as a representation of models."""

from musicsim.hooks import Extension

EXTENSION = Extension(
    name="lyrics",
    tables="store",
    hooks={"representations": "encoder:REPRESENTATIONS", "song_words": "reading", "text_filter": "reading:find_songs"},
)
