"""Evaluation of playlists: methods predict the held-out second half of a list from its first half."""

from musicsim.hooks import Extension, JobKind, Section

EXTENSION = Extension(
    name="continuation",
    command_options={"evaluate": "cli:evaluate_options"},
    jobs={"continue": JobKind("continuation:run_job", "Continuing held-out lists", unit="continuation")},
    sections=(
        Section(
            "research",
            "page:draw",
            title="Playlists",
            tab="playlists",
            group="More measurements",
            place=30,
            about="How well the second half of a playlist is predicted.",
        ),
    ),
)
