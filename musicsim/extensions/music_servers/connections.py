"""The music servers connected to a library, stored with their secrets in a file that only its owner can read."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from musicsim import logs
from musicsim.errors import LibraryError, NotFoundError
from musicsim.extensions.music_servers import EXTENSION
from musicsim.library import Library, update_private

SERVERS_FILE = "servers.json"
FETCHED = "sound"  # value of `how` for songs that were downloaded and analyzed
Sends = Literal["token", "password", "key"]
"""Form of the secret in a request: a salted hash of the password, the password itself, or an API key."""

_NAME = re.compile(r"[^\W_][\w .@-]{0,59}")


@dataclass(frozen=True, slots=True)
class Connection:
    """A server and one of its users. Raises LibraryError if the name, address, user or secret is invalid."""

    name: str
    address: str  # http or https address, without /rest
    user: str
    secret: str = field(repr=False)  # password or API key
    sends: Sends = "token"
    takes_listening: bool = True  # whether syncs import plays, stars and ratings
    modified: str = ""  # state of the server's songs at the last sync; "" if unknown
    synced_at: float | None = None  # time of the last sync, in seconds since 1970
    listed_at: float | None = None  # time when all songs were last listed, in seconds since 1970

    def __post_init__(self) -> None:
        logs.hide(self.secret)
        object.__setattr__(self, "address", self.address.strip().rstrip("/").removesuffix("/rest"))
        if not _NAME.fullmatch(self.name):
            raise LibraryError(f"{self.name!r}: use a name of up to 60 letters, digits, spaces, periods and hyphens.")
        if not _is_address(self.address):
            raise LibraryError(f"{self.address!r} is not a valid server address. Use the form https://HOST:PORT.")
        if self.sends not in get_args(Sends):
            raise LibraryError(f"{self.name}: sends={self.sends!r} must be one of {get_args(Sends)}.")
        if not self.secret or not (self.user or self.sends == "key"):
            raise LibraryError(f"{self.name}: enter a user name and a password, or an API key.")

    @property
    def listener(self) -> str:
        return self.user or self.name


def _is_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        is_plain = not (parts.query or parts.fragment or parts.username or parts.password)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and is_plain and parts.port != 0
    except ValueError:  # the port is not a number
        return False


class Connections:
    """The servers connected to one library."""

    def __init__(self, library: Library) -> None:
        self._file = library.folder / SERVERS_FILE

    def all(self) -> list[Connection]:
        """Return all servers, sorted by name. Raises LibraryError if the file cannot be read."""
        try:
            content = self._file.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._unreadable(error) from None
        return self._parse(content)

    def _parse(self, content: bytes) -> list[Connection]:
        try:
            return [Connection(**entry) for entry in json.loads(content)]
        except (ValueError, TypeError, LibraryError) as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: Exception) -> LibraryError:
        # the error itself may quote a secret
        problem = f"the list of music servers cannot be read ({type(error).__name__})"
        return LibraryError(f"{self._file}: {problem}. Delete the file and connect the servers again.")

    def get(self, name: str) -> Connection:
        connections = {connection.name: connection for connection in self.all()}
        if name not in connections:
            names = ", ".join(connections) or "none"
            raise NotFoundError(f"this library has no music server named {name!r}. Connected servers: {names}.")
        return connections[name]

    def put(self, connection: Connection) -> None:
        self._update(lambda known: [*(other for other in known if other.name != connection.name), connection])

    def note(self, name: str, **fields: Any) -> None:
        """Update fields of a server, unless the server has been removed."""
        self._update(lambda known: (replace(c, **fields) if c.name == name else c for c in known))

    def remove(self, name: str) -> None:
        self.get(name)
        self._update(lambda known: (other for other in known if other.name != name))

    def _update(self, change: Callable[[list[Connection]], Iterable[Connection]]) -> None:
        def update(content: bytes | None) -> str:
            changed = sorted(change([] if content is None else self._parse(content)), key=lambda c: c.name)
            return json.dumps([asdict(connection) for connection in changed], indent=1)

        update_private(self._file, update)


def check(library: Library) -> None:
    """Raise LibraryError if the list of servers cannot be read."""
    Connections(library).all()


def servers_folder(library: Library, server: str) -> Path:
    """Return the virtual folder of a server's songs without local files; this folder does not exist on disk."""
    return library.folder / EXTENSION.remote_folder / server


def place_of(library: Library, server: str, server_id: str, path: str) -> Path:
    """Return a virtual path for a server's song without a local file, always inside the server's folder."""
    parts = [_clean(part) for part in re.split(r"[/\\]+", path)]
    below = [part for part in parts if part.strip(". ")][-4:] or [_clean(server_id)]
    return servers_folder(library, server).joinpath(*below)


def _clean(part: str) -> str:
    return "".join(c for c in part if c.isprintable() and c not in "/\\\0")[:120]
