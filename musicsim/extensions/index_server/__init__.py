"""Search on a Milvus server, for libraries that one machine cannot search."""

from musicsim.hooks import Command, Extension

EXTENSION = Extension(
    name="index_server",
    needs=("pymilvus",),
    commands={
        "index": Command(
            "cli:index",
            "Bring the songs to the index server that MUSICSIM_INDEX names (docs/scale.md); without one, say so.",
            "Maintain",
        )
    },
)
