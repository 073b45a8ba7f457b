"""Blind comparison of two playlists generated for the same request."""

from musicsim.hooks import Extension, Section

EXTENSION = Extension(name="blind_lists", sections=(Section("playlist", "Which is better?", "page:draw", place=15),))
