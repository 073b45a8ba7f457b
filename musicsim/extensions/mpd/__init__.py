"""Playlists in MPD: in its queue, among its stored playlists, and a queue that never runs out."""

from musicsim.hooks import Command, Extension, Section

EXTENSION = Extension(
    name="mpd",
    needs=("mpd",),
    commands={
        "mpd": Command(
            "cli:group",
            "Queue and save playlists in MPD, at MPD_HOST and MPD_PORT or as set on the Library page.",
            "Other programs",
        )
    },
    sections=(Section("library", "Servers", "page:draw", tab="servers", needs_songs=False, place=71),),
    backup_files=("mpd.json",),
    hooks={"playlist_targets": "page:target"},
)
