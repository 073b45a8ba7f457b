"""What an update of the program leaves to be done in a library, and why; `upgrade.py` and `refresh.py` do it.

Every page and `musicsim info` ask, so that nothing is imported that fits models.
"""

from dataclasses import dataclass

from musicsim.audio import FEATURE_CHANGES, FEATURE_VERSION
from musicsim.explorer.models.schema import Versions, read_json_file
from musicsim.library import Library

_MODEL_CHANGE = "by timbre, how it changes, and rhythm, whatever the loudness"


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Songs that an older version of the program has described."""

    n_songs: int  # to be analysed again; 0 where the stored audio features do
    reasons: tuple[str, ...]  # what became better since, one a version
    n_undescribed: int = 0  # those whose tempo, key and so on are worked out from what is kept of them

    @property
    def words(self) -> str:
        """What will happen and why, for people."""
        if not self.n_songs:
            return (
                f"This version of musicsim compares songs better: {'; '.join(self.reasons)}. The model is updated in "
                "the background, without reading the files again; until then everything works as before."
                if self.reasons
                else f"Tempo, key, loudness, brightness and energy of {_songs(self.n_undescribed)} worked out in the "
                "background, without reading the files again."
            )
        return (
            f"This version of musicsim analyses songs better: {'; '.join(self.reasons)}. {_songs(self.n_songs)} "
            "analysed again in the background; until then everything works as before."
        )


def _songs(n: int) -> str:
    return "1 song is" if n == 1 else f"{n:,} songs are"


def pending_upgrade(library: Library) -> Upgrade | None:
    """What an update leaves to be done, None if nothing; songs that are missing wait for their files."""
    old, n_undescribed = library.files.outdated(), library.descriptors.n_outdated()
    if not old:
        changes = (_MODEL_CHANGE,) if _native_is_older(library) else ()
        return Upgrade(0, changes, n_undescribed) if changes or n_undescribed else None
    since = min(version for _, version in old)
    reasons = [FEATURE_CHANGES[version] for version in range(since + 1, FEATURE_VERSION + 1)]
    return Upgrade(len(old), tuple(reasons), n_undescribed)


def native_is_outdated(library: Library) -> bool:
    """Whether the native model is of an older feature version, and all songs are ready for a new one.

    They are if they are analysed by this version, and their audio features are stored.
    """
    return _native_is_older(library) and not library.files.outdated()


def _native_is_older(library: Library) -> bool:
    """Whether the native model is of an older feature version, and the audio features of all songs are stored."""
    native = library.models.native()
    if native is None:
        return False
    try:
        about = read_json_file(Versions, library.models.path(native.id) / "model.json")
    except (OSError, ValueError):  # gone or damaged: the next refresh fits it whatever it was
        return False
    return (
        about.feature_version < FEATURE_VERSION
        and library.frame_files.has_any()
        and set(library.content_hashes()) <= library.frame_files.kept()
    )
