"""Access to a library for players in other programs: the token and the owner's rules, stored in the library folder."""

import secrets
from dataclasses import dataclass, field, fields
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from musicsim import logs
from musicsim.errors import LibraryError
from musicsim.explorer import Filters, PlaylistRequest, filter_rows, option, take_snapshot
from musicsim.library import Library, update_private

ACCESS_FILE = "players.json"
_MAX_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class PlayerRules(Filters):
    exclude: frozenset[int] = option(frozenset(), "Songs to leave out.", label="Leave out")
    per_artist: int = option(
        2, "Max. songs per artist in a list of similar songs; 0 = no limit.",
        label="Max. songs per artist (0 = no limit)", min=0,
    )  # fmt: skip

    jellyfin: str | None = option(
        None, "Path of your music folder in Jellyfin; responses use Jellyfin's ids if no music server is connected.",
        label="Music folder in Jellyfin",
    )  # fmt: skip

    def path(self, first: int, last: int, length: int, exclude: frozenset[int]) -> PlaylistRequest:
        """Return a request for a path of `length` songs with these filters, excluding the songs in `exclude`."""
        filters = {f.name: getattr(self, f.name) for f in fields(Filters)}
        return PlaylistRequest(
            **filters, first=first, through=(last,), length=length, exclude=exclude, avoid_recent=False
        )


@dataclass(frozen=True, kw_only=True)
class PlayerAccess:
    token: str = field(repr=False)  # sent by players; also the password for Subsonic players
    rules: PlayerRules = field(default_factory=PlayerRules)

    def __post_init__(self) -> None:
        logs.hide(self.token)


_json = TypeAdapter(PlayerAccess)


def player_access(library: Library) -> PlayerAccess | None:
    """Return the token and rules for players; None if access is off. Raises LibraryError if the file is unreadable."""
    path = _path(library)
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path) from error
    return _parse(path, content)


def _parse(path: Path, content: bytes) -> PlayerAccess:
    try:
        return _json.validate_json(content)
    except ValidationError as error:
        raise _unreadable(path) from error


def _unreadable(path: Path) -> LibraryError:
    return LibraryError(f"{path} cannot be read. Remove the file, and run `musicsim players` again.")


def answer_players(library: Library, rules: PlayerRules, *, new_token: bool = False) -> PlayerAccess:
    """Turn on access for players with these rules, using the existing token or a new one."""
    if rules.words:
        filter_rows(take_snapshot(library), rules)
    path = _path(library)

    def update(content: bytes | None) -> str:
        known = None if new_token or content is None else _parse(path, content)
        access = PlayerAccess(token=known.token if known else secrets.token_urlsafe(18), rules=rules)
        return _json.dump_json(access).decode()

    return _json.validate_json(update_private(path, update))


def refuse_players(library: Library) -> None:
    """Turn off access for players; this deletes the token and the rules."""
    _path(library).unlink(missing_ok=True)


def _path(library: Library) -> Path:
    return library.folder / ACCESS_FILE
