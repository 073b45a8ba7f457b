"""Guesses of missing labels from similar songs, with their measured accuracy."""

from musicsim.hooks import Command, Extension, Section

EXTENSION = Extension(
    name="guessing",
    commands={
        "guess": Command("cli:guess", "Guess a missing genre, or artist and album, from similar songs.", "Improve")
    },
    sections=(
        Section("library", "page:draw_artists", tab="artists", place=55),
        Section("library", "page:draw_genres", tab="genres", place=61),
    ),
)
