"""Guesses of missing labels from similar songs, with their measured accuracy."""

from musicsim.hooks import Command, Extension, Section

EXTENSION = Extension(
    name="guessing",
    commands={
        "guess": Command("cli:guess", "Guess a missing genre, or artist and album, from similar songs.", "Learn")
    },
    sections=(
        Section("library", "Artists", "page:draw_artists", tab="artists", group="Tidy up", place=55),
        Section("library", "Genres", "page:draw_genres", tab="genres", group="Tidy up", place=61),
    ),
)
