"""Playlists for MPD: added to its queue, saved as stored playlists, or as a queue that never runs out."""

from musicsim.hooks import Command, Extension, Section

EXTENSION = Extension(
    name="mpd",
    commands={
        "mpd": Command(
            "cli:group",
            "Queue and save playlists in MPD. Set MPD's address in MPD_HOST and MPD_PORT, or on the Library page.",
            "Connect",
        )
    },
    sections=(Section("library", "page:draw", tab="servers", place=71),),
    backup_files=("mpd.json",),
    hooks={"playlist_targets": "page:target"},
)
