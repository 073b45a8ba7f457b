"""Blind comparison of two playlists generated for the same request."""

from musicsim.hooks import Extension, Section

EXTENSION = Extension(
    name="blind_lists",
    sections=(
        Section(
            "research",
            "page:draw",
            title="Which is better?",
            tab="blind_lists",
            group="More measurements",
            place=51,
            about="Two playlists from different models, without their names.",
        ),
    ),
)
