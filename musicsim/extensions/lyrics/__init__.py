"""Words in lyrics, used as labels, as a search filter, and as a representation for models."""

from musicsim.hooks import Extension

EXTENSION = Extension(
    name="lyrics",
    tables="store",
    representations="encoder:REPRESENTATIONS",
    hooks={"song_words": "reading", "text_filter": "reading:find_songs"},
)
