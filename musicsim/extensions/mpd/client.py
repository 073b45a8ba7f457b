"""MPD, the Music Player Daemon: songs into its queue and its stored playlists.

MPD names songs by paths relative to its ``music_directory``. It says where that is to clients on a Unix socket only;
elsewhere ``MUSICSIM_MPD_MUSIC`` or what is kept says which folder here it is, else it is the folders of the library.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from musicsim import logs
from musicsim.errors import ServerError
from musicsim.extensions.mpd._lines import bounded_client
from musicsim.library import Library, Song
from musicsim.library.disk.arrays import private_path

MPD_FILE = "mpd.json"
_PORT = 6600
_TIMEOUT_S = 10.0
_MAX_REASON = 200  # characters
_MAX_QUIET_S = 60.0  # without news, after which the connection is made again: a dead one is silent, too
_NOT_IN_TITLES = re.compile(r"[/\s\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class MpdAddress:
    """Where MPD answers; a host that begins with ``/`` or ``@`` is a Unix socket."""

    host: str = "localhost"
    port: int = _PORT
    password: str = field(default="", repr=False)
    music: str = ""  # the folder on this machine that is its music_directory, where that has to be said

    def __post_init__(self) -> None:
        logs.hide(self.password)

    def __str__(self) -> str:
        return self.host if self.host.startswith(("/", "@")) else f"{self.host}:{self.port}"


def is_in_environment() -> bool:
    """Whether the environment names an MPD; it comes before what a library keeps."""
    return bool(os.environ.get("MPD_HOST") or os.environ.get("MPD_PORT"))


def is_mpd_set(library: Library) -> bool:
    """Whether the environment names an MPD, or the library keeps one."""
    return is_in_environment() or _file(library).exists()


def keep_mpd(library: Library, address: MpdAddress | None) -> None:
    """Keep where MPD answers in a file of the library that only its owner can read; None removes it."""
    if address is None:
        _file(library).unlink(missing_ok=True)
        return
    with private_path(_file(library)) as temporary:
        temporary.write_text(json.dumps(asdict(address)), encoding="utf-8")


def _file(library: Library) -> Path:
    return library.folder / MPD_FILE


def mpd_address(library: Library) -> MpdAddress:
    """The address in the environment, else the one that the library keeps, else MPD's own.

    ``MPD_HOST`` and ``MPD_PORT`` are read as mpc reads them; ``password@host`` has a password.

    Raises ServerError if the port is no number, or what is kept cannot be read.
    """
    if not is_in_environment():
        return _kept(library)
    host, port = os.environ.get("MPD_HOST") or "localhost", os.environ.get("MPD_PORT") or str(_PORT)
    if not port.isascii() or not port.isdigit():
        raise ServerError(f"MPD_PORT is {port!r}: set it to a number, such as {_PORT}.")
    password, at, rest = host.partition("@")
    if password and at:
        return MpdAddress(rest or "localhost", int(port), password)
    return MpdAddress(host, int(port))


def _kept(library: Library) -> MpdAddress:
    try:
        return MpdAddress(**json.loads(_file(library).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return MpdAddress()
    except (OSError, ValueError, TypeError):
        raise ServerError(f"{_file(library)} cannot be read: delete it, and say where MPD is again.") from None


class MpdAwayError(ServerError):
    """MPD does not answer, or no longer."""


class Mpd:
    """A connection to MPD, open within ``with``.

    Its methods raise ServerError where MPD refuses something, and MpdAwayError where it does not answer.
    """

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
            self._client = bounded_client()
        except ImportError as error:
            raise ServerError("python-mpd2 is not installed: pip install 'musicsim[mpd]'.") from error
        self._client.timeout, self._client.idletimeout = _TIMEOUT_S, _MAX_QUIET_S
        with self._asked():
            self._client.connect(self.address.host, self.address.port)
            if self.address.password:
                self._client.password(self.address.password)
            self._folders = self._music_folders()

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """Turn errors of the connection, and of what MPD says, into sentences."""
        from mpd import CommandError, MPDError

        try:
            yield
        except ServerError:
            raise
        except CommandError as error:
            raise ServerError(f"MPD at {self.address} refuses: {_short(error)}.") from error
        except (MPDError, OSError, UnicodeError) as error:
            self._client.disconnect()
            raise MpdAwayError(
                f"MPD at {self.address} does not answer ({_short(error) or type(error).__name__}). "
                "Is it running, and is this its address?"
            ) from error
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            # wrong numbers, and fields that are missing or come twice
            self._client.disconnect()
            raise ServerError(
                f"MPD at {self.address} gives an answer that cannot be understood ({_short(error)}). Is this the "
                "address of an MPD?"
            ) from error

    # --- paths --------------------------------------------------------------------------------

    def _music_folders(self) -> list[Path]:
        """Folders here that MPD's paths may be relative to."""
        from mpd import CommandError

        if named := os.environ.get("MUSICSIM_MPD_MUSIC") or self.address.music:
            return [Path(named).expanduser().absolute()]
        try:
            said = self._client.config()
        except CommandError:  # not on a Unix socket
            said = None
        # python-mpd2 reads no answer of several lines, as later versions of MPD give
        is_folder = isinstance(said, str) and os.path.isabs(said) and "\0" not in said
        return [Path(said)] if is_folder else self._library.files.roots()

    def _names_of(self, paths: Sequence[Path]) -> list[str]:
        """What MPD may call the song in some files."""
        pairs = ((path, folder) for path in paths for folder in self._folders)
        both = (pair for path, folder in pairs for pair in ((path, folder), (path.resolve(), folder.resolve())))
        names = (file.relative_to(top).as_posix() for file, top in both if file.is_relative_to(top))
        return [name for name in dict.fromkeys(names) if _can_be_sent(name)]

    def song_ids(self, names: Sequence[str]) -> list[int | None]:
        """The songs of the library that MPD calls so; None where it has none."""
        tops = dict.fromkeys(top for folder in self._folders for top in (folder, folder.resolve()))
        found = self._library.files.songs_at(top / name for name in names for top in tops)
        return [next((found[top / name] for top in tops if top / name in found), None) for name in names]

    def known(self, songs: Sequence[Song]) -> list[tuple[Song, str]]:
        """The songs that MPD has, each with its name there."""
        paths = self._library.files.paths_of(song.id for song in songs)
        named = ((song, filter(self._has, self._names_of(paths.get(song.id, ())))) for song in songs)
        return [(song, name) for song, names in named if (name := next(names, None)) is not None]

    def _has(self, name: str) -> bool:
        from mpd import CommandError, FailureResponseCode

        with self._asked():
            try:
                return any(entry.get("file") == name for entry in self._client.lsinfo(name))
            except CommandError as error:
                if error.errno in (FailureResponseCode.NO_EXIST, FailureResponseCode.ARG):
                    return False
                raise

    # --- queue and lists ----------------------------------------------------------------------

    def _split(self, songs: Sequence[Song]) -> tuple[list[str], list[Song]]:
        """The names of the songs that MPD has, and the other songs."""
        known = self.known(songs)
        if not known:
            raise ServerError(
                f"MPD at {self.address} has none of these songs: let it update its database, or say which folder "
                "here is its music_directory (MUSICSIM_MPD_MUSIC, or on the Library page)."
            )
        ids = {song.id for song, _ in known}
        return [name for _, name in known], [song for song in songs if song.id not in ids]

    def queue(self, songs: Sequence[Song], *, replace: bool = False, play: bool = False) -> list[Song]:
        """Append songs to the queue, or let them take its place, and play the first of them.

        Returns those that MPD does not have; raises ServerError if it has none of them.
        """
        names, unknown = self._split(songs)
        with self._asked():
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
        """Keep songs as a stored playlist; returned and raised is what :meth:`queue` returns and raises.

        Raises ServerError also if there is a playlist of this name that is not to be replaced.
        """
        title = _NOT_IN_TITLES.sub(" ", title).strip()
        if not title:
            raise ServerError("MPD needs a name for the playlist: give it one that is more than slashes.")
        names, unknown = self._split(songs)
        with self._asked():
            is_taken = title in [_text(entry["playlist"]) for entry in self._client.listplaylists()]
        if is_taken and not replace:
            raise ServerError(f"MPD has a playlist “{title}” already: choose another name, or replace it.")
        with self._asked():
            self._client.command_list_ok_begin()
            if is_taken:
                self._client.rm(title)
            for name in names:
                self._client.playlistadd(title, name)
            self._client.command_list_end()
        return unknown

    def queued(self) -> tuple[list[str], int]:
        """The names of the songs in the queue, and how many of them come after the one that plays."""
        with self._asked():
            status, entries = self._client.status(), self._client.playlistinfo()
            names = [_text(entry["file"]) for entry in entries]
            playing = min(max(int(status.get("song", -1)), -1), len(names) - 1)
        return names, len(names) - 1 - playing

    def wait(self) -> None:
        """Return when the player or the queue has changed, and once a minute."""
        try:
            with self._asked():
                self._client.idle("player", "playlist")
        except MpdAwayError as error:
            if not isinstance(error.__cause__, TimeoutError):
                raise
            self._connect()


def _text(value: Any) -> str:
    """Return a field of an answer; python-mpd2 makes a list of one that comes twice."""
    if not isinstance(value, str):
        raise TypeError("a field comes twice")
    return value


def _short(error: object) -> str:
    """Put what MPD may have written into one line."""
    return " ".join(str(error).split())[:_MAX_REASON].rstrip(".")


def _can_be_sent(name: str) -> bool:
    """Whether MPD's protocol, which is lines of UTF-8, has a way to write a name."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return not {"\n", "\r"} & set(name)
