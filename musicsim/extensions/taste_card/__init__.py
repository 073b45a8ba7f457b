"""Taste card: how much each part of the sound counts for a listener, according to the answers in Compare."""

from musicsim.hooks import Command, Extension, Section

EXTENSION = Extension(
    name="taste_card",
    commands={
        "answers taste": Command("cli:show_taste", "Show how much rhythm, timbre and harmony count for a listener.")
    },
    sections=(Section("answers", "page:draw"),),
)
