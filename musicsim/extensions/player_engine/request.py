"""The owner's rules for songs that other programs' players get."""

from dataclasses import dataclass, fields

from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.options import option
from musicsim.explorer.requests.playlist import PlaylistRequest


@dataclass(frozen=True, kw_only=True)
class PlayerRules(Filters):
    """Rules that apply to every response to players."""

    exclude: frozenset[int] = option(frozenset(), "Songs to leave out.", label="Leave out")
    per_artist: int = option(
        2, "Max. songs per artist in a list of similar songs; 0 = no limit.",
        label="Max. songs per artist (0 = no limit)", min=0,
    )  # fmt: skip

    jellyfin: str | None = option(
        None, "Jellyfin's path of your music folder; players then use Jellyfin's ids if no music server is connected.",
        label="Folder of music in Jellyfin",
    )  # fmt: skip

    def path(self, first: int, last: int, length: int, exclude: frozenset[int]) -> PlaylistRequest:
        """Return a request for a path of `length` songs under the rules, except the rules for excluded songs."""
        filters = {f.name: getattr(self, f.name) for f in fields(Filters)}
        return PlaylistRequest(
            **filters, first=first, through=(last,), length=length, exclude=exclude, avoid_recent=False
        )
