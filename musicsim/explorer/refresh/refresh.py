"""Fit the models of a library and everything that depends on them.

A built-in model is fitted on request, or if it is missing, damaged or from an older version. It is also refitted once
the library has doubled since the last fit, if frames are stored. Otherwise new songs are added to the unchanged model.
"""

import logging
from contextlib import suppress

from musicsim.audio import FEATURE_VERSION
from musicsim.errors import ModelError
from musicsim.explorer.learning.task import Quiet
from musicsim.explorer.playlists.fit import fit_walk
from musicsim.explorer.playlists.song_labels import read_words
from musicsim.explorer.refresh.fitting import fit_codewords, fit_native
from musicsim.explorer.refresh.model_catalogue import damage, refit_model, stale_models
from musicsim.explorer.refresh.outdated import native_is_outdated
from musicsim.explorer.refresh.placing import missing_features, place_new, songs_with_frames, update_clusters_and_map
from musicsim.explorer.refresh.stages import count_steps
from musicsim.explorer.snapshot.same_sound import find_new_duplicates
from musicsim.hooks import AfterRefresh
from musicsim.library import Library, ModelRecord
from musicsim.library.importing import match_waiting
from musicsim.progress import Canceled, Progress, no_progress
from musicsim.registry import load_hooks
from musicsim.wording import count

_log = logging.getLogger(__name__)


def needs_fit(library: Library, record: ModelRecord | None, n_songs: int) -> bool:
    """Return whether a built-in model is missing, damaged, outdated, or fitted on at most half of the songs."""
    return record is None or n_songs >= 2 * record.n_songs_fitted or damage(library, record) is not None


def _warn_if_damaged(library: Library, record: ModelRecord | None) -> None:
    if record is not None and (error := damage(library, record)) is not None:
        _log.warning("%s cannot be read and will be refitted: %s", record.name, error)


def refresh(library: Library, *, force: bool = False, progress: Progress = no_progress) -> bool:
    """Update models, vectors, clusters, maps and walks for the current songs of a library.

    `force` always refits the built-in models. Returns False if `progress` raised :class:`Canceled`; the model in use
    then does not change.

    Raises StoreLockedError if another process is adding to this library; FeatureVersionError if a fit was requested
    and the frames of some songs are not stored.
    """
    progress = count_steps(progress)
    try:
        with library.exclusive("updating models and the map"), library.note_refresh():
            if not len(library.table().ids):
                return True
            try:
                _update_models(library, force, progress)
                for record in stale_models(library):
                    progress(f"refitting {record.name}")
                    refit_model(library, record, Quiet(progress))
            finally:
                library.models.discard_unfinished()
            if not library.settings["keep_frames"]:
                _drop_frames(library)
    except Canceled:
        return False
    with suppress(Canceled):  # the library itself is up to date
        for hook in load_hooks(AfterRefresh):
            hook(library, progress)
    return True


def _drop_frames(library: Library) -> None:
    stored = library.frame_files.list_stored() | library.frame_files.list_stored_aspects()
    if stored:
        files = library.files_of(library.table().ids.tolist()).values()
        for content_hash in stored.intersection(digest for digest, _ in files):
            library.frame_files.drop(content_hash)


def _update_models(library: Library, force: bool, progress: Progress) -> None:
    match_waiting(library)
    n_songs, built_in = len(library.table().ids), (library.models.native(), library.models.codewords())
    # songs are not read for this check, because reading a million takes a minute and 2 GB
    if force or (
        library.frame_files.has_any()
        and (native_is_outdated(library) or any(needs_fit(library, record, n_songs) for record in built_in))
    ):
        _fit_built_in(library, force, progress)
    native = library.models.native()
    if native is None:
        raise missing_features(library, "there are no stored audio features to fit a model to")
    failed = set()
    # models with their own features come first, because other models share these features
    for record in sorted(library.models.all(retired=True), key=lambda r: r.base_id is not None):
        try:
            place_new(library, record, progress)
        except ModelError as error:
            if record.id == native.id:
                raise
            _log.warning("Songs were not added to the model %r: %s", record.name, error)
            failed.add(record.id)
    find_new_duplicates(library, progress)
    read_words(library, progress)
    for record in library.models.all():
        if record.id not in failed:
            update_clusters_and_map(library, record, progress)
            fit_walk(library, record.id, progress)


def _fit_built_in(library: Library, force: bool, progress: Progress) -> None:
    """Fit the built-in models that need it, if frames are stored."""
    songs = library.songs()
    with_frames = songs_with_frames(library, songs)
    current = [song for song in with_frames if song.feature_version == FEATURE_VERSION]
    is_complete = len(with_frames) == len(songs)
    if force and not is_complete:
        n_missing = len(songs) - len(with_frames)
        raise missing_features(library, f"the audio features of {count(n_missing, 'song')} were not stored")
    # without all frames, a new model would lose songs that the old one has
    n_songs = len(songs) if is_complete else 0
    n_current = n_songs if len(current) == len(songs) else 0
    if current and (
        (force and n_current) or native_is_outdated(library) or needs_fit(library, library.models.native(), n_current)
    ):
        _warn_if_damaged(library, library.models.native())
        fit_native(library, current, progress)
    if with_frames and (force or needs_fit(library, library.models.codewords(), n_songs)):
        _warn_if_damaged(library, library.models.codewords())
        fit_codewords(library, with_frames, progress)
