"""The map of a playlist: every song as a point, with a line along the playlist.

The browser fetches positions, colors and region names itself (:mod:`musicsim.api.routes`), and plays a clicked song.
"""

from collections.abc import Sequence

from musicsim.explorer import Snapshot
from musicsim.ui.base import component


def song_map(snapshot: Snapshot, *, key: str, color_by: str, path: Sequence[int], height: int) -> None:
    """Show the map with a path along songs, given by id; a ring marks the first one. `height` is in pixels.

    `color_by` is one of :data:`musicsim.explorer.snapshot.map_columns.COLOR_BY`.
    """
    model, n_songs = snapshot.record.id if snapshot.record else "", len(snapshot.map_view.rows)
    component("web/map/page_map.js", isolate_styles=False)(
        key=key, height="content",
        data={
            "map": {"model": model, "library": snapshot.library.name, "revision": snapshot.revision},
            "color_by": color_by, "chosen": path[0], "found": [], "path": list(path), "query": None,
            "height": height, "legend": False,
            "alt": f"Map of {n_songs:,} songs. Arrow keys move from song to song; Enter plays the song.",
        },
    )  # fmt: skip
