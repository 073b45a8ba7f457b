"""Similarity by factor: one figure each for timbre, rhythm and harmony, per pair of songs."""

from musicsim.hooks import Command, Extension

EXTENSION = Extension(
    name="factors",
    commands={
        "factors": Command(
            "cli:show_factors", "Find similar songs, and compare them in timbre, rhythm and harmony.", "Listen"
        )
    },
    http_router="routes:router",
    hooks={"below_why": "why:describe_factors"},
)
