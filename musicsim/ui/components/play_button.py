"""A button that plays or queues songs, or starts *Listen* from one. The browser does it, so the script does not run."""

from collections.abc import Sequence
from typing import Literal

from musicsim.explorer import Track
from musicsim.explorer.playlists.tracks import render_track
from musicsim.library import Library
from musicsim.ui.base import component
from musicsim.wording import clean


def show_play_button(
    label: str, *, key: str, library: Library, song_ids: Sequence[int] = (), tracks: Sequence[Track] = (),
    start: int = 0, act: Literal["play", "enqueue", "similar"] = "play", is_primary: bool = False, help: str = "",
    disabled_because: str = "",
) -> None:  # fmt: skip
    """Show a button for songs of a library, or for tracks, such as sounds without names; `key` must be unique.

    It plays all of them from the one at index `start` on, appends the songs to the queue (`enqueue`), or starts
    *Listen* from them (`similar`). Without a `label`, it shows only a symbol, and is called `help`.
    `disabled_because` is the reason why it cannot be pressed; empty if it can.
    """
    component("web/songs/play_button.js")(
        key=key, width="content", height="content",
        data={
            "label": clean(label), "help": disabled_because or help, "disabled": bool(disabled_because),
            "look": "primary" if is_primary else "", "act": act, "library": library.name,
            "songs": [int(song_id) for song_id in song_ids], "tracks": [render_track(track) for track in tracks],
            "start": start,
        },
    )  # fmt: skip
