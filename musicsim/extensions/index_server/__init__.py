"""Search on a Milvus server, for libraries that are too large to search on one machine."""

from musicsim.hooks import Command, Extension

EXTENSION = Extension(
    name="index_server",
    hooks={
        "search_engine": "remote_index:remote_index",
        "after_refresh": "push:push_after_refresh",
        "after_snapshot": "push:push_in_background",
    },
    commands={
        "index": Command(
            "cli:index", "Push the songs to the index server in MUSICSIM_INDEX (docs/host/cluster.md).", "Host"
        )
    },
)
