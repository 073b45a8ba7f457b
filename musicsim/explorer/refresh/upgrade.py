"""After an update of the program: songs are analysed or compared again, in the background."""

from musicsim.audio import Descriptors, describe
from musicsim.errors import FeatureVersionError
from musicsim.explorer.refresh.add_music import scan_and_refresh
from musicsim.explorer.refresh.outdated import native_is_outdated
from musicsim.library import Library
from musicsim.progress import Canceled, Progress

_AT_ONCE = 200  # songs that are described in one transaction


def bring_up_to_date(library: Library, *, progress: Progress) -> bool:
    """Describe songs of older versions, analyse them again where that is needed, then fit the model on them.

    The model in use stays until all songs are done: a library is never without one. False if it was stopped.
    """
    try:
        _describe(library, progress)
    except Canceled:
        return False
    paths = [path for path, _ in library.files.outdated()]
    if not paths and not native_is_outdated(library):
        return True
    return not scan_and_refresh(library, paths, progress, absent_ok=True).cancelled


def _describe(library: Library, progress: Progress) -> None:
    """Say what can be heard of the songs that lack it, from what is kept of them."""
    with library.exclusive("updating songs"):
        was_refreshed = library.is_refreshed
        todo = library.descriptors.outdated()
        with_aspects = library.frame_files.kept_aspects() if todo else set()
        songs = list(todo.items())
        for start in range(0, len(songs), _AT_ONCE):
            progress("tempo, key and loudness", start, len(songs), seconds_left=None)
            library.descriptors.save(
                {
                    song_id: _described(library, name, name in with_aspects)
                    for song_id, name in songs[start : start + _AT_ONCE]
                }
            )
        progress("tempo, key and loudness", len(songs), len(songs), seconds_left=None)
        if was_refreshed:  # models do not ask for it
            library.note_refreshed()


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
