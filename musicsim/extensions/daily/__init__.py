"""A new mix every day, and automatic pickup of new files."""

from musicsim.hooks import Command, Extension, JobKind, Section

EXTENSION = Extension(
    name="daily",
    commands={
        "daily": Command(
            "cli:daily",
            "Make today's mixes, or change when they are made (docs/listen/daily.md).",
            "Search and playlists",
        ),
        "watch": Command("cli:watch", "Pick up new files and make a mix every day, without the app.", "Library"),
    },
    jobs={
        "pickup": JobKind("watching:pick_up", "Picking up new files", unit="file", uses_pool=True),
        "daily": JobKind("watching:make_mixes", "Making today's mixes", unit="mix"),
    },
    sections=(Section("playlist", "page:draw", title="Daily mixes", place=30),),
    http_router="server:router",
    hooks={"lifespan": "server:keep_watching"},
)
