"""Rules: playlists of the songs that meet conditions now, such as tempo, rating, last played or similarity."""

from musicsim.hooks import Command, Extension, Section

EXTENSION = Extension(
    name="rules",
    commands={
        "rules": Command("cli:group", "Save rules, and list the songs that follow them now.", "Listen", is_main=True)
    },
    sections=(
        Section("playlists", "page_actions:show_live", title="Live", place=30),
        Section("playlist", "page:draw", title="Rules"),
    ),
    tables="tables",
    http_router="routes:router",
    hooks={"songs_named": "finding:songs_named"},
)
