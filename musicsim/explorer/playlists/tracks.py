"""Songs as the player needs them: the addresses of their sound, waveform and cover, and how to play them."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import quote

from musicsim.explorer.playlists.queue import QueueItem
from musicsim.library import Library, Song


@dataclass(frozen=True, slots=True)
class Track:
    """A song for the player; URLs such as ``/songs/12/audio`` are relative to the app's root."""

    song_id: int  # part of every event; 0 for sound from outside the library
    title: str
    artist: str
    url: str  # address of the audio; the server must support HTTP range requests
    peaks_url: str = ""  # address of the waveform, a JSON list of floats in [0, 1]; empty for a plain seek bar
    duration_s: float | None = None  # duration that is shown until the browser has measured it
    start_s: float = 0.0  # position at which playback starts; the button "previous" goes to second 0 instead
    cover_url: str = ""
    loudness: float | None = None  # loudness in LUFS, to play all songs equally loud; None leaves the volume unchanged
    is_blind: bool = False  # True if the song must stay anonymous: do not show it, store it or continue from it
    reason: str = ""  # why this song follows the previous one; empty if the listener chose it
    choice_id: int = 0  # see QueueItem; stored with the song's plays and skips

    def __post_init__(self) -> None:
        if not self.url:
            raise ValueError(f"track {self.song_id} ({self.title!r}) needs a url: pass the address of its audio")


def make_track(library: Library, song: Song, *, preview: bool = False) -> Track:
    """Return a song for the player; a preview starts at its most typical 30 seconds."""
    address = f"/songs/{song.id}/{{}}?library={quote(library.name)}"
    return Track(
        song.id, song.title, song.byline, address.format("audio"), address.format("peaks"), song.duration_s,
        song.typical_s if preview else 0.0, cover_url=cover_address(library, song.id), loudness=song.loudness,
    )  # fmt: skip


def make_queue_track(library: Library, item: QueueItem) -> Track:
    """Return a song of a queue for the player, with its reason."""
    return replace(make_track(library, item.song), reason=item.reason, choice_id=item.choice_id)


def cover_address(library: Library, song_id: int | str) -> str:
    """Return the URL of a song's cover."""
    return f"/songs/{song_id}/cover?library={quote(library.name)}"


def render_track(track: Track) -> dict[str, Any]:
    """Return a track as JSON data, without NumPy types or NaN."""
    numbers = {
        name: float(value) if value is not None and math.isfinite(value) else None
        for name, value in (("duration_s", track.duration_s), ("loudness", track.loudness))
    }
    return asdict(track) | {"song_id": int(track.song_id)} | numbers
