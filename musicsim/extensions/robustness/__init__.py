"""How much results change if the query is compressed, noisy, louder, shifted, stretched or cut."""

from musicsim.hooks import Extension, Section

EXTENSION = Extension(
    name="robustness",
    command_options={"evaluate": "cli:evaluate_options"},
    sections=(
        Section(
            "research",
            "page:draw",
            title="Robustness",
            tab="robustness",
            group="More measurements",
            place=30,
            about="How much neighbors change if songs are compressed, noisy or cut.",
        ),
    ),
)
