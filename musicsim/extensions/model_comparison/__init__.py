"""Comparison of Sound with imported vectors on the same songs, before and after training."""

from musicsim.hooks import Extension, Section

EXTENSION = Extension(
    name="model_comparison",
    command_options={"evaluate": "cli:evaluate_options"},
    sections=(
        Section(
            "research",
            "page:draw",
            title="Ours vs. theirs",
            tab="against",
            group="More measurements",
            place=20,
            about="Sound next to a model with your own vectors.",
        ),
    ),
)
