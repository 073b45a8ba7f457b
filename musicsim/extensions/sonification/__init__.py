"""Codewords, clusters and other edges of the playlist graph as sound, from the songs of the library."""

from musicsim.hooks import Command, Extension

EXTENSION = Extension(
    name="sonification",
    commands={
        "sonify": Command("cli:sonify", "Hear a codeword, a cluster or another edge of the playlist graph.", "Research")
    },
)
