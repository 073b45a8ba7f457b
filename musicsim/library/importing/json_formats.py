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

from musicsim.errors import LibraryError
from musicsim.library.importing.records import Gatherer, NamedSong
from musicsim.library.importing.sources import JsonStream, TextLines

SHORTEST_PLAY_MS = 30_000  # Spotify itself counts no shorter play
LOVED = ("loved", "")
_SPOTIFY_NAMES = tuple(f"master_metadata_{name}_name" for name in ("album_artist", "track", "album_album"))
_SPOKEN = ("episode_name", "spotify_episode_uri", "audiobook_title", "audiobook_uri")
LOVED_WEIGHT = 100.0  # tags of Last.fm weigh up to 100

Entries = JsonStream | TextLines


class Record:
    """An entry of a file. A value of the wrong type raises an error with its line."""

    __slots__ = ("entries", "fields")

    def __init__(self, entries: Entries, fields: Any) -> None:
        if not isinstance(fields, dict):
            raise entries.fault(f"holds {str(fields)[:40]!r} where a record should be.")
        self.entries, self.fields = entries, fields

    def text(self, name: str) -> str:
        """The text under a name in one line, "" by default."""
        value = self.fields.get(name)
        if value is None or isinstance(value, str):
            return plain(value) if value else ""
        raise self._fault(name, "text")

    def object(self, name: str) -> "Record":
        """The object under a name, an empty one by default."""
        value = self.fields.get(name)
        if value is None or isinstance(value, dict):
            return Record(self.entries, value or {})
        raise self._fault(name, "an object")

    def number(self, name: str) -> float:
        """The number under a name, which may be a text."""
        value = self.fields.get(name)
        try:
            number = float("nan") if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = float("nan")
        if not 0 <= number <= 1e14:
            raise self._fault(name, "a number")
        return number

    def seconds(self, name: str) -> float | None:
        """The number under a name, None by default."""
        return None if self.fields.get(name) is None else self.number(name)

    def texts(self, name: str) -> list[str]:
        """The texts under a name, which may be one or a list; not yet in one line."""
        value = self.fields.get(name)
        texts = [] if value is None else [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise self._fault(name, "a list of texts")
        return [text.replace("\0", " ").encode("utf-8", "replace").decode() for text in texts]

    def song(self, *names: str) -> NamedSong:
        """The song whose artist, title and album are under these names."""
        return NamedSong(*map(self.text, names))

    def _fault(self, name: str, should_be: str) -> LibraryError:
        return self.entries.fault(f"has {name} {str(self.fields.get(name))[:40]!r}, which should be {should_be}.")


def records(entries: Entries, *names: str) -> Iterator[Record]:
    """Entries of a document, or of lines; each must be an object."""
    for entry in entries.entries(*names) if isinstance(entries, JsonStream) else _of_lines(entries):
        yield Record(entries, entry)


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


def plain(text: str) -> str:
    """A name in one line that a database can store."""
    text = " ".join(text.replace("\0", " ").split())
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def read_spotify(entries: Entries, rows: Gatherer) -> None:
    """Both exports of Spotify; plays under 30 s are skips, and what is said is no music."""
    for entry in records(entries):
        if "msPlayed" in entry.fields:
            played, when = entry.number("msPlayed"), entry.text("endTime")
            song = entry.song("artistName", "trackName")
        elif "ms_played" in entry.fields:
            played, when = entry.number("ms_played"), entry.text("ts")
            song = entry.song(*_SPOTIFY_NAMES)
        else:
            raise entries.fault("has neither msPlayed nor ms_played: this is not a Spotify history.")
        if not song.title and any(map(entry.fields.get, _SPOKEN)):
            rows.skip("episode or audiobook", entries.place)
        elif played < SHORTEST_PLAY_MS:
            rows.skip("skipped before 30 s", entries.place)
        else:
            rows.keep(song, entries.place, at=_iso(when))


def _iso(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def read_listenbrainz(entries: Entries, rows: Gatherer) -> None:
    """Listens of ListenBrainz; the recording's id is the one submitted, else the one the service found."""
    for entry in records(entries, "payload"):
        if "track_metadata" not in entry.fields:
            raise entries.fault("has no track_metadata: this is not a ListenBrainz listen.")
        track = entry.object("track_metadata")
        info, mapped = track.object("additional_info"), track.object("mbid_mapping")
        song = track.song("artist_name", "track_name", "release_name")
        mbid = info.text("recording_mbid") or mapped.text("recording_mbid")
        rows.keep(song._replace(mbid=mbid), entries.place, at=entry.seconds("listened_at"))


def read_maloja(entries: Entries, rows: Gatherer) -> None:
    """Scrobbles of Maloja; several artists are joined by commas."""
    for entry in records(entries, "scrobbles"):
        track = entry.object("track")
        names = track.fields.get("artists") or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise entries.fault("has artists that are no list of names.")
        song = NamedSong(plain(", ".join(names)), track.text("title"), track.object("album").text("albumtitle"))
        rows.keep(song, entries.place, at=entry.seconds("time"))


def read_panoscrobbler(entries: Entries, rows: Gatherer) -> None:
    """Lines of Pano Scrobbler; what is no scrobble (a love, a song that plays now) is left out."""
    for entry in records(entries):
        if "artist" not in entry.fields or "track" not in entry.fields:
            raise entries.fault("has no artist and track: this is not a line of Pano Scrobbler.")
        song, event = entry.song("artist", "track", "album"), entry.text("event") or "scrobble"
        if event != "scrobble":
            rows.skip(f"{event}, no scrobble", entries.place)
        else:
            at = entry.seconds("timeMs")
            rows.keep(song, entries.place, at=None if at is None else at / 1000)


def read_loved(entries: Entries, rows: Gatherer) -> None:
    """Loved tracks of Last.fm and Libre.fm: each gets the tag "loved"."""
    for entry in records(entries, "lovedtracks", "track"):
        artist, date = entry.object("artist"), entry.object("date")
        song = NamedSong(artist.text("name"), entry.text("name"), mbid=entry.text("mbid"))
        rows.keep(song, entries.place, LOVED, LOVED_WEIGHT, date.seconds("uts"))
