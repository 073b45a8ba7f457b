"""Similar songs for players and plugins of music servers."""

from musicsim.hooks import Command, Extension, Section

EXTENSION = Extension(
    name="player_engine",
    commands={
        "players": Command(
            "cli:players",
            "Give similar songs to players and plugins of music servers (docs/servers.md).",
            "Other programs",
        )
    },
    sections=(Section("library", "Servers", "page:draw", tab="servers", needs_songs=False, place=72),),
    routes="routes:players_routes",
    backup_files=("players.json",),
    hooks={"checks": "health:check"},
)
