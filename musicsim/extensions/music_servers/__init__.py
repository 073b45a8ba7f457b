"""Music servers that speak Subsonic: their songs, stars and plays come here, and playlists go there."""

from musicsim.hooks import Command, Extension, Job, Section

EXTENSION = Extension(
    name="music_servers",
    commands={"server": Command("cli:group", "Connect music servers (Subsonic, OpenSubsonic).", "Other programs")},
    jobs={"sync": Job("job:run", "Syncing a music server")},
    sections=(Section("library", "Servers", "page:draw", tab="servers", needs_songs=False, place=70),),
    tables="tables",
    hooks={"folder_of_remote_songs": "server_songs:SERVERS_FOLDER"},
    backup_files=("servers.json",),
)
