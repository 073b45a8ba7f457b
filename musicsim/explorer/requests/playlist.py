"""Options of a playlist."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from musicsim.audio import DESCRIPTORS
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.options import option

DEFAULT_MINUTES = 60
"""Length of a playlist if no other is chosen."""
PREFERENCES = ("any", "familiar", "unheard")
DIRECTIONS = ("rising", "falling")


@dataclass(frozen=True, kw_only=True)
class PlaylistRequest(Filters):
    """Filters for the songs of a playlist, and options for their order. All ids are song ids."""

    length: int | None = option(
        None,
        "Number of songs, instead of minutes.",
        label="Length",
        flags=("--length", "-n"),
        min=1,
        max_asked=500,
        max_of_visitors=100,
    )
    minutes: float | None = option(
        None, f"Length in minutes, accurate to within two minutes; {DEFAULT_MINUTES} by default.", label="Length",
        min=1, max=1440,
        max_of_visitors=300,
    )  # fmt: skip
    dialect: str | None = option(
        None, "Kind of playlist to follow; `musicsim dialects` lists them.", label="What kind of playlist?"
    )
    first: int | None = option(None, "First song; any by default.", label="First song")
    through: tuple[int, ...] = option(
        (),
        "Songs to pass through, in this order. The playlist ends with the last one. If you also choose a first song, "
        "the playlist is a path from the first song to the last.",
        label="Pass through",
    )
    like: tuple[int, ...] = option(
        (), "The playlist stays close to these songs, but does not have to contain them.", label="Stay around"
    )
    exclude: frozenset[int] = option(frozenset(), "Songs to leave out.", label="Leave out")
    spacing: int = option(
        5,
        "Minimum number of songs between two songs by the same artist; fewer if the library has too few artists.",
        label="Songs between two by the same artist",
        min=0,
    )
    surprise: float = option(
        0.3,
        "From 0 (smooth, follows narrow links) to 1 (surprising, follows broad links or jumps anywhere). "
        "At 0.5, songs follow one another as in the playlists that musicsim learned from.",
        label="Smooth to surprising",
        min=0,
        max=1,
    )
    along: str | None = option(
        None, f"Value that rises or falls from the first song to the last: {', '.join(DESCRIPTORS)}. Songs without a "
        "value are used sparingly.", label="Gradually change", choices=tuple(DESCRIPTORS),
    )  # fmt: skip
    direction: str = option("rising", "Whether the value rises or falls.", label="Direction", choices=DIRECTIONS)
    prefer: str = option(
        "any",
        "Songs to prefer (any, familiar or unheard), based on imported plays and this player's history.",
        label="Prefer songs that are",
        choices=PREFERENCES,
    )
    avoid_recent: bool = option(
        True, "Use fewer songs from playlists that were generated or saved in the last 24 hours.",
        label="Avoid recently used songs",
    )  # fmt: skip
    versions_apart: bool = option(
        True,
        "Use at most one version of each song, for example not both the album track and a live version.",
        label="Skip alternate versions",
        name="skip_versions",
    )
    not_because: frozenset[str] = option(
        frozenset(),
        "Reasons that no step may have, such as “tag:calm”; `--json` shows the reason of each step as `edge`.",
        label="Reasons left out",
    )
    seed: int | None = option(
        None, "The same seed gives the same playlist again; random by default.", label="Seed", min=0
    )
    keep: Mapping[int, int] = field(default_factory=dict)  # 0-based position -> song that stays there
    rested: frozenset[int] = frozenset()  # songs from playlists generated a moment ago, which get less weight
    only: frozenset[int] | None = None  # songs to choose from; None: all songs

    @property
    def stops(self) -> tuple[int, ...]:
        """The first song, if one is given, and then the songs to pass through, in order."""
        return self.through if self.first is None else (self.first, *self.through)
