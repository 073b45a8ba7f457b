"""File tags written by request: tempo, key, ReplayGain, region and moods, with a preview, a backup and undo."""

from musicsim.hooks import Command, Extension, JobKind, Section

EXTENSION = Extension(
    name="tag_writing",
    commands={
        "tags": Command(
            "cli:group", "Write file tags to your music files, with a backup, and undo it.", "Improve", is_main=True
        )
    },
    jobs={
        "write_tags": JobKind("writing:run_write", "Writing file tags", unit="file"),
        "undo_tags": JobKind("undoing:run_undo", "Undoing file tags", unit="file"),
    },
    sections=(Section("library", "page:draw", title="Write file tags", tab="write_tags", group="Tidy up", place=70),),
)
