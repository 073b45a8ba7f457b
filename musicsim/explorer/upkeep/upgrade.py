"""After an update of the program: what has to be analysed or compared again, why, and doing it in the background."""

from dataclasses import dataclass

from musicsim.audio import FEATURE_CHANGES, FEATURE_VERSION, Descriptors, describe
from musicsim.errors import FeatureVersionError
from musicsim.explorer.upkeep.add_music import Report, scan_and_refresh
from musicsim.explorer.upkeep.refresh import native_is_outdated
from musicsim.library import Library
from musicsim.public import owner_only, visitor_may

_AT_ONCE = 200  # songs that are described in one transaction


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


@visitor_may
def pending_upgrade(library: Library) -> Upgrade | None:
    """What an update leaves to be done, None if nothing; songs that are missing wait for their files."""
    old, n_undescribed = library.files.outdated(), library.descriptors.n_outdated()
    if not old:
        changes = (_MODEL_CHANGE,) if native_is_outdated(library) else ()
        return Upgrade(0, changes, n_undescribed) if changes or n_undescribed else None
    since = min(version for _, version in old)
    reasons = [FEATURE_CHANGES[version] for version in range(since + 1, FEATURE_VERSION + 1)]
    return Upgrade(len(old), tuple(reasons), n_undescribed)


@owner_only
def bring_up_to_date(library: Library, *, report: Report) -> bool:
    """Describe songs of older versions, analyse them again where that is needed, then fit the model on them.

    The model in use stays until all songs are done: a library is never without one. False if it was stopped.
    """
    if not _describe(library, report):
        return False
    paths = [path for path, _ in library.files.outdated()]
    if not paths and not native_is_outdated(library):
        return True
    return not scan_and_refresh(library, paths, report, absent_ok=True).cancelled


def _describe(library: Library, report: Report) -> bool:
    """Say what can be heard of the songs that lack it, from what is kept of them."""
    with library.exclusive():
        was_refreshed = library.is_refreshed
        todo = library.descriptors.outdated()
        with_aspects = library.frame_files.kept_aspects() if todo else set()
        songs = list(todo.items())
        for start in range(0, len(songs), _AT_ONCE):
            if report(message="tempo, key and loudness", done=start, total=len(songs), seconds_left=None):
                return False
            library.descriptors.save(
                {
                    song_id: _described(library, name, name in with_aspects)
                    for song_id, name in songs[start : start + _AT_ONCE]
                }
            )
        report(message="tempo, key and loudness", done=len(songs), total=len(songs), seconds_left=None)
        if was_refreshed:  # models do not ask for it
            library.note_refreshed()
    return True


def _described(library: Library, content_hash: str, has_aspects: bool) -> Descriptors:
    """What can be heard of a song; nothing where nothing of it is kept: it is when the song is analysed again."""
    frames = library.frame_files
    try:
        mfcc = frames.mfcc(content_hash)
    except FeatureVersionError:
        return Descriptors()
    if not has_aspects:
        return describe(mfcc)
    aspects = frames.aspects([content_hash])
    return describe(mfcc, aspects.harmony[0], aspects.rhythm[0])
