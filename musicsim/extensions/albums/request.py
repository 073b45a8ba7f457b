"""Options of lists of albums, similar albums, and playlists of albums."""

from dataclasses import dataclass

from musicsim.explorer import option, settle

SORT_KEYS = ("name", "artist", "year", "songs", "minutes")
MAX_ALBUMS = 100


@dataclass(frozen=True, kw_only=True)
class AlbumListRequest:
    """Words that albums must contain, and their order."""

    sort: str = option("name", "Sort by name, artist, year, songs or minutes.", choices=SORT_KEYS)
    descending: bool = option(False, "Sort in descending order.")
    search: str = option("", "Words in the name of an album or its artist.", flags=("--search", "-s"))

    def __post_init__(self) -> None:
        settle(self)


@dataclass(frozen=True, kw_only=True)
class SimilarAlbumsRequest:
    """Number of similar albums."""

    k: int = option(10, "Number of results.", flags=("-k",), min=1, max=MAX_ALBUMS)
    per_artist: int = option(2, "Max. albums per artist; 0 = no limit.", min=0)

    def __post_init__(self) -> None:
        settle(self)


@dataclass(frozen=True, kw_only=True)
class AlbumPlaylistRequest:
    """Length of a playlist whose steps are albums."""

    length: int = option(5, "Number of albums.", flags=("--albums",), min=1, max=MAX_ALBUMS)
    per_artist: int = option(1, "Max. albums per artist; 0 = no limit.", min=0)

    def __post_init__(self) -> None:
        settle(self)
