"""Histories that services export as JSON: one document, or one entry per line.

Formats: Spotify's "Account data" and "Extended streaming history", ListenBrainz listens, Maloja, Pano Scrobbler, and
``loved`` tracks from Last.fm and Libre.fm. Entries without an artist or a title are left out and counted.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from musicsim.errors import LibraryError
from musicsim.library.importing.records import Gatherer, NamedSong
from musicsim.library.importing.sources import JsonStream, TextLines

SHORTEST_PLAY_MS = 30_000  # shorter plays are not counted, as on Spotify
LOVED = ("loved", "")
_SPOTIFY_NAMES = tuple(f"master_metadata_{name}_name" for name in ("album_artist", "track", "album_album"))
_SPOKEN = ("episode_name", "spotify_episode_uri", "audiobook_title", "audiobook_uri")
LOVED_WEIGHT = 100.0  # the highest weight of tags on Last.fm

Entries = JsonStream | TextLines


class Record:
    """An entry in a file. A value of the wrong type raises an error with the line number."""

    __slots__ = ("entries", "fields")

    def __init__(self, entries: Entries, fields: Any) -> None:
        if not isinstance(fields, dict):
            raise entries.fault(f"contains {str(fields)[:40]!r} instead of a record.")
        self.entries, self.fields = entries, fields

    def text(self, name: str) -> str:
        """Return a field's text on one line; "" if the field is missing."""
        value = self.fields.get(name)
        if value is None or isinstance(value, str):
            return plain_name(value) if value else ""
        raise self._fault(name, "text")

    def object(self, name: str) -> "Record":
        """Return a field that is an object; an empty object if the field is missing."""
        value = self.fields.get(name)
        if value is None or isinstance(value, dict):
            return Record(self.entries, value or {})
        raise self._fault(name, "an object")

    def number(self, name: str) -> float:
        """Return a field's number, which may be stored as a string."""
        value = self.fields.get(name)
        try:
            number = float("nan") if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = float("nan")
        if not 0 <= number <= 1e14:
            raise self._fault(name, "a number")
        return number

    def seconds(self, name: str) -> float | None:
        """Return a field's number; None if the field is missing."""
        return None if self.fields.get(name) is None else self.number(name)

    def texts(self, name: str) -> list[str]:
        """Return a field's string or strings as a list; line breaks are kept."""
        value = self.fields.get(name)
        texts = [] if value is None else [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise self._fault(name, "a list of strings")
        return [text.replace("\0", " ").encode("utf-8", "replace").decode() for text in texts]

    def song(self, *names: str) -> NamedSong:
        """Return a song; `names` are the fields with its artist, title and album."""
        return NamedSong(*map(self.text, names))

    def _fault(self, name: str, expected: str) -> LibraryError:
        return self.entries.fault(f"has {name} {str(self.fields.get(name))[:40]!r}, which must be {expected}.")


def records(entries: Entries, *names: str) -> Iterator[Record]:
    """Yield the entries of a document, or one entry per line; each entry must be an object."""
    for entry in entries.entries(*names) if isinstance(entries, JsonStream) else _parse_lines(entries):
        yield Record(entries, entry)


def _parse_lines(lines: TextLines) -> Iterator[Any]:
    for text in lines:
        if text.strip():
            try:
                yield json.loads(text)
            except RecursionError as error:
                raise lines.fault("is nested too deeply for a listening history.") from error
            except ValueError as error:
                reason = getattr(error, "msg", str(error))
                raise lines.fault(f"is not JSON ({reason}), or the file is cut off.") from error


def plain_name(text: str) -> str:
    """Return a name on one line, in a form that a database can store."""
    text = " ".join(text.replace("\0", " ").split())
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def read_spotify(entries: Entries, rows: Gatherer) -> None:
    """Read either of Spotify's exports, except plays under 30 s, episodes and audiobooks."""
    for entry in records(entries):
        if "msPlayed" in entry.fields:
            played, time = entry.number("msPlayed"), entry.text("endTime")
            song = entry.song("artistName", "trackName")
        elif "ms_played" in entry.fields:
            played, time = entry.number("ms_played"), entry.text("ts")
            song = entry.song(*_SPOTIFY_NAMES)
        else:
            raise entries.fault("has neither msPlayed nor ms_played: this is not a Spotify history.")
        if not song.title and any(map(entry.fields.get, _SPOKEN)):
            rows.skip("episode or audiobook", entries.place)
        elif played < SHORTEST_PLAY_MS:
            rows.skip("skipped before 30 s", entries.place)
        else:
            rows.keep(song, entries.place, at=_parse_time(time))


def _parse_time(text: str) -> float | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def read_listenbrainz(entries: Entries, rows: Gatherer) -> None:
    """Read listens from ListenBrainz; the submitted recording id is preferred to the one that the service found."""
    for entry in records(entries, "payload"):
        if "track_metadata" not in entry.fields:
            raise entries.fault("does not have track_metadata: this is not a ListenBrainz listen.")
        track = entry.object("track_metadata")
        info, mapped = track.object("additional_info"), track.object("mbid_mapping")
        song = track.song("artist_name", "track_name", "release_name")
        mbid = info.text("recording_mbid") or mapped.text("recording_mbid")
        rows.keep(song._replace(mbid=mbid), entries.place, at=entry.seconds("listened_at"))


def read_maloja(entries: Entries, rows: Gatherer) -> None:
    """Read scrobbles from Maloja; several artists are joined with commas."""
    for entry in records(entries, "scrobbles"):
        track = entry.object("track")
        song = NamedSong(
            plain_name(", ".join(track.texts("artists"))), track.text("title"), track.object("album").text("albumtitle")
        )
        rows.keep(song, entries.place, at=entry.seconds("time"))


def read_panoscrobbler(entries: Entries, rows: Gatherer) -> None:
    """Read scrobbles from Pano Scrobbler, except other events such as "love"."""
    for entry in records(entries):
        if "artist" not in entry.fields or "track" not in entry.fields:
            raise entries.fault("does not have an artist and a track: this is not a line from Pano Scrobbler.")
        song, event = entry.song("artist", "track", "album"), entry.text("event") or "scrobble"
        if event != "scrobble":
            rows.skip(f"{event}, not a scrobble", entries.place)
        else:
            time_ms = entry.seconds("timeMs")
            rows.keep(song, entries.place, at=None if time_ms is None else time_ms / 1000)


def read_loved(entries: Entries, rows: Gatherer) -> None:
    """Read loved tracks from Last.fm and Libre.fm as the tag "loved"."""
    for entry in records(entries, "lovedtracks", "track"):
        artist, date = entry.object("artist"), entry.object("date")
        song = NamedSong(artist.text("name"), entry.text("name"), mbid=entry.text("mbid"))
        rows.keep(song, entries.place, LOVED, LOVED_WEIGHT, date.seconds("uts"))
