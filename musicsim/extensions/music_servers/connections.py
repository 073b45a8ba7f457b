"""Which music servers a library is connected to, kept with their secrets where only its owner can read them."""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from musicsim import logs
from musicsim.errors import LibraryError, NotFoundError
from musicsim.extensions.music_servers.server_songs import SERVERS_FOLDER, ServerSongs
from musicsim.library import Library, Song
from musicsim.library.disk.arrays import private_path
from musicsim.public import is_public

SERVERS_FILE = "servers.json"

Sends = Literal["token", "password", "key"]
"""What a server is sent: the password's hash with a salt, the password itself (some servers know nothing else), or an
API key."""

_NAME = re.compile(r"[^\W_][\w .@-]{0,59}")


@dataclass(frozen=True, slots=True)
class Connection:
    """A server as one of its users sees it.

    Raises LibraryError if name, address or user cannot be used.
    """

    name: str
    address: str  # http or https, as far as /rest
    user: str
    secret: str = field(repr=False)  # password or API key
    sends: Sends = "token"
    takes_listening: bool = True  # whether plays, stars and ratings are imported
    modified: str = ""  # the state of its songs when it was synced; "" where it did not tell
    # seconds since 1970
    synced_at: float | None = None
    listed_at: float | None = None  # when all of its songs were listed last

    def __post_init__(self) -> None:
        logs.hide(self.secret)
        object.__setattr__(self, "address", self.address.strip().rstrip("/").removesuffix("/rest"))
        if not _NAME.fullmatch(self.name):
            raise LibraryError(
                f"{self.name!r} cannot name a server: use up to 60 letters, digits, spaces, points and hyphens."
            )
        if not _is_address(self.address):
            raise LibraryError(
                f"{self.address!r} is no address of a server: write http:// or https://, a host and a port, without "
                f"a user or a question mark."
            )
        if self.sends not in get_args(Sends):
            raise LibraryError(f"{self.name}: sends={self.sends!r} should be one of {get_args(Sends)}.")
        if not self.secret or not (self.user or self.sends == "key"):
            raise LibraryError(f"{self.name}: name a user and a password, or an API key.")

    @property
    def listener(self) -> str:
        """Whose plays and stars are seen there."""
        return self.user or self.name


def _is_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        is_plain = not (parts.query or parts.fragment or parts.username or parts.password)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and is_plain and parts.port != 0
    except ValueError:  # a port that is no number
        return False


class Connections:
    """The servers of one library, in a file of mode 600."""

    def __init__(self, library: Library) -> None:
        self._file = library.folder / SERVERS_FILE

    def all(self) -> list[Connection]:
        """Servers by name. Raises LibraryError if the file cannot be read."""
        try:
            listed = json.loads(self._file.read_text(encoding="utf-8"))
            return [Connection(**entry) for entry in listed]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError, LibraryError) as error:
            # what is wrong with it may quote a secret
            raise LibraryError(
                f"{self._file}: the list of music servers cannot be read ({type(error).__name__}). Delete the file and "
                f"add the servers again; what was synced stays."
            ) from None

    def get(self, name: str) -> Connection:
        """The server of a name. Raises NotFoundError if there is none."""
        known = self.all()
        for connection in known:
            if connection.name == name:
                return connection
        names = ", ".join(connection.name for connection in known) or "none"
        raise NotFoundError(f"there is no music server {name!r} in this library; there are: {names}.")

    def put(self, connection: Connection) -> None:
        """Add a server, or replace the one of its name."""
        others = [known for known in self.all() if known.name != connection.name]
        self._write(sorted([*others, connection], key=lambda c: c.name))

    def note(self, name: str, **said: Any) -> None:
        """Note fields of a server that was synced, unless it was removed meanwhile."""
        self._write(replace(known, **said) if known.name == name else known for known in self.all())

    def remove(self, name: str) -> Connection:
        """Forget a server and its secret. Raises NotFoundError if there is none of this name."""
        gone = self.get(name)
        self._write(known for known in self.all() if known.name != name)
        return gone

    def _write(self, connections: Iterable[Connection]) -> None:
        text = json.dumps([asdict(connection) for connection in connections], indent=1)
        with private_path(self._file) as temporary:
            temporary.write_text(text, encoding="utf-8")


FETCHED = "sound"
"""How songs are matched whose sound was fetched and analysed."""


def has_sound(library: Library, song: Song) -> bool:
    """Whether a song can be heard: from its file, or from a server."""
    if song.path.is_file() or is_public():  # a visitor does not hear what the owner's servers have
        return song.path.is_file()
    return ServerSongs(library).id_of(song.id) is not None


def servers_folder(library: Library, server: str) -> Path:
    """Where the songs of a server that have no file here are listed; no file is there."""
    return library.folder / SERVERS_FOLDER / server


def place_of(library: Library, server: str, server_id: str, path: str) -> Path:
    """Where a song of a server without a file here is listed.

    Its path on the server says folders and name; parts that would lead elsewhere are left out.
    """
    parts = [_plain(part) for part in re.split(r"[/\\]+", path)]
    below = [part for part in parts if part.strip(". ")][-4:] or [_plain(server_id)]
    return servers_folder(library, server).joinpath(*below)


def _plain(part: str) -> str:
    return "".join(c for c in part if c.isprintable() and c not in "/\\\0")[:120]
