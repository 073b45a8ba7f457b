"""What players of other programs are offered, whatever they ask for."""

from dataclasses import dataclass, fields

from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.options import option
from musicsim.explorer.requests.playlist import PlaylistRequest


@dataclass(frozen=True, kw_only=True)
class PlayerRules(Filters):
    """Which songs players are offered: said once, kept in every answer."""

    exclude: frozenset[int] = option(frozenset(), "Songs to leave out.", label="Leave out")
    per_artist: int = option(
        2, "Max. songs per artist in a list of similar songs; 0 = no limit.",
        label="Max. songs per artist (0 = no limit)", min=0,
    )  # fmt: skip

    jellyfin: str | None = option(
        None, "Answer by Jellyfin's ids where no music server is connected; its name for the folder of music.",
        label="Folder of music in Jellyfin",
    )  # fmt: skip

    def path(self, first: int, last: int, length: int, exclude: frozenset[int]) -> PlaylistRequest:
        """A path of `length` songs from one to another that keeps to the rules, but for what is left out."""
        filters = {f.name: getattr(self, f.name) for f in fields(Filters)}
        return PlaylistRequest(
            **filters, first=first, through=(last,), length=length, exclude=exclude, avoid_recent=False
        )
