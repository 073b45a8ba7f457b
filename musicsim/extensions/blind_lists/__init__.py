"""Blind comparison of two playlists generated for the same request."""

from musicsim.hooks import Extension, Section

EXTENSION = Extension(
    name="blind_lists", sections=(Section("playlist", "page:draw", title="Which is better?", place=15),)
)
