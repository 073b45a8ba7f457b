"""Similar songs for music players and music-server plugins."""

from musicsim.hooks import Command, Extension, Section

EXTENSION = Extension(
    name="player_engine",
    commands={
        "players": Command("cli:players", "Let music players and music-server plugins find similar songs.", "Connect")
    },
    sections=(Section("library", "page:draw", tab="servers", place=72),),
    routes="routes:players_routes",
    backup_files=("players.json",),
    hooks={"connections": "access:player_access"},
)
