"""Music servers with a Subsonic API: import their songs, stars and plays, and send them playlists."""

from musicsim.hooks import Command, Extension, JobKind, Section

EXTENSION = Extension(
    name="music_servers",
    commands={"server": Command("cli:group", "Connect music servers (Subsonic, OpenSubsonic).", "Connect")},
    jobs={"sync": JobKind("fetch:run", "Syncing a music server")},
    sections=(
        Section("library", "page:draw", tab="servers", place=70),
        Section("playlists", "playlist_page:draw_written", title="On music servers", place=40),
    ),
    tables="server_songs",
    remote_folder="servers",
    hooks={
        "connections": "connections:check",
        "foreign_ids": "foreign_ids:ServerIds",
        "last_plays": "server_songs:last_plays",
        "playlist_servers": "outlets:playlist_outlets",
        "playlist_targets": "playlist_page:target",
        "sound": "remote_sound",
    },
    backup_files=("servers.json",),
)
