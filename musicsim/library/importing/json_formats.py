"""Histories that services export as JSON, one document or one entry a line.

=================  ===============================================================================
spotify            "Account data" (endTime, artistName, trackName, msPlayed) and "Extended streaming
                   history" (ts, ms_played, master_metadata_...), lists of plays
listenbrainz       Listens as the service exports them: JSONL, a list, or {"payload": [...]}
maloja             {"scrobbles": [{"time", "track": {"artists", "title", "album"}}]}
panoscrobbler      JSONL with artist, track, album, timeMs, event
loved              Last.fm's and Libre.fm's {"lovedtracks": {"track": [...]}}: the tag "loved"
=================  ===============================================================================

An entry that a service itself writes without artist or title is left out and counted; one of another shape
stops the import.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from musicsim.library.importing.records import Gatherer, NamedSong
from musicsim.library.importing.sources import JsonStream, TextLines

SHORTEST_PLAY_MS = 30_000  # Spotify itself counts no shorter play
NO_NAME = "no artist or title"
LOVED = ("loved", "")
LOVED_WEIGHT = 100.0  # tags of Last.fm weigh up to 100

Entries = JsonStream | TextLines


def objects(entries: Entries, *names: str) -> Iterator[dict[str, Any]]:
    """Entries of a document, or of lines; each must be an object."""
    for entry in entries.entries(*names) if isinstance(entries, JsonStream) else _of_lines(entries):
        if not isinstance(entry, dict):
            raise entries.fault(f"holds {str(entry)[:40]!r} where a record should be.")
        yield entry


def _of_lines(lines: TextLines) -> Iterator[Any]:
    for text in lines:
        if text.strip():
            try:
                yield json.loads(text)
            except RecursionError as error:
                raise lines.fault("is nested too deeply for a listening history.") from error
            except ValueError as error:
                reason = getattr(error, "msg", str(error))
                raise lines.fault(f"is not JSON ({reason}), or the file is cut off.") from error


def text_in(entries: Entries, entry: dict[str, Any], name: str) -> str:
    """The text under a name in one line, "" where there is none; anything else is an error with its line."""
    value = entry.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise entries.fault(f"has {name} {str(value)[:40]!r}, which should be text.")
    return plain(value)


def object_in(entries: Entries, entry: dict[str, Any], name: str) -> dict[str, Any]:
    """The object under a name, {} where there is none; anything else is an error with its line."""
    value = entry.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise entries.fault(f"has {name} {str(value)[:40]!r}, which should be an object.")
    return value


def _number(entries: Entries, entry: dict[str, Any], name: str) -> float:
    value = entry.get(name)
    try:
        number = float(value) if not isinstance(value, bool) else float("nan")  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not 0 <= number <= 1e14:
        raise entries.fault(f"has {name} {str(value)[:40]!r}, which should be a number.")
    return number


def plain(text: str) -> str:
    """A name in one line that a database can store."""
    text = " ".join(text.replace("\0", " ").split())
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _keep(
    entries: Entries,
    rows: Gatherer,
    song: NamedSong,
    at: float | None,
    group: tuple[str, str] = ("", ""),
    value: float = 1.0,
) -> None:
    if song.artist and song.title:
        rows.add(song, group, value, at)
    else:
        rows.skip(NO_NAME, entries.place)


def read_spotify(entries: Entries, rows: Gatherer) -> None:
    """Both exports of Spotify; plays under 30 s are skips, and what is said is no music."""
    for entry in objects(entries):
        if "msPlayed" in entry:
            played, when = _number(entries, entry, "msPlayed"), text_in(entries, entry, "endTime")
            song = NamedSong(text_in(entries, entry, "artistName"), text_in(entries, entry, "trackName"))
        elif "ms_played" in entry:
            played, when = _number(entries, entry, "ms_played"), text_in(entries, entry, "ts")
            song = NamedSong(
                text_in(entries, entry, "master_metadata_album_artist_name"),
                text_in(entries, entry, "master_metadata_track_name"),
                text_in(entries, entry, "master_metadata_album_album_name"),
            )
        else:
            raise entries.fault("has neither msPlayed nor ms_played: this is not a Spotify history.")
        if not song.title and any(
            entry.get(name) for name in ("episode_name", "spotify_episode_uri", "audiobook_title", "audiobook_uri")
        ):
            rows.skip("episode or audiobook", entries.place)
        elif played < SHORTEST_PLAY_MS:
            rows.skip("skipped before 30 s", entries.place)
        else:
            _keep(entries, rows, song, _iso(when))


def _iso(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def read_listenbrainz(entries: Entries, rows: Gatherer) -> None:
    """Listens of ListenBrainz; the recording's id is the one submitted, else the one the service found."""
    for entry in objects(entries, "payload"):
        if "track_metadata" not in entry:
            raise entries.fault("has no track_metadata: this is not a ListenBrainz listen.")
        track = object_in(entries, entry, "track_metadata")
        info, mapped = object_in(entries, track, "additional_info"), object_in(entries, track, "mbid_mapping")
        song = NamedSong(
            text_in(entries, track, "artist_name"),
            text_in(entries, track, "track_name"),
            text_in(entries, track, "release_name"),
            text_in(entries, info, "recording_mbid") or text_in(entries, mapped, "recording_mbid"),
        )
        at = None if entry.get("listened_at") is None else _number(entries, entry, "listened_at")
        _keep(entries, rows, song, at)


def read_maloja(entries: Entries, rows: Gatherer) -> None:
    """Scrobbles of Maloja; several artists are joined by commas."""
    for entry in objects(entries, "scrobbles"):
        track = object_in(entries, entry, "track")
        names = track.get("artists") or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise entries.fault("has artists that are no list of names.")
        album = object_in(entries, track, "album")
        song = NamedSong(
            plain(", ".join(names)), text_in(entries, track, "title"), text_in(entries, album, "albumtitle")
        )
        at = None if entry.get("time") is None else _number(entries, entry, "time")
        _keep(entries, rows, song, at)


def read_panoscrobbler(entries: Entries, rows: Gatherer) -> None:
    """Lines of Pano Scrobbler; what is no scrobble (a love, a song that plays now) is left out."""
    for entry in objects(entries):
        if "artist" not in entry or "track" not in entry:
            raise entries.fault("has no artist and track: this is not a line of Pano Scrobbler.")
        song = NamedSong(*(text_in(entries, entry, name) for name in ("artist", "track", "album")))
        event = text_in(entries, entry, "event") or "scrobble"
        if event != "scrobble":
            rows.skip(f"{event}, no scrobble", entries.place)
        else:
            at = None if entry.get("timeMs") is None else _number(entries, entry, "timeMs") / 1000
            _keep(entries, rows, song, at)


def read_loved(entries: Entries, rows: Gatherer) -> None:
    """Loved tracks of Last.fm and Libre.fm: each gets the tag "loved"."""
    for entry in objects(entries, "lovedtracks", "track"):
        artist, date = object_in(entries, entry, "artist"), object_in(entries, entry, "date")
        song = NamedSong(
            text_in(entries, artist, "name"), text_in(entries, entry, "name"), "", text_in(entries, entry, "mbid")
        )
        at = None if date.get("uts") is None else _number(entries, date, "uts")
        _keep(entries, rows, song, at, LOVED, LOVED_WEIGHT)
