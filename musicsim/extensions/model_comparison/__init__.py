"""Comparison of Sound with imported vectors on the same songs, before and after training."""

from musicsim.hooks import Extension, Section

EXTENSION = Extension(
    name="model_comparison",
    command_options={"evaluate": "cli:evaluate_options"},
    sections=(Section("research", "page:draw", title="Ours vs. theirs", tab="against", group="Evaluate", place=20),),
)
