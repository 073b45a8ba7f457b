"""Read-only copies of a library for visitors, each in one file without the music."""

from musicsim.hooks import Command, Extension

EXTENSION = Extension(
    name="bundles",
    commands={
        "snapshot": Command(
            "cli:snapshot",
            "Write a copy of the library for visitors to one file, to use with `musicsim app --snapshot FILE`.",
            "Host",
        )
    },
    command_options={"app": "cli:add_snapshot_option"},
)
