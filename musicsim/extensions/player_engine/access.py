"""Access of other programs' players to a library: their token and the owner's rules, in a file of the library."""

import secrets
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from musicsim import logs
from musicsim.errors import LibraryError
from musicsim.explorer.snapshot.filtering import passing
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.player_engine.request import PlayerRules
from musicsim.library import Library
from musicsim.library.disk.arrays import private_path

ACCESS_FILE = "players.json"
_MAX_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class PlayerAccess:
    token: str = field(repr=False)  # also the password of Subsonic players
    rules: PlayerRules = field(default_factory=PlayerRules)

    def __post_init__(self) -> None:
        logs.hide(self.token)


_json = TypeAdapter(PlayerAccess)


def player_access(library: Library) -> PlayerAccess | None:
    """Return the access for players; None if it is off. Raises LibraryError if the file cannot be read."""
    path = _path(library)
    try:
        with path.open("rb") as file:
            return _json.validate_json(file.read(_MAX_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise LibraryError(f"{path} cannot be read: remove it, and run `musicsim players` again.") from error


def answer_players(library: Library, rules: PlayerRules, *, new_token: bool = False) -> PlayerAccess:
    """Give players access under some rules, with the existing token or a new one.

    Raises NotFoundError if the library lacks all of the rules' words.
    """
    if rules.words:
        passing(take_snapshot(library), rules)
    known = None if new_token else player_access(library)
    access = PlayerAccess(token=known.token if known else secrets.token_urlsafe(18), rules=rules)
    with private_path(_path(library)) as temporary:
        temporary.write_bytes(_json.dump_json(access))
    return access


def refuse_players(library: Library) -> None:
    """Turn off the access for players; deletes the token and the rules."""
    _path(library).unlink(missing_ok=True)


def _path(library: Library) -> Path:
    return library.folder / ACCESS_FILE
