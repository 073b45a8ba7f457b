"""New mixes every day, and watched folders whose new files are noticed."""

from musicsim.hooks import Command, Extension, JobKind, Section

EXTENSION = Extension(
    name="daily",
    commands={
        "daily": Command("cli:daily", "Make today's mixes, or change when they are made.", "Listen", is_main=True),
        "watch": Command("cli:watch", "Pick up new files and make a mix every day, without the app.", "Library"),
    },
    jobs={
        "pickup": JobKind("watching:pick_up", "Picking up new files", unit="file", uses_pool=True),
        "daily": JobKind("watching:make_mixes", "Making today's mixes", unit="mix"),
    },
    sections=(Section("playlists", "page:draw", title="Today", place=10), Section("folder", "page:draw_folder")),
    http_router="server:router",
    hooks={"lifespan": "server:keep_watching"},
)
