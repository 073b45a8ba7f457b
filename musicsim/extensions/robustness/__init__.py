"""How much results change if the query is compressed, noisy, louder, shifted, stretched or cut."""

from musicsim.hooks import Extension, Section

EXTENSION = Extension(
    name="robustness",
    command_options={"evaluate": "cli:evaluate_options"},
    sections=(Section("research", "page:draw", title="Robustness", tab="robustness", group="Evaluate", place=30),),
)
