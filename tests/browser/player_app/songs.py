"""The songs of the test app, by their special properties."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from musicsim.explorer.playlists.tracks import Track
from musicsim.ui.components.play_button import show_play_button

HOSTILE = '<img src=x onerror="window.hacked=true"> **bold** $x$'


def track(song: int, title: str | None = None) -> Track:
    title = title or f"Song number {song}"
    return Track(song, title, f"Artist {song}", f"/songs/{song}/audio?library=x", f"/songs/{song}/peaks")


LONG, SHORT, OTHER = track(1), track(2), track(3)
PREVIEW = replace(LONG, start_s=12.0)
SECOND = track(5)
NO_PEAKS = track(4, "A rather long title that goes on, and on, and has no waveform to show for it")
LOUD, SOFT = replace(LONG, loudness=-8.0), replace(OTHER, loudness=-30.0)
HOSTILE_TRACK = track(3, HOSTILE)
MISSING = track(98, "Missing")
MISSING_TOO = track(99, "Missing, too")
LOOPS = (
    replace(track(6, "Loop at 120"), tempo=120.0, key="C major"),
    replace(track(7, "Loop at 126"), tempo=126.0, key="G major"),
)
BY_ID = {one.song_id: one for one in (LONG, SHORT, OTHER, NO_PEAKS, SECOND)}
_LIBRARY: Any = SimpleNamespace(name="x")  # a button needs only its name


def button(label: str, *tracks: Track, start: int = 0, act: Any = "play") -> None:
    """Show a button that plays these tracks, or appends these songs."""
    if act == "play":
        show_play_button(label, key=label, library=_LIBRARY, tracks=tracks, start=start)
    else:
        show_play_button(label, key=label, library=_LIBRARY, song_ids=[one.song_id for one in tracks], act=act)
