"""The album as a unit: lists of albums, similar albums, and playlists whose steps are albums."""

from musicsim.hooks import Command, Extension, Section

EXTENSION = Extension(
    name="albums",
    commands={
        "albums": Command(
            "cli:group", "List albums, find similar albums, and generate playlists of whole albums.", "Listen"
        )
    },
    sections=(Section("library", "page:draw", title="Albums", tab="albums", place=15),),
    playlist_edits={"Keep movements together": "movements:keep_together"},
    http_router="routes:router",
)
