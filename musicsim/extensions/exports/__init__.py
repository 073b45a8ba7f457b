"""Exports for other programs: vectors, neighbors, the map, splits, tags, passages, plays and answers."""

from musicsim.hooks import Command, Extension, JobKind, Section

EXTENSION = Extension(
    name="exports",
    commands={
        "export": Command(
            "cli:export", "Export vectors, neighbors, the map, splits, tags, passages, plays or answers.", "Research"
        )
    },
    jobs={"export": JobKind("export:run_job", "Exporting")},
    sections=(
        Section(
            "research",
            "page:draw",
            title="Exports",
            tab="exports",
            place=60,
            needs_songs=False,
            about="Maps, tags and neighbors as files for other programs.",
        ),
    ),
    routes="routes:routes",
)
