"""A client for Subsonic and OpenSubsonic, with limits on every request; secrets go only to the server's own address."""

import hashlib
import json
import logging
import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import IO, Any

import urllib3
from urllib3 import exceptions as faults

from musicsim.errors import ServerError
from musicsim.extensions.music_servers.connections import Connection
from musicsim.extensions.music_servers.server_songs import ServerSong, is_id
from musicsim.library import MBID

# urllib3's debug messages quote whole addresses, including secrets
logging.getLogger("urllib3.connectionpool").setLevel(logging.INFO)

MAX_SONGS = 2_000_000
_CLIENT, _VERSION = "musicsim", "1.13.0"  # name of this client, and the first API version with tokens
PAGE = 500  # songs or albums per page: the maximum that the Subsonic API allows
SETTLED_S = 2.0  # margin in seconds, because servers report change times and response dates in whole seconds
_N_NEWEST = 50  # albums
_MAX_ANSWER = 64 << 20  # maximum number of bytes per response; a page of songs has about 0.5 MB
_MAX_FILE = 2 << 30  # maximum number of bytes per song
_MAX_WHOLE = 256 << 20  # maximum number of bytes of a song that are held in memory
_CONNECT_S, _SILENCE_S = 10.0, 30.0
_ANSWER_S, _FILE_S = 120.0, 1800.0
_BLOCK = 1 << 16
_MAX_ADDRESS = 2000  # maximum length of an address; longer requests are sent as a form
_MAX_TEXT = 1000  # maximum number of characters in a name or path
_MAX_PLAYS = 10**9
_CONTENT_RANGE = re.compile(r"bytes (?:([0-9]{1,15})-([0-9]{1,15})|\*)/([0-9]{1,15})")
_WRONG_LOGIN, _NO_TOKENS, _MISSING, _NOT_FOUND = 40, 41, 10, 70

Parameters = Mapping[str, str | int | Sequence[str]]


class RefusedError(ServerError):
    """The server understood the request and refused it; `code` is one of Subsonic's error codes."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code, self.is_not_found = code, code == _NOT_FOUND


@dataclass(frozen=True, slots=True)
class ServerAlbum:
    digest: str  # digest of the server's whole entry
    n_songs: int


@dataclass(slots=True)
class Listing:
    songs: dict[str, ServerSong] = field(default_factory=dict)  # maps each id to its song
    album_ids: dict[str, str] = field(default_factory=dict)  # maps each song id to an album id; "" if unknown
    left_out: Counter[str] = field(default_factory=Counter)  # number of skipped entries for each reason


class Subsonic:
    """A client for one user of a server; `silence_s` limits pauses, and `answer_s` limits whole responses."""

    def __init__(self, connection: Connection, *, silence_s: float = _SILENCE_S, answer_s: float = _ANSWER_S) -> None:
        self.connection = connection
        self._answer_s = answer_s
        timeout = urllib3.Timeout(connect=min(_CONNECT_S, silence_s), read=silence_s)
        self._pool = urllib3.PoolManager(maxsize=1, timeout=timeout, retries=False)

    def ping(self) -> None:
        """Check that the server responds and accepts the user; raise ServerError otherwise."""
        try:
            self.ask("ping")
        except RefusedError as error:
            if self.connection.sends == "token" and error.code in (_MISSING, _NO_TOKENS):
                problem = "the server does not accept tokens"
                advice = "Add `--send-password`; use https, unless the server runs on this machine."
                raise ServerError(f"{self.connection.name}: {problem}. {advice}") from error
            raise

    def state(self) -> str:
        """Return a digest that changes with the server's songs; empty if the songs are changing or have no date."""
        future_ms = int((time.time() + 86_400) * 1000)  # a time in the future, so that the returned index is empty
        with self._open("getIndexes", {"ifModifiedSince": future_ms}) as response:
            answer = self._read_answer(response)
            date = response.headers.get("Date")
        modified = _number(_mapping(answer.get("indexes")).get("lastModified"), 1e15)
        scan: dict[str, Any] = {}
        with suppress(ServerError):  # some servers do not support this call, others only for administrators
            scan = _mapping(self.ask("getScanStatus").get("scanStatus"))
        if not modified or scan.get("scanning") is True or _clock_s(date) - modified / 1000 < SETTLED_S:
            return ""
        newest: list[Any] = []
        with suppress(RefusedError):
            newest = _entries(self.ask("getAlbumList2", type="newest", size=_N_NEWEST), "albumList2", "album")
        return _digest([modified, scan.get("lastScan"), scan.get("count"), newest])

    def songs(self, progress: Callable[[int], None] | None = None) -> Listing:
        """List all songs by an empty search, or by album if it finds none; `progress` gets the number of songs."""
        listing = self._list_songs(self._search_pages(), progress)
        return listing if listing.songs else self._list_songs(self._album_pages(), progress)

    def _list_songs(self, pages: Iterator[list[Any]], progress: Callable[[int], None] | None) -> Listing:
        listing = Listing()
        for page in pages:
            n_songs, n_left_out = len(listing.songs), listing.left_out.total()
            for entry in page:
                song = song_of(entry)
                if isinstance(song, str):
                    listing.left_out[song] += 1
                else:
                    listing.songs[song.id] = song
                    listing.album_ids[song.id] = str(entry.get("albumId", ""))
            if progress is not None:
                progress(len(listing.songs))
            # some servers send the same page forever
            is_repeated = len(listing.songs) == n_songs and listing.left_out.total() - n_left_out < len(page)
            if is_repeated or len(listing.songs) + listing.left_out.total() > MAX_SONGS:
                break
        return listing

    def _search_pages(self) -> Iterator[list[Any]]:
        start = 0
        while page := _entries(
            self.ask("search3", query="", songCount=PAGE, songOffset=start, artistCount=0, albumCount=0),
            "searchResult3", "song",
        ):  # fmt: skip
            yield page
            start += len(page)

    def _album_pages(self) -> Iterator[list[Any]]:
        for album_id, _ in self._list_albums("alphabeticalByName"):
            if entries := self._album_entries(album_id):
                yield entries

    def _list_albums(self, order: str) -> Iterator[tuple[str, dict[str, Any]]]:
        start = 0
        seen: set[str] = set()
        while page := _entries(self.ask("getAlbumList2", type=order, size=PAGE, offset=start), "albumList2", "album"):
            ids = ((str(album.get("id", "")), album) for album in page if isinstance(album, dict))
            new = {album_id: album for album_id, album in ids if is_id(album_id) and album_id not in seen}
            if not new:
                return
            seen.update(new)
            yield from new.items()
            start += len(page)

    def albums(self) -> dict[str, ServerAlbum]:
        """Return a dict from album id to album; empty if the server refuses to list albums."""
        with suppress(RefusedError):
            return {
                album_id: ServerAlbum(_digest(entry), int(_number(entry.get("songCount"), MAX_SONGS) or 0))
                for album_id, entry in self._list_albums("alphabeticalByName")
            }
        return {}

    def album(self, album_id: str) -> list[ServerSong]:
        return _songs(self._album_entries(album_id))

    def _album_entries(self, album_id: str) -> list[Any]:
        return _entries(self.ask("getAlbum", id=album_id), "album", "song")

    def artist_name(self, artist_id: str) -> str:
        return _text(_mapping(self.ask("getArtist", id=artist_id).get("artist")).get("name"))

    def list_starred(self) -> list[ServerSong]:
        return _songs(_entries(self.ask("getStarred2"), "starred2", "song"))

    def recent_albums(self) -> Iterator[list[ServerSong]]:
        """Yield the songs of each album, starting with the most recently played album."""
        for album_id, _ in self._list_albums("recent"):
            yield self.album(album_id)

    def playlist_ids(self, name: str) -> set[str]:
        lists = _entries(self.ask("getPlaylists"), "playlists", "playlist")
        return {str(entry.get("id")) for entry in lists if isinstance(entry, dict) and entry.get("name") == name}

    def create_playlist(self, name: str, song_ids: Sequence[str]) -> str:
        """Create a playlist, even if one with the same name exists, and return its id."""
        before = self.playlist_ids(name)
        answer = self.ask("createPlaylist", name=name, songId=song_ids)
        list_id = str(_mapping(answer.get("playlist")).get("id", ""))
        new = self.playlist_ids(name) - before
        if list_id in new or len(new) == 1:
            return list_id if list_id in new else new.pop()
        raise ServerError(f"{self.connection.name}: the server did not save the playlist “{name}”.")

    def replace_playlist(self, list_id: str, name: str, song_ids: Sequence[str]) -> None:
        self.ask("createPlaylist", playlistId=list_id, name=name, songId=song_ids)

    def describe_playlist(self, list_id: str, comment: str) -> None:
        self.ask("updatePlaylist", playlistId=list_id, comment=comment)

    def delete_playlist(self, list_id: str) -> None:
        try:
            self.ask("deletePlaylist", id=list_id)
        except RefusedError as error:
            if not error.is_not_found:
                raise

    def download(self, song_id: str, target: Path) -> None:
        """Write a song's file to `target`, or its raw stream if the user is not allowed to download files."""
        try:
            self._fetch("download", {"id": song_id}, target)
        except RefusedError as error:
            if error.is_not_found:
                raise
            self._fetch("stream", {"id": song_id, "format": "raw"}, target)

    def _fetch(self, call: str, parameters: Parameters, target: Path) -> None:
        with target.open("wb") as stream, self._open(call, parameters) as response:
            self._raise_if_text(response)
            self._copy(response, stream, _MAX_FILE, _FILE_S)
            expected = response.headers.get("Content-Length", "")
            if expected.isdigit() and stream.tell() != int(expected):
                raise self._error("stopped sending partway through a song")

    def sound(self, song_id: str, form: str, start: int, n_bytes: int) -> tuple[bytes, int]:
        """Return up to `n_bytes` of a song from byte `start`, in format `form` ("raw" or "mp3"), and its total size."""
        headers = {"Range": f"bytes={start}-{start + n_bytes - 1}"}
        with self._open("stream", {"id": song_id, "format": form}, headers) as response:
            sent_range = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if response.status == 416 and sent_range:
                return b"", int(sent_range[3])
            self._raise_if_text(response)
            is_part = response.status == 206 and sent_range is not None and sent_range[1] is not None
            if is_part and int(sent_range[1]) != start:  # type: ignore[index]
                raise self._error("sent a different part of a song than requested")
            blocks: list[bytes] = []
            length = sent_range[3] if is_part else response.headers.get("Content-Length", "")  # type: ignore[index]
            enough = n_bytes if is_part else start + n_bytes if length.isdigit() else None
            self._copy(response, blocks, _MAX_WHOLE, self._answer_s, enough=enough)
            data = b"".join(blocks)
            total = int(length) if length.isdigit() else len(data)
            return (data if is_part else data[start:])[:n_bytes], total

    def _raise_if_text(self, response: urllib3.BaseHTTPResponse) -> None:
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if response.status >= 400 or kind.startswith("text/") or kind.endswith(("json", "xml")):
            self._read_answer(response)
            raise self._error("sent a message instead of a song's audio")

    def ask(self, call: str, **parameters: str | int | Sequence[str]) -> dict[str, Any]:
        """Return the response to a Subsonic API call; raise ServerError if the server refuses the call."""
        with self._open(call, parameters) as response:
            return self._read_answer(response)

    def _read_answer(self, response: urllib3.BaseHTTPResponse) -> dict[str, Any]:
        blocks: list[bytes] = []
        self._copy(response, blocks, _MAX_ANSWER, self._answer_s)
        try:
            answer = json.loads(b"".join(blocks))["subsonic-response"]
            status = answer["status"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if response.status != 200:
                raise self._error(f"responded with status {response.status}") from error
            raise self._error("sent a response that is not valid Subsonic JSON") from error
        if status == "ok":
            return dict(answer)
        problem = _mapping(answer.get("error"))
        code = problem["code"] if isinstance(problem.get("code"), int) else 0
        message = _text(problem.get("message"))[:200].rstrip(".") or "no reason given"
        if code == _WRONG_LOGIN:
            message = f"{message}; check the user and the password"
        raise RefusedError(f"{self.connection.name}: the server refused the request: {message} (error {code}).", code)

    @contextmanager
    def _open(
        self, call: str, parameters: Parameters, headers: Mapping[str, str] | None = None
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """Send a request and yield the response; network errors are converted to ServerError."""
        pairs = list(self._login().items())
        for name, value in parameters.items():
            pairs += [(name, str(item)) for item in ([value] if isinstance(value, str | int) else value)]
        address = f"{self.connection.address}/rest/{call}.view"
        # servers log addresses, so addresses must not contain passwords
        is_form = self.connection.sends == "password" or sum(len(n) + len(v) for n, v in pairs) > _MAX_ADDRESS
        options: dict[str, Any] = {"redirect": False, "preload_content": False, "decode_content": False}
        method, options = ("POST", options | {"encode_multipart": False}) if is_form else ("GET", options)
        try:
            response = self._pool.request(method, address, fields=pairs, headers=headers, **options)
        except (faults.HTTPError, OSError, ValueError) as error:
            raise self._error(_explain(error)) from None  # the original error quotes the address and its secret
        try:
            if 300 <= response.status < 400 and response.status != 304:
                place = _text(response.headers.get("Location"))[:200].partition("?")[0]
                raise self._error(f"redirects to {place or 'a different address'}; use that address for the connection")
            yield response
        except (faults.HTTPError, ConnectionError, TimeoutError) as error:
            raise self._error(_explain(error)) from None
        finally:
            response.close()

    def _login(self) -> dict[str, str]:
        user, secret = self.connection.user, self.connection.secret
        common = {"v": _VERSION, "c": _CLIENT, "f": "json"}
        if self.connection.sends == "key":
            return common | {"apiKey": secret}
        if self.connection.sends == "password":
            return common | {"u": user, "p": "enc:" + secret.encode().hex()}
        salt = secrets.token_hex(8)
        token = hashlib.md5((secret + salt).encode(), usedforsecurity=False).hexdigest()
        return common | {"u": user, "t": token, "s": salt}

    def _copy(
        self, response: urllib3.BaseHTTPResponse, target: list[bytes] | IO[bytes], max_bytes: int, max_s: float,
        enough: int | None = None,
    ) -> None:  # fmt: skip
        """Read a response, or at least `enough` bytes of it, in blocks, so that slow responses time out, too."""
        add = target.append if isinstance(target, list) else target.write
        deadline, n_bytes = time.monotonic() + max_s, 0
        while block := response.read1(_BLOCK):
            n_bytes += len(block)
            if n_bytes > max_bytes:
                raise self._error(f"sent more than {max_bytes >> 20} MB")
            if time.monotonic() > deadline:
                raise self._error(f"took more than {max_s:g} s for one response")
            add(block)
            if enough is not None and n_bytes >= enough:
                return

    def _error(self, problem: str) -> ServerError:
        return ServerError(f"{self.connection.name}: the server at {self.connection.address} {problem}.")


def _explain(error: Exception) -> str:
    """Describe a connection error without quoting the request."""
    if isinstance(error, faults.SSLError):
        return "has a certificate that this machine does not trust"
    if isinstance(error, faults.NewConnectionError):
        return "cannot be reached: check the address, and make sure that the server is running"
    if isinstance(error, faults.TimeoutError | TimeoutError):
        return "did not respond in time"
    if isinstance(error, faults.LocationValueError | ValueError):
        return "cannot be reached: its address is not valid"
    return "stopped responding partway through a response"


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _entries(answer: Mapping[str, Any], name: str, entry_name: str) -> list[Any]:
    """Return a list from a response; some servers send a single entry without a list."""
    entries = _mapping(answer.get(name)).get(entry_name, [])
    return entries if isinstance(entries, list) else [entries]


def _songs(entries: Sequence[Any]) -> list[ServerSong]:
    return [song for song in map(song_of, entries) if not isinstance(song, str)]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _clock_s(date: str | None) -> float:
    with suppress(ValueError, TypeError):
        return parsedate_to_datetime(date or "").timestamp()
    return time.time()


def _text(value: Any) -> str:
    """Return a string that can be stored: limited in length, without lone surrogates or control characters."""
    if not isinstance(value, str):
        return ""
    clean = value[:_MAX_TEXT].encode("utf-8", "replace").decode()
    return "".join(c if c.isprintable() else " " for c in clean).strip()


def _number(value: Any, max_value: float) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= max_value else None


def song_of(entry: Any) -> ServerSong | str:
    """Convert an entry to a song, or return the reason why the entry is not a song."""
    if not isinstance(entry, dict):
        return "not a song"
    server_id = str(entry["id"]) if isinstance(entry.get("id"), int | str) else ""
    if not is_id(server_id):
        return "no valid id"
    if entry.get("isDir") is True or entry.get("isVideo") is True:
        return "a folder or a video"
    mbid = _text(entry.get("musicBrainzId")).lower()
    played_at = None
    with suppress(ValueError, OverflowError, OSError, TypeError):
        played_at = datetime.fromisoformat(entry["played"]).timestamp() if entry.get("played") else None
    title, artist, album, path = (_text(entry.get(name)) for name in ("title", "artist", "album", "path"))
    plays = int(_number(entry.get("playCount"), _MAX_PLAYS) or 0)
    rating = int(_number(entry.get("userRating"), 5) or 0)
    return ServerSong(
        server_id, title, artist, album, path, mbid if re.fullmatch(MBID, mbid) else "",
        _number(entry.get("duration"), 1e7), plays, rating, bool(entry.get("starred")), played_at,
    )  # fmt: skip
