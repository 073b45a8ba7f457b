"""A benchmark over private collections: contributions without names, and their random-effects table."""

from musicsim.hooks import Command, Extension, Section

EXTENSION = Extension(
    # command options wrap in alphabetical order: this name comes after model_comparison, whose --against it reads
    name="pooling",
    commands={"pool": Command("cli:pool", "Combine contributions of several libraries.", "Research")},
    command_options={"evaluate": "cli:evaluate_options"},
    sections=(
        Section(
            "research",
            "page:draw",
            title="Contribute",
            tab="contribute",
            group="More measurements",
            place=25,
            about="A small file about a model's gain here, without names.",
        ),
    ),
)
