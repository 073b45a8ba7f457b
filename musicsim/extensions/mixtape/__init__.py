"""A playlist as a mix in one audio file: a part of each song, at equal loudness, with fades on the beat."""

from musicsim.hooks import Extension, Section

EXTENSION = Extension(
    name="mixtape",
    command_options={"playlist": "cli:add_mix_option"},
    sections=(Section("open playlist", "page:draw"),),
    routes="mixes:mix_routes",
)
