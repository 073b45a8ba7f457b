"""Blind test of the reasons of playlists: which of two reasons is true?"""

from musicsim.hooks import Command, Extension, Section

EXTENSION = Extension(
    name="blind_reasons",
    commands={
        "answers reasons": Command("cli:show_reasons", "Show how often listeners found the true reason of a step.")
    },
    sections=(
        Section(
            "research",
            "page:draw",
            title="Which reason is true?",
            tab="blind_reasons",
            group="More measurements",
            place=52,
            about="Whether you hear the reasons that playlists give.",
        ),
    ),
)
