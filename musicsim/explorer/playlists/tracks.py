"""Songs as the player needs them: the addresses of their sound, waveform and cover, and how to play them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import quote

from musicsim.explorer.playlists.queue import QueueItem
from musicsim.library import Library, Song
from musicsim.library.media.sound import find_silent


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
    typical_s: float = 0.0  # start of the most typical 30 seconds
    tempo: float | None = None  # beats per minute
    key: str = ""  # such as "A minor"; empty if unknown
    is_missing: bool = False  # True if there is no sound to play

    def __post_init__(self) -> None:
        if not self.url:
            raise ValueError(f"track {self.song_id} ({self.title!r}) needs a url: pass the address of its audio")


def make_track(library: Library, song: Song, *, preview: bool = False) -> Track:
    """Return a song for the player; a preview starts at its most typical 30 seconds."""
    (track,) = make_tracks(library, [song], preview=preview)
    return track


def make_tracks(library: Library, songs: Sequence[Song], *, preview: bool = False) -> list[Track]:
    """Return songs for the player; previews start at their most typical 30 seconds."""
    silent = find_silent(library, songs)

    def make(song: Song) -> Track:
        address = f"/songs/{song.id}/{{}}?library={quote(library.name)}"
        return Track(
            song.id, song.title, song.byline, address.format("audio"), address.format("peaks"), song.duration_s,
            song.typical_s if preview else 0.0, cover_url=cover_address(library, song.id), loudness=song.loudness,
            typical_s=song.typical_s, tempo=song.tempo, key=song.key_words, is_missing=song.id in silent,
        )  # fmt: skip

    return [make(song) for song in songs]


def make_queue_tracks(library: Library, items: Sequence[QueueItem]) -> list[Track]:
    """Return the songs of a queue for the player, with their reasons."""
    tracks = make_tracks(library, [item.song for item in items])
    return [
        replace(track, reason=item.reason, choice_id=item.choice_id) for track, item in zip(tracks, items, strict=True)
    ]


def cover_address(library: Library, song_id: int | str) -> str:
    """Return the URL of a song's cover."""
    return f"/songs/{song_id}/cover?library={quote(library.name)}"


def render_track(track: Track) -> dict[str, Any]:
    """Return a track as JSON data, without NumPy types or NaN."""
    numbers = {
        name: float(value) if value is not None and math.isfinite(value) else None
        for name, value in (("duration_s", track.duration_s), ("loudness", track.loudness), ("tempo", track.tempo))
    }
    return (
        {field.name: getattr(track, field.name) for field in fields(Track)} | {"song_id": int(track.song_id)} | numbers
    )
