"""A mix of a playlist in one sound file: thirty seconds of each song, crossfaded at equal loudness."""

from musicsim.hooks import Extension

EXTENSION = Extension(name="mixtape")
