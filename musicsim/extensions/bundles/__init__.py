"""Read-only copies of a library for visitors, in one file without its music."""

from musicsim.hooks import Command, Extension

EXTENSION = Extension(
    name="bundles",
    commands={
        "snapshot": Command(
            "cli:snapshot",
            "Write a copy of the library for visitors as one file, for `musicsim app --snapshot FILE`.",
            "Maintain",
        )
    },
    command_options={"app": "cli:add_snapshot_option"},
)
