"""Fitting the similarity model of a library and all that follows from it.

One rule decides what is done: a built-in model is fitted when there is none, when the library has doubled
since the last fit (and the frames are still there), when an older version made it, or when it is asked for. Otherwise
new songs are placed under the model as it is.
"""

import logging
from contextlib import suppress

from musicsim.audio import FEATURE_VERSION
from musicsim.errors import FeatureVersionError, ModelError
from musicsim.explorer.learning.task import Quiet
from musicsim.explorer.playlists.fit import fit_walk
from musicsim.explorer.playlists.song_labels import read_words
from musicsim.explorer.refresh.fitting import fit_codewords, fit_native
from musicsim.explorer.refresh.model_catalogue import damage, make_again, stale_models
from musicsim.explorer.refresh.outdated import native_is_outdated
from musicsim.explorer.refresh.placing import place_new, songs_with_frames, update_clusters_and_map
from musicsim.explorer.snapshot.same_sound import find_new_duplicates
from musicsim.hooks import load_hooks
from musicsim.library import Library
from musicsim.library.importing import match_waiting
from musicsim.library.stores.models import ModelRecord
from musicsim.progress import Canceled, Progress, no_progress

_log = logging.getLogger(__name__)


def needs_fit(library: Library, record: ModelRecord | None, n_songs: int) -> bool:
    """Whether a built-in model or its files are gone, of another feature version, or of half as many songs."""
    return record is None or n_songs >= 2 * record.n_songs_fitted or damage(library, record) is not None


def _warn_of_damage(library: Library, record: ModelRecord | None) -> None:
    if record is not None and (error := damage(library, record)) is not None:
        _log.warning("%s cannot be read and is refitted: %s", record.name, error)


def refresh(library: Library, *, force: bool = False, progress: Progress = no_progress) -> bool:
    """Bring the model, vectors, clusters, map and walk of a library up to its songs.

    `force` fits the built-in models again even if the rule above does not ask for it. False when `progress` stopped it,
    by raising :class:`Stopped`; the model in use stays then. At the end it calls the hook ``after_refresh``, which is
    ``function(library, progress)``.

    Raises StoreLockedError if another process is adding to this library; FeatureVersionError if a fit was asked for
    and the frames of some songs were not kept.
    """
    with library.exclusive("updating models and the map"):
        if not len(library.table().ids):
            return True
        try:
            _bring_up(library, force, progress)
            _make_stale_again(library, progress)
        except Canceled:
            return False
        finally:
            library.models.discard_unfinished()
        if not library.settings["keep_frames"]:
            _drop_frames(library)
        library.note_refreshed()
    with suppress(Canceled):  # the library itself is up to its songs
        for hook in load_hooks("after_refresh"):
            hook(library, progress)
    return True


def _drop_frames(library: Library) -> None:
    """Forget the frames and aspects of all songs that have a file."""
    kept = library.frame_files.kept() | library.frame_files.kept_aspects()
    if kept:
        here = library.files_of(library.table().ids.tolist()).values()
        for content_hash in kept.intersection(digest for digest, _ in here):
            library.frame_files.drop(content_hash)


def _bring_up(library: Library, force: bool, progress: Progress) -> None:
    match_waiting(library)
    n_songs, built_in = len(library.table().ids), (library.models.native(), library.models.codewords())
    # songs are read where the most that a fit could have of them asks for one: a million take a minute, and 2 GB
    if force or (
        library.frame_files.has_any()
        and (native_is_outdated(library) or any(needs_fit(library, record, n_songs) for record in built_in))
    ):
        _fit_built_in(library, force, progress)
    native = library.models.native()
    if native is None:
        raise FeatureVersionError(
            f"{library.folder}: no audio features are stored to fit a model on. Turn on “Store audio "
            "features” (Library > Settings; keep_frames on the command line) and add the folders again."
        )
    lost = set()
    # owners of features first: the others follow them
    for record in sorted(library.models.all(retired=True), key=lambda r: r.base_id is not None):
        try:
            place_new(library, record, progress)
        except ModelError as error:
            if record.id == native.id:
                raise
            _log.warning("Songs are not placed in the model %r: %s", record.name, error)
            lost.add(record.id)
    find_new_duplicates(library, progress)
    read_words(library, progress)
    for record in library.models.all():
        if record.id not in lost:
            update_clusters_and_map(library, record, progress)
            fit_walk(library, record.id, progress)


def _fit_built_in(library: Library, force: bool, progress: Progress) -> None:
    """Fit the built-in models that the frames which are kept ask for, and allow."""
    songs = library.songs()
    with_frames = songs_with_frames(library, songs)
    current = [song for song in with_frames if song.feature_version == FEATURE_VERSION]
    complete = len(with_frames) == len(songs)
    if force and not complete:
        raise FeatureVersionError(
            f"{library.folder}: the audio features of {len(songs) - len(with_frames)} songs were not "
            "stored. Turn on “Store audio features” (Library > Settings; keep_frames on the command "
            "line) and add their folders again."
        )
    # without all frames a new model would lose songs that the one in use can compare
    n_songs = len(songs) if complete else 0
    n_current = n_songs if len(current) == len(songs) else 0
    if current and (
        (force and n_current) or native_is_outdated(library) or needs_fit(library, library.models.native(), n_current)
    ):
        _warn_of_damage(library, library.models.native())
        fit_native(library, current, progress)
    if with_frames and (force or needs_fit(library, library.models.codewords(), n_songs)):
        _warn_of_damage(library, library.models.codewords())
        fit_codewords(library, with_frames, progress)


def _make_stale_again(library: Library, progress: Progress) -> None:
    """Refit models that were made of others, or of songs, that have changed since."""
    for record in stale_models(library):
        progress(f"refitting {record.name}")
        make_again(library, record, Quiet(progress))
