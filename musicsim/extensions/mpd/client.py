"""A client for MPD, the Music Player Daemon, which names songs by paths relative to its ``music_directory``."""

import io
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from musicsim import extras, logs
from musicsim.errors import ServerError
from musicsim.library import Library, Song, write_private

MPD_FILE = "mpd.json"
UPDATE_ADVICE = "MPD is updating its database. Try again when it has finished."
_PORT = 6600
TIMEOUT_S = 10.0
_MAX_REASON = 200  # characters
_MAX_QUIET_S = 60.0  # seconds without an event after which the client reconnects, because the connection may be dead
_NOT_SENT = re.compile("[\n\r\ud800-\udfff]")  # characters that a line of UTF-8 cannot contain
_NOT_IN_TITLES = re.compile(r"[/\s\x00-\x1f\x7f]+")
_MAX_LINE, _MAX_ANSWER = 1 << 16, 32 << 20  # maximum bytes per line and response; a queue of 16,000 songs takes 10 MB
_MAX_LINES = 1_000_000  # maximum number of lines per response; python-mpd2 uses up to 200 bytes of memory per line
MAX_ANSWER_S = 30.0
_CHUNK = 1 << 16


class _BoundedLines:
    """The reading end of a connection, with limits for each response; call :meth:`begin` before each response."""

    def __init__(self, file: Any) -> None:
        self._file, self._held = file, bytearray()
        self.begin(0.0)

    def begin(self, pause_s: float) -> None:
        """Reset the limits for a new response, which may take `pause_s` seconds to begin."""
        self._n_bytes, self._n_lines, self._ends = 0, 0, time.monotonic() + MAX_ANSWER_S + pause_s

    def readline(self) -> bytes:
        """Read a line, or the rest of the data if the connection has ended. Raises OSError if a limit is exceeded."""
        searched = 0
        while (end := self._held.find(b"\n", searched)) < 0:
            searched = len(self._held)
            if searched > _MAX_LINE:
                raise OSError(f"it sent a line of more than {_MAX_LINE:,} bytes")
            chunk = self._file.read1(_CHUNK)
            if not chunk:
                end = searched - 1
                break
            self._held += chunk
            if time.monotonic() > self._ends:
                raise TimeoutError("its response took too long")
        line = bytes(self._held[: end + 1])
        del self._held[: end + 1]
        self._n_bytes += len(line)
        self._n_lines += 1
        if self._n_bytes > _MAX_ANSWER or self._n_lines > _MAX_LINES:
            raise OSError(f"it sent a response of more than {_MAX_LINES:,} lines or {_MAX_ANSWER:,} bytes")
        return line

    def close(self) -> None:
        self._file.close()


def make_client() -> Any:
    """Return a client that is not connected yet. Raises ImportError if python-mpd2 is not installed."""
    from mpd import MPDClient

    class BoundedClient(MPDClient):
        """A client with limits on responses, which the base class reads from `_rbfile`."""

        @property
        def _rbfile(self) -> Any:
            return self._lines

        @_rbfile.setter
        def _rbfile(self, file: Any) -> None:
            self._lines = _BoundedLines(file) if isinstance(file, io.BufferedReader) else file

        def _write_command(self, command: str, args: Any = ()) -> None:
            if isinstance(self._lines, _BoundedLines):
                self._lines.begin((self.idletimeout or 0.0) if command == "idle" else 0.0)
            super()._write_command(command, args)

    return BoundedClient()


@dataclass(frozen=True, slots=True)
class MpdAddress:
    """MPD's address; a host that begins with ``/`` or ``@`` is a Unix socket."""

    host: str = "localhost"
    port: int = _PORT
    password: str = field(default="", repr=False)
    music: str = ""  # MPD's music_directory, as a path on this machine

    def __post_init__(self) -> None:
        logs.hide(self.password)

    def __str__(self) -> str:
        return self.host if self.host.startswith(("/", "@")) else f"{self.host}:{self.port}"


def is_in_environment() -> bool:
    """Return True if the environment contains an address, which overrides the library's address."""
    return bool(os.environ.get("MPD_HOST") or os.environ.get("MPD_PORT"))


def is_mpd_set(library: Library) -> bool:
    return is_in_environment() or _file(library).exists()


def save_address(library: Library, address: MpdAddress | None) -> None:
    """Save the address in the library, in a file that only its owner can read; None removes the address."""
    if address is None:
        _file(library).unlink(missing_ok=True)
        return
    write_private(_file(library), json.dumps(asdict(address)))


def _file(library: Library) -> Path:
    return library.folder / MPD_FILE


def mpd_address(library: Library) -> MpdAddress:
    """Return the address from the environment (in mpc's format); otherwise the library's address or MPD's default."""
    if not is_in_environment():
        try:
            return MpdAddress(**json.loads(_file(library).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return MpdAddress()
        except (OSError, ValueError, TypeError):
            raise ServerError(f"{_file(library)} cannot be read. Delete this file, and connect MPD again.") from None
    host, port = os.environ.get("MPD_HOST") or "localhost", os.environ.get("MPD_PORT") or str(_PORT)
    if not port.isascii() or not port.isdigit():
        raise ServerError(f"MPD_PORT is {port!r}. Set it to a number, such as {_PORT}.")
    password, at, rest = host.partition("@")
    if password and at:
        return MpdAddress(rest or "localhost", int(port), password)
    return MpdAddress(host, int(port))


class MpdAwayError(ServerError):
    """MPD does not respond."""


class Mpd:
    """A connection to MPD, open inside ``with``. Methods raise ServerError, or MpdAwayError if MPD does not respond."""

    def __init__(self, library: Library, address: MpdAddress) -> None:
        self._library, self.address = library, address
        self._client: Any = None
        self._folders: list[Path] = []

    def __enter__(self) -> Self:
        try:
            self._connect()
        except ServerError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.disconnect()

    def _connect(self) -> None:
        try:
            self._client = make_client()
        except ImportError as error:
            raise ServerError(f"python-mpd2 is not installed. Run: {extras.install_command('mpd')}") from error
        self._client.timeout, self._client.idletimeout = TIMEOUT_S, _MAX_QUIET_S
        with self._translate_errors():
            self._client.connect(self.address.host, self.address.port)
            if self.address.password:
                self._client.password(self.address.password)
            self._folders = self._music_folders()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        from mpd import CommandError, MPDError

        try:
            yield
        except ServerError:
            raise
        except CommandError as error:
            raise ServerError(f"MPD at {self.address} refused the request: {_short(error)}.") from error
        except (MPDError, OSError, UnicodeError) as error:
            self._client.disconnect()
            reason = _short(error) or type(error).__name__
            problem = f"MPD at {self.address} does not respond ({reason}). Is MPD running at this address?"
            raise MpdAwayError(problem) from error
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            # raised for invalid numbers, and for missing or repeated fields
            self._client.disconnect()
            problem = f"MPD at {self.address} sent an invalid response ({_short(error)})"
            raise ServerError(f"{problem}. Is MPD running at this address?") from error

    def _music_folders(self) -> list[Path]:
        """Return the local folders that MPD's paths may be relative to."""
        from mpd import CommandError

        if folder := os.environ.get("MUSICSIM_MPD_MUSIC") or self.address.music:
            return [Path(folder).expanduser().absolute()]
        try:
            config = self._client.config()
        except CommandError:  # not connected over a Unix socket
            config = None
        # newer versions of MPD send longer responses, which python-mpd2 cannot parse
        is_folder = isinstance(config, str) and os.path.isabs(config) and "\0" not in config
        return [Path(config)] if is_folder else self._library.files.roots()

    def names_of(self, paths: Sequence[Path]) -> list[str]:
        pairs = ((path, folder) for path in paths for folder in self._folders)
        both = (pair for path, folder in pairs for pair in ((path, folder), (path.resolve(), folder.resolve())))
        names = (file.relative_to(top).as_posix() for file, top in both if file.is_relative_to(top))
        return [name for name in dict.fromkeys(names) if not _NOT_SENT.search(name)]

    def song_ids(self, names: Sequence[str]) -> list[int | None]:
        """Return the ids of the songs that have these names in MPD; None for unknown names."""
        tops = dict.fromkeys(top for folder in self._folders for top in (folder, folder.resolve()))
        songs = self._library.files.songs_at(top / name for name in names for top in tops)
        return [next((songs[top / name] for top in tops if top / name in songs), None) for name in names]

    def find_known(self, songs: Sequence[Song]) -> list[tuple[Song, str]]:
        """Return the songs that MPD has, with their names in MPD."""
        paths = self._library.files.paths_of(song.id for song in songs)
        pairs = ((song, filter(self._has, self.names_of(paths.get(song.id, ())))) for song in songs)
        return [(song, name) for song, names in pairs if (name := next(names, None)) is not None]

    def _has(self, name: str) -> bool:
        from mpd import CommandError, FailureResponseCode

        with self._translate_errors():
            try:
                return any(entry.get("file") == name for entry in self._client.lsinfo(name))
            except CommandError as error:
                if error.errno in (FailureResponseCode.NO_EXIST, FailureResponseCode.ARG):
                    return False
                raise

    def _split(self, songs: Sequence[Song]) -> tuple[list[str], list[Song]]:
        known = self.find_known(songs)
        if not known:
            advice = "Update MPD's database, or set MUSICSIM_MPD_MUSIC to its music_directory on this machine."
            if self.is_updating():
                advice = UPDATE_ADVICE
            problem = f"MPD at {self.address} has none of these songs"
            raise ServerError(f"{problem} from the library {self._library.folder.name!r}. {advice}")
        ids = {song.id for song, _ in known}
        return [name for _, name in known], [song for song in songs if song.id not in ids]

    def is_updating(self) -> bool:
        """Return whether MPD is reading its music folder, so that it may not have all songs yet."""
        with self._translate_errors():
            return "updating_db" in self._client.status()

    def queue(self, songs: Sequence[Song], *, replace: bool = False, play: bool = False) -> list[Song]:
        """Append songs to the queue, or replace it; `play` starts the first one. Return the songs not in MPD."""
        names, unknown = self._split(songs)
        with self._translate_errors():
            n_before = 0 if replace else int(self._client.status()["playlistlength"])
            self._client.command_list_ok_begin()
            if replace:
                self._client.clear()
            for name in names:
                self._client.add(name)
            if play:
                self._client.play(n_before)
            self._client.command_list_end()
        return unknown

    def save(self, title: str, songs: Sequence[Song], *, replace: bool = False) -> list[Song]:
        """Save songs as a stored playlist; `replace` allows overwriting. Return the songs that are not in MPD."""
        title = _NOT_IN_TITLES.sub(" ", title).strip()
        if not title:
            raise ServerError("the playlist's name contains only slashes and spaces. Give it a name for MPD.")
        names, unknown = self._split(songs)
        with self._translate_errors():
            is_taken = title in [_text(entry["playlist"]) for entry in self._client.listplaylists()]
        if is_taken and not replace:
            raise ServerError(f"MPD already has a playlist “{title}”. Choose a different name, or replace it.")
        with self._translate_errors():
            self._client.command_list_ok_begin()
            if is_taken:
                self._client.rm(title)
            for name in names:
                self._client.playlistadd(title, name)
            self._client.command_list_end()
        return unknown

    def read_queue(self) -> tuple[list[str], int]:
        """Return the names of the songs in the queue, and the number of songs after the current song."""
        with self._translate_errors():
            status, entries = self._client.status(), self._client.playlistinfo()
            names = [_text(entry["file"]) for entry in entries]
            playing = min(max(int(status.get("song", -1)), -1), len(names) - 1)
        return names, len(names) - 1 - playing

    def wait(self) -> None:
        """Wait until the player or the queue changes, for at most a minute."""
        try:
            with self._translate_errors():
                self._client.idle("player", "playlist")
        except MpdAwayError as error:
            if not isinstance(error.__cause__, TimeoutError):
                raise
            self._connect()


def _text(value: Any) -> str:
    """Return a field of a response. Raises TypeError for a repeated field, which python-mpd2 returns as a list."""
    if not isinstance(value, str):
        raise TypeError("a field occurs twice")
    return value


def _short(error: object) -> str:
    return " ".join(str(error).split())[:_MAX_REASON].rstrip(".")
