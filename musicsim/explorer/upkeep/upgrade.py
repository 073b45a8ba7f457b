"""After an update of the program: what has to be analysed or compared again, why, and doing it in the background."""

from dataclasses import dataclass
from typing import Any

from musicsim.audio import FEATURE_CHANGES, FEATURE_VERSION
from musicsim.explorer.upkeep.add_music import Report, scan_and_refresh
from musicsim.explorer.upkeep.outdated import native_is_outdated
from musicsim.library import Library

__all__ = ["Upgrade", "bring_up_to_date", "pending_upgrade"]


_MODEL_CHANGE = (
    "by timbre and how it changes, whatever the loudness, where it was by counts of typical moments"
)


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Songs that an older version of the program has described.

    Attributes
    ----------
    n_songs : int
        To be analysed again; 0 where the stored audio features do.
    reasons : tuple of str
        What became better since, one a version.
    """

    n_songs: int
    reasons: tuple[str, ...]

    @property
    def words(self) -> str:
        """What will happen and why, for people."""
        if not self.n_songs:
            return (
                f"This version of musicsim compares songs better: {'; '.join(self.reasons)}. The model is updated in "
                "the background, without reading the files again; until then everything works as before."
            )
        songs = "1 song is" if self.n_songs == 1 else f"{self.n_songs:,} songs are"
        return (
            f"This version of musicsim analyses songs better: {'; '.join(self.reasons)}. {songs} analysed "
            "again in the background; until then everything works as before."
        )


def pending_upgrade(library: Library) -> Upgrade | None:
    """What an update leaves to be done, None if nothing; songs that are missing wait for their files."""
    old = library.files.outdated()
    if not old:
        return Upgrade(0, (_MODEL_CHANGE,)) if native_is_outdated(library) else None
    since = min(version for _, version in old)
    reasons = [FEATURE_CHANGES[version] for version in range(since + 1, FEATURE_VERSION + 1)]
    return Upgrade(len(old), tuple(reasons))


def bring_up_to_date(library: Library, *, report: Report) -> Any:
    """Analyse songs of older versions again, then fit the model on them; options as of `add_and_refresh`.

    The model in use stays until all songs are done: a library is never without one.
    """
    paths = [path for path, _ in library.files.outdated()]
    return scan_and_refresh(library, paths, report, absent_ok=True)
