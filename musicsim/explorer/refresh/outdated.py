"""Pending work in a library after an update of musicsim. `add_music.py` and `refresh.py` do this work.

Every page and `musicsim info` import this module, so it imports no module that fits models.
"""

from dataclasses import dataclass

from musicsim.audio import DESCRIPTORS, FEATURE_CHANGES, FEATURE_VERSION
from musicsim.explorer.models.schema import Versions, read_json_file
from musicsim.library import Library
from musicsim.wording import count, join_words

_MODEL_CHANGE = "by timbre, changes in timbre, and rhythm, regardless of loudness"


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Pending work on songs and models from an older version of musicsim."""

    n_songs: int  # number of songs to analyze again; 0 if stored audio features suffice
    reasons: tuple[str, ...]  # improvements, one per version
    n_undescribed: int = 0  # number of songs whose descriptors will be computed from stored features

    @property
    def words(self) -> str:
        """Message about the pending work and its reason."""
        improved = f"songs better: {'; '.join(self.reasons)}."
        then, how = "Until then, everything works as before.", "in the background, without reading the files again."
        if self.n_songs:
            again = f"{count(self.n_songs, 'song')} will be analyzed again in the background."
            return f"This version of musicsim analyzes {improved} {again} {then}"
        if self.reasons:
            return f"This version of musicsim compares {improved} The model will be updated {how} {then}"
        songs = count(self.n_undescribed, "song")
        return f"The {join_words(['key', *DESCRIPTORS])} of {songs} will be computed {how}"


def pending_upgrade(library: Library) -> Upgrade | None:
    """Return the pending work on songs that are not missing; None if nothing is pending."""
    old, n_undescribed = library.files.find_outdated(), library.descriptors.n_outdated()
    if not old:
        changes = (_MODEL_CHANGE,) if _native_is_older(library) else ()
        return Upgrade(0, changes, n_undescribed) if changes or n_undescribed else None
    since = min(version for _, version in old)
    reasons = [FEATURE_CHANGES[version] for version in range(since + 1, FEATURE_VERSION + 1)]
    return Upgrade(len(old), tuple(reasons), n_undescribed)


def native_is_outdated(library: Library) -> bool:
    """Return True if this version analyzed all songs, but an older version fitted the model Sound."""
    return _native_is_older(library) and not library.files.find_outdated()


def _native_is_older(library: Library) -> bool:
    """Return True if the model Sound has an older feature version and all audio features are stored."""
    native = library.models.native()
    if native is None:
        return False
    try:
        versions = read_json_file(Versions, library.models.path(native.id) / "model.json")
    except (OSError, ValueError):  # if the model is missing or damaged, the next refresh fits it anyway
        return False
    return (
        versions.feature_version < FEATURE_VERSION
        and library.frame_files.has_any()
        and set(library.content_hashes()) <= library.frame_files.list_stored()
    )
