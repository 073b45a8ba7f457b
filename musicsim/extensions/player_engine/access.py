"""Whether players of other programs are answered, by which token, and what they are offered: a file of the library."""

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
    """How players are answered."""

    token: str = field(repr=False)  # what they show; also the password of Subsonic's players
    rules: PlayerRules = field(default_factory=PlayerRules)

    def __post_init__(self) -> None:
        logs.hide(self.token)


_json = TypeAdapter(PlayerAccess)


def player_access(library: Library) -> PlayerAccess | None:
    """How players are answered from a library; None where they are not.

    Raises LibraryError if its file cannot be read.
    """
    path = _path(library)
    try:
        with path.open("rb") as file:
            return _json.validate_json(file.read(_MAX_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise LibraryError(f"{path} cannot be read: remove it, and run `musicsim players` again.") from error


def answer_players(library: Library, rules: PlayerRules, *, new_token: bool = False) -> PlayerAccess:
    """Answer players under some rules, with the token they have, or with a new one.

    Raises LibraryError as above; NotFoundError if words of the rules mean nothing to the library.
    """
    if rules.words:
        passing(take_snapshot(library), rules)
    known = None if new_token else player_access(library)
    access = PlayerAccess(token=known.token if known else secrets.token_urlsafe(18), rules=rules)
    with private_path(_path(library)) as temporary:
        temporary.write_bytes(_json.dump_json(access))
    return access


def refuse_players(library: Library) -> None:
    """Answer no player any more; the token and the rules are forgotten."""
    _path(library).unlink(missing_ok=True)


def _path(library: Library) -> Path:
    return library.folder / ACCESS_FILE
