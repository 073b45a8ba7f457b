"""A playlist as a mix in one audio file: thirty seconds of each song, crossfaded at equal loudness."""

from musicsim.hooks import Extension

EXTENSION = Extension(
    name="mixtape", command_options={"playlist": "cli:add_mix_option"}, hooks={"below_playlist": "page:draw"}
)
