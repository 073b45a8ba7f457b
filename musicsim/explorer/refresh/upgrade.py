"""Analyze songs and fit models again after an update of the program."""

from musicsim.audio import Descriptors, describe
from musicsim.errors import FeatureVersionError
from musicsim.explorer.refresh.add_music import scan_and_refresh
from musicsim.explorer.refresh.outdated import native_is_outdated
from musicsim.library import Library
from musicsim.progress import Canceled, Progress

_BATCH = 200  # songs per transaction


def bring_up_to_date(library: Library, *, progress: Progress) -> bool:
    """Update descriptors, analyze outdated songs again, then refit; returns False, with the old model, if canceled."""
    try:
        _update_descriptors(library, progress)
    except Canceled:
        return False
    paths = [path for path, _ in library.files.outdated()]
    if not paths and not native_is_outdated(library):
        return True
    return not scan_and_refresh(library, paths, progress, absent_ok=True).cancelled


def _update_descriptors(library: Library, progress: Progress) -> None:
    with library.exclusive("updating songs"):
        was_refreshed = library.is_refreshed
        songs = list(library.descriptors.outdated().items())
        with_aspects = library.frame_files.kept_aspects() if songs else set()
        for start in range(0, len(songs), _BATCH):
            progress("tempo, key and loudness", start, len(songs), seconds_left=None)
            batch = songs[start : start + _BATCH]
            library.descriptors.save({i: _descriptors(library, digest, digest in with_aspects) for i, digest in batch})
        progress("tempo, key and loudness", len(songs), len(songs), seconds_left=None)
        if was_refreshed:  # models do not depend on descriptors
            library.note_refreshed()


def _descriptors(library: Library, content_hash: str, has_aspects: bool) -> Descriptors:
    frames = library.frame_files
    try:
        mfcc = frames.mfcc(content_hash)
    except FeatureVersionError:
        return Descriptors()
    if not has_aspects:
        return describe(mfcc)
    aspects = frames.aspects([content_hash])
    return describe(mfcc, aspects.harmony[0], aspects.rhythm[0])
