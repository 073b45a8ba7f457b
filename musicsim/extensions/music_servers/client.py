"""A client of the Subsonic and OpenSubsonic interfaces: requests of limited size and time, a sentence for each error.

Secrets are sent to the server's own address only: redirects are not followed. A server that does not answer in
time, answers too much, or answers what is no JSON raises :class:`ServerError`.
"""

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
from musicsim.library.tags.file_tags import MBID

# its debug messages quote whole addresses, and with them what is sent as a secret
logging.getLogger("urllib3.connectionpool").setLevel(logging.INFO)

MAX_SONGS = 2_000_000
_CLIENT, _VERSION = "musicsim", "1.13.0"  # the first version that knows tokens
PAGE = 500
"""Songs, or albums, of a page: the most that servers of Subsonic's own interface give."""

_SETTLED_S = 2.0  # servers tell the time of a change by the second, and so does the date of an answer
_N_NEWEST = 50  # albums
_MAX_ANSWER = 64 << 20  # bytes; a page of songs has 0.5 MB
_MAX_FILE = 2 << 30  # bytes of one song
_MAX_WHOLE = 256 << 20  # the same where it is held in memory
_CONNECT_S, _SILENCE_S = 10.0, 30.0
_ANSWER_S, _FILE_S = 120.0, 1800.0
_BLOCK = 1 << 16
_MAX_ADDRESS = 2000  # characters; what is longer is sent as a form
_MAX_TEXT = 1000  # characters of a name or path
_MAX_PLAYS = 10**9
_CONTENT_RANGE = re.compile(r"bytes (?:([0-9]{1,15})-([0-9]{1,15})|\*)/([0-9]{1,15})")
_WRONG_LOGIN, _NO_TOKENS, _MISSING, _NOT_FOUND = 40, 41, 10, 70

Parameters = Mapping[str, str | int | Sequence[str]]
Page = Callable[[int], None]
"""Called with how many songs were listed so far; what it raises ends the listing."""


class RefusedError(ServerError):
    """The server understood what it was asked and refused; `code` is one of Subsonic's."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_not_found(self) -> bool:
        """Whether what was asked for is not there."""
        return self.code == _NOT_FOUND


@dataclass(frozen=True, slots=True)
class ServerAlbum:
    """An album as a server lists it for one of its users."""

    digest: str  # of all that is said of it
    n_songs: int


@dataclass(slots=True)
class Listing:
    """All songs of a server."""

    songs: dict[str, ServerSong] = field(default_factory=dict)  # by id
    album_ids: dict[str, str] = field(default_factory=dict)  # by id of the song; "" where none is said
    left_out: Counter[str] = field(default_factory=Counter)  # entries that are no songs, by reason


class Subsonic:
    """One server, asked as one user.

    Parameters
    ----------
    connection : Connection
    silence_s : float
        Seconds without a byte after which a server is given up.
    answer_s : float
        Seconds within which an answer has to be complete.
    """

    def __init__(self, connection: Connection, *, silence_s: float = _SILENCE_S, answer_s: float = _ANSWER_S) -> None:
        self.connection = connection
        self._answer_s = answer_s
        timeout = urllib3.Timeout(connect=min(_CONNECT_S, silence_s), read=silence_s)
        self._pool = urllib3.PoolManager(maxsize=1, timeout=timeout, retries=False)

    # --- what a server has --------------------------------------------------------------------

    def ping(self) -> None:
        """Ask whether the server is there and knows the user.

        Raises ServerError, which says what to do where the server does not take tokens.
        """
        try:
            self._ask("ping")
        except RefusedError as error:
            if self.connection.sends == "token" and error.code in (_MISSING, _NO_TOKENS):
                raise ServerError(
                    f"{self.connection.name}: the server takes no tokens ({error}). Add it as one that takes the "
                    f"password itself; over http others on the way can read it."
                ) from error
            raise

    def state(self) -> str:
        """What the server says of its songs as a whole: the same another time, and none has changed.

        Times of its last change and scan, the number of songs and the albums that came last. "" where it does not tell
        the time, is looking through its folders, or has changed in these seconds: more may change within the same.
        """
        # an index that has not changed since a time to come is empty
        far = int((time.time() + 86_400) * 1000)
        with self._opened("getIndexes", {"ifModifiedSince": far}) as response:
            answer = self._read_answer(response)
            date = response.headers.get("Date")
        modified = _number(_mapping(answer.get("indexes")).get("lastModified"), 1e15)
        scan: dict[str, Any] = {}
        with suppress(ServerError):  # it does not know the call, or keeps it for administrators
            scan = _mapping(self._ask("getScanStatus").get("scanStatus"))
        if not modified or scan.get("scanning") is True or _age_s(modified / 1000, date) < _SETTLED_S:
            return ""
        newest: list[Any] = []
        with suppress(RefusedError):
            newest = _entries(self._ask("getAlbumList2", type="newest", size=_N_NEWEST), "albumList2", "album")
        return _digest([modified, scan.get("lastScan"), scan.get("count"), newest])

    def songs(self, told: Page | None = None) -> Listing:
        """Every song that the user may hear.

        By pages of a search for everything; album by album where that finds nothing. `told` is called at every page.
        """
        found = self._listed(self._search_pages(), told)
        return found if found.songs else self._listed(self._album_pages(), told)

    def _listed(self, pages: Iterator[list[Any]], told: Page | None) -> Listing:
        found = Listing()
        for page in pages:
            known = len(found.songs)
            entries = [song_of(entry) for entry in page]
            found.left_out.update(entry for entry in entries if isinstance(entry, str))
            for entry, song in zip(page, entries, strict=True):
                if not isinstance(song, str):
                    found.songs[song.id] = song
                    found.album_ids[song.id] = str(entry.get("albumId", ""))
            if told is not None:
                told(len(found.songs))
            is_same_again = len(found.songs) == known and not all(isinstance(entry, str) for entry in entries)
            if is_same_again or len(found.songs) + found.left_out.total() > MAX_SONGS:
                break
        return found

    def _search_pages(self) -> Iterator[list[Any]]:
        start = 0
        while page := _entries(
            self._ask("search3", query="", songCount=PAGE, songOffset=start, artistCount=0, albumCount=0),
            "searchResult3", "song",
        ):  # fmt: skip
            yield page
            start += len(page)

    def _album_pages(self) -> Iterator[list[Any]]:
        for album_id, _ in self._albums("alphabeticalByName"):
            if entries := self._album_entries(album_id):
                yield entries

    def _albums(self, order: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Albums as they are listed, with their ids."""
        start = 0
        seen: set[str] = set()
        while page := _entries(self._ask("getAlbumList2", type=order, size=PAGE, offset=start), "albumList2", "album"):
            ids = ((str(album.get("id", "")), album) for album in page if isinstance(album, dict))
            new = {album_id: album for album_id, album in ids if is_id(album_id) and album_id not in seen}
            if not new:
                return
            seen.update(new)
            yield from new.items()
            start += len(page)

    def albums(self) -> dict[str, ServerAlbum]:
        """All albums by their ids; none where the server does not list them."""
        with suppress(RefusedError):
            return {
                album_id: ServerAlbum(_digest(entry), int(_number(entry.get("songCount"), MAX_SONGS) or 0))
                for album_id, entry in self._albums("alphabeticalByName")
            }
        return {}

    def album(self, album_id: str) -> list[ServerSong]:
        """Songs of an album."""
        entries = map(song_of, self._album_entries(album_id))
        return [song for song in entries if not isinstance(song, str)]

    def _album_entries(self, album_id: str) -> list[Any]:
        return _entries(self._ask("getAlbum", id=album_id), "album", "song")

    def artist_name(self, artist_id: str) -> str:
        """The name of an artist; "" where it has none. Raises RefusedError if there is none of this id."""
        return _text(_mapping(self._ask("getArtist", id=artist_id).get("artist")).get("name"))

    def starred(self) -> list[ServerSong]:
        """Songs that the user has starred."""
        entries = map(song_of, _entries(self._ask("getStarred2"), "starred2", "song"))
        return [song for song in entries if not isinstance(song, str)]

    def recent_albums(self) -> Iterator[list[ServerSong]]:
        """Songs of the albums that were played last, the latest album first."""
        for album_id, _ in self._albums("recent"):
            yield self.album(album_id)

    # --- playlists ----------------------------------------------------------------------------

    def playlist_ids(self, name: str) -> set[str]:
        """Ids of the playlists of a name."""
        lists = _entries(self._ask("getPlaylists"), "playlists", "playlist")
        return {str(entry.get("id")) for entry in lists if isinstance(entry, dict) and entry.get("name") == name}

    def playlist_songs(self, list_id: str) -> list[str]:
        """Ids of the songs of a playlist, in order."""
        entries = _entries(self._ask("getPlaylist", id=list_id), "playlist", "entry")
        return [str(entry.get("id")) for entry in entries if isinstance(entry, dict)]

    def create_playlist(self, name: str, song_ids: Sequence[str]) -> str:
        """Make a playlist, next to others of its name; its id."""
        before = self.playlist_ids(name)
        answer = self._ask("createPlaylist", name=name, songId=song_ids)
        made = str(_mapping(answer.get("playlist")).get("id", ""))
        new = self.playlist_ids(name) - before
        if made in new or len(new) == 1:
            return made if made in new else new.pop()
        raise ServerError(f"{self.connection.name}: the server did not keep the playlist “{name}”.")

    def replace_playlist(self, list_id: str, name: str, song_ids: Sequence[str]) -> None:
        """Give a playlist other songs."""
        self._ask("createPlaylist", playlistId=list_id, name=name, songId=song_ids)

    def describe_playlist(self, list_id: str, comment: str) -> None:
        """Give a playlist a comment."""
        self._ask("updatePlaylist", playlistId=list_id, comment=comment)

    def delete_playlist(self, list_id: str) -> None:
        """Delete a playlist; one that is not there is no error."""
        try:
            self._ask("deletePlaylist", id=list_id)
        except RefusedError as error:
            if not error.is_not_found:
                raise

    # --- sound --------------------------------------------------------------------------------

    def download(self, song_id: str, target: Path, *, max_bytes: int = _MAX_FILE) -> None:
        """Write a song's file to `target`; as it is streamed where the user may not download.

        Raises ServerError; what was written until then is of no use.
        """
        try:
            self._fetch("download", {"id": song_id}, target, max_bytes)
        except RefusedError as error:
            if error.is_not_found:
                raise
            self._fetch("stream", {"id": song_id, "format": "raw"}, target, max_bytes)

    def _fetch(self, call: str, parameters: Parameters, target: Path, max_bytes: int) -> None:
        with target.open("wb") as stream, self._opened(call, parameters) as response:
            self._refuse_text(response)
            self._copy(response, stream, max_bytes, _FILE_S)
            expected = response.headers.get("Content-Length", "")
            if expected.isdigit() and stream.tell() != int(expected):
                raise self._error("broke off in the middle of a song")

    def sound(self, song_id: str, form: str, start: int, n_bytes: int) -> tuple[bytes, int]:
        """A part of a song's sound, and the length of all of it in bytes; the part is empty behind its end.

        `form` is "raw" for the file as it is, else what the server is to make of it, such as "mp3". What a server
        makes, and what it sends without ranges, is read up to the part, or to its end where that tells the length.
        """
        asked = {"Range": f"bytes={start}-{start + n_bytes - 1}"}
        with self._opened("stream", {"id": song_id, "format": form}, asked) as response:
            said = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if response.status == 416 and said:
                return b"", int(said[3])
            self._refuse_text(response)
            is_part = response.status == 206 and said is not None and said[1] is not None
            if is_part and int(said[1]) != start:  # type: ignore[index]
                raise self._error("sent another part of a song than was asked for")
            blocks: list[bytes] = []
            length = response.headers.get("Content-Length", "")
            if is_part or length.isdigit():
                total = int(said[3]) if is_part else int(length)  # type: ignore[index]
                wanted = n_bytes if is_part else start + n_bytes
                self._copy(response, blocks, _MAX_WHOLE, self._answer_s, enough=wanted)
            else:
                self._copy(response, blocks, _MAX_WHOLE, self._answer_s)
                total = sum(map(len, blocks))
            data = b"".join(blocks)
            return (data if is_part else data[start:])[:n_bytes], total

    def _refuse_text(self, response: urllib3.BaseHTTPResponse) -> None:
        """Raise what a server says instead of sending sound."""
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if response.status >= 400 or kind.startswith("text/") or kind.endswith(("json", "xml")):
            self._read_answer(response)
            raise self._error("sent a message where a song's sound should be")

    # --- requests -----------------------------------------------------------------------------

    def _ask(self, call: str, **parameters: str | int | Sequence[str]) -> dict[str, Any]:
        """What a call answers, as a mapping."""
        with self._opened(call, parameters) as response:
            return self._read_answer(response)

    def _read_answer(self, response: urllib3.BaseHTTPResponse) -> dict[str, Any]:
        blocks: list[bytes] = []
        self._copy(response, blocks, _MAX_ANSWER, self._answer_s)
        try:
            answer = json.loads(b"".join(blocks))["subsonic-response"]
            status = answer["status"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if response.status != 200:
                raise self._error(f"answered with status {response.status}") from error
            raise self._error("answered what is no answer of a Subsonic server in JSON") from error
        if status == "ok":
            return dict(answer)
        problem = _mapping(answer.get("error"))
        code = problem.get("code")
        code = code if isinstance(code, int) else 0
        words = _text(problem.get("message"))[:200] or "no reason given"
        if code == _WRONG_LOGIN:
            words = f"{words}; check the user and the password"
        raise RefusedError(f"{self.connection.name}: the server refused: {words} (error {code}).", code)

    @contextmanager
    def _opened(
        self, call: str, parameters: Parameters, headers: Mapping[str, str] | None = None
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """The response to a call; whatever goes wrong with it becomes a ServerError."""
        pairs = [(name, str(value)) for name, value in self._login().items()]
        for name, value in parameters.items():
            pairs += [(name, str(one)) for one in ([value] if isinstance(value, str | int) else value)]
        address = f"{self.connection.address}/rest/{call}.view"
        # a password in an address would stand in the logs of servers
        is_form = self.connection.sends == "password" or sum(len(n) + len(v) for n, v in pairs) > _MAX_ADDRESS
        how: dict[str, Any] = {"redirect": False, "preload_content": False, "decode_content": False}
        method, how = ("POST", how | {"encode_multipart": False}) if is_form else ("GET", how)
        try:
            response = self._pool.request(method, address, fields=pairs, headers=headers, **how)
        except (faults.HTTPError, OSError, ValueError) as error:
            raise self._error(_why(error)) from None  # the cause quotes the address, and with it the secret
        try:
            if 300 <= response.status < 400 and response.status != 304:
                place = _text(response.headers.get("Location"))[:200].partition("?")[0]
                raise self._error(f"sends requests on to {place or 'another address'}; add it by that address")
            yield response
        except (faults.HTTPError, ConnectionError, TimeoutError) as error:
            raise self._error(_why(error)) from None
        finally:
            response.close()

    def _login(self) -> dict[str, str]:
        own = self.connection
        common = {"v": _VERSION, "c": _CLIENT, "f": "json"}
        if own.sends == "key":
            return common | {"apiKey": own.secret}
        if own.sends == "password":
            return common | {"u": own.user, "p": "enc:" + own.secret.encode().hex()}
        salt = secrets.token_hex(8)
        token = hashlib.md5((own.secret + salt).encode(), usedforsecurity=False).hexdigest()
        return common | {"u": own.user, "t": token, "s": salt}

    def _copy(
        self,
        response: urllib3.BaseHTTPResponse,
        into: list[bytes] | IO[bytes],
        max_bytes: int,
        max_s: float,
        enough: int | None = None,
    ) -> None:
        """Read a response to its end, or `enough` bytes, in blocks as they come, so that a trickle ends in time too."""
        add = into.append if isinstance(into, list) else into.write
        until, n_bytes = time.monotonic() + max_s, 0
        while block := response.read1(_BLOCK):
            n_bytes += len(block)
            if n_bytes > max_bytes:
                raise self._error(f"answered more than {max_bytes >> 20} MB")
            if time.monotonic() > until:
                raise self._error(f"took more than {max_s:g} s for one answer")
            add(block)
            if enough is not None and n_bytes >= enough:
                return

    def _error(self, words: str) -> ServerError:
        return ServerError(f"{self.connection.name}: the server at {self.connection.address} {words}.")


def _why(error: Exception) -> str:
    """What went wrong with a connection, without what was sent."""
    if isinstance(error, faults.SSLError):
        return "has no certificate that is trusted here"
    if isinstance(error, faults.NewConnectionError):
        return "cannot be reached: check the address, and that it runs"
    if isinstance(error, faults.TimeoutError | TimeoutError):
        return "does not answer in time"
    if isinstance(error, faults.LocationValueError | ValueError):
        return "cannot be asked: check its address"
    return "broke off in the middle of an answer"


# --- entries ------------------------------------------------------------------------------------


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _entries(answer: Mapping[str, Any], name: str, of: str) -> list[Any]:
    """A list in an answer; of one entry some servers give the entry alone."""
    found = _mapping(answer.get(name)).get(of, [])
    return found if isinstance(found, list) else [found]


def _digest(said: Any) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def _age_s(time_s: float, date: str | None) -> float:
    """Seconds from a time of a server to its answer, by its clock where the answer has a date."""
    try:
        return (parsedate_to_datetime(date).timestamp() if date else time.time()) - time_s
    except ValueError:
        return time.time() - time_s


def _text(value: Any) -> str:
    """A text that can be stored: no lone surrogates or control characters, and not without end."""
    if not isinstance(value, str):
        return ""
    clean = value[:_MAX_TEXT].encode("utf-8", "replace").decode()
    return "".join(c if c.isprintable() else " " for c in clean).strip()


def _number(value: Any, most: float) -> float | None:
    """A number from 0 to `most`; None for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= most else None


def song_of(entry: Any) -> ServerSong | str:
    """A song as an answer lists it; why it is left out, where it cannot be one."""
    if not isinstance(entry, dict):
        return "no entry of a song"
    server_id = entry.get("id")
    server_id = str(server_id) if isinstance(server_id, int) else server_id
    if not isinstance(server_id, str) or not is_id(server_id):
        return "no id, or one that is too long"
    if entry.get("isDir") is True or entry.get("isVideo") is True:
        return "a folder or a video"
    mbid = _text(entry.get("musicBrainzId")).lower()
    return ServerSong(
        server_id,
        _text(entry.get("title")),
        _text(entry.get("artist")),
        _text(entry.get("album")),
        _text(entry.get("path")),
        mbid if re.fullmatch(MBID, mbid) else "",
        _number(entry.get("duration"), 1e7),
        int(_number(entry.get("playCount"), _MAX_PLAYS) or 0),
        int(_number(entry.get("userRating"), 5) or 0),
        bool(entry.get("starred")),
        _seconds(entry.get("played")),
    )


def _seconds(value: Any) -> float | None:
    """Seconds since 1970 of a time as ISO 8601 writes it."""
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None
