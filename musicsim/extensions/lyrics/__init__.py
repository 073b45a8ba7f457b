"""Words of lyrics as labels, as a filter, and as something that models compare."""

from musicsim.hooks import Extension

EXTENSION = Extension(name="lyrics")
