"""Models of a library next to the native one: make them, keep them up to date, import those of others."""

import logging
from pathlib import Path

from musicsim._arrays import Float32Array
from musicsim.errors import FeatureVersionError, ModelError, MusicsimError
from musicsim.explorer.learning.task import TrainingProgress
from musicsim.explorer.models.files import read_model_file
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.refresh.fitting import (
    REPRESENTATION_KIND,
    RepresentationSettings,
    fit_representation,
    free_name,
    new_record,
    songs_to_describe,
)
from musicsim.explorer.refresh.learned_model import COMBINED_KIND, LEARNED_KIND, learn_unlocked, replaced_sources
from musicsim.explorer.refresh.placing import place_new, songs_with_frames
from musicsim.explorer.refresh.publish import publish
from musicsim.explorer.requests.training import LearningSettings
from musicsim.explorer.snapshot import neighbours
from musicsim.library import Library
from musicsim.library.disk.scratch import scratch_of
from musicsim.library.stores.models import ModelRecord
from musicsim.progress import Progress

_log = logging.getLogger(__name__)

TAKEN_KIND = "taken"
_MAX_VECTOR = 1e6  # the mean square is of the order of 1; squares of these do not overflow in float32


# --- up to date -----------------------------------------------------------------------------------


def stale_reason(library: Library, record: ModelRecord) -> str | None:
    """Why a model should be made again, in words; None when it is up to date."""
    if record.kind not in (LEARNED_KIND, REPRESENTATION_KIND):
        return None
    base = None if record.base_id is None else library.models.get(record.base_id)
    if base is not None and base.kind == COMBINED_KIND:
        replaced = replaced_sources(library, base)
        if replaced:
            return f"{', '.join(replaced)} was replaced since it was fitted"
    elif base is not None and base.is_retired:
        return "the model it was made of was replaced"
    n_songs = len(library.models.song_rows(record.features_of).rows)  # also where its files are gone
    if n_songs >= 2 * record.n_songs_fitted:
        return f"it was fitted on {record.n_songs_fitted:,} songs, and there are {n_songs:,} now"
    return None


def damage(library: Library, record: ModelRecord) -> MusicsimError | None:
    """Why a model cannot be used: its files are gone or damaged, or of another version; None when they are whole."""
    try:
        SimilarityModel.load(library.models.path(record.id))
        library.models.features(record.id)
        neighbours.compared(library.models.path(record.id), library.models.vectors(record.id).X)
    except (ModelError, FeatureVersionError) as error:
        return error
    return None


def stale_models(library: Library) -> list[ModelRecord]:
    """Models that should be made again, those that others are learned on first."""
    stale = [record for record in library.models.all() if stale_reason(library, record) is not None]
    return sorted(stale, key=lambda record: record.kind == LEARNED_KIND)


def make_again(library: Library, record: ModelRecord, watcher: TrainingProgress) -> bool:
    """Make a stale model again with its own settings; the caller is the one process that changes the library.

    False when it cannot be made any more; the model stays as it was.
    """
    try:
        if record.kind == LEARNED_KIND:
            learn_unlocked(library, LearningSettings(**record.settings), record.name, watcher)
        else:
            described_by = RepresentationSettings(**record.settings)
            songs = songs_to_describe(library, described_by.representation)
            fit_representation(library, songs, described_by, record.name, watcher)
    except (MusicsimError, ValueError) as error:
        _log.warning("%s stays as it is: %s", record.name, error)
        return False
    return True


def add_representation(library: Library, settings: RepresentationSettings, name: str, progress: Progress) -> str:
    """Make a model of another representation for all songs; returns its id.

    Raises ModelError if the library lacks what the representation is made of; FeatureVersionError if the
    frames of some songs were not kept; StoreLockedError if another process is adding to this library.
    """
    with library.exclusive("making a model"):
        try:
            songs = library.songs()
            described = songs_to_describe(library, settings.representation)
            if len(described) < len(songs) or not songs:
                raise FeatureVersionError(
                    f"{library.folder}: the audio features of {len(songs) - len(described)} of "
                    f"{len(songs)} songs were not stored. Turn on “Store audio features” (Library > "
                    "Settings; keep_frames on the command line) and add their folders again."
                )
            return fit_representation(library, described, settings, name, progress)
        finally:
            library.models.discard_unfinished()


# --- from elsewhere --------------------------------------------------------------------------------


def take_model(library: Library, source: Path, progress: Progress) -> str:
    """Take in a model of another library (:mod:`musicsim.explorer.models.files`) and describe all songs by it.

    Returns its id. Raises ModelError if the file holds no model; FeatureVersionError if it comes from another version
    of the program, or no frames are kept to describe songs by; StoreLockedError if another process is adding to this
    library.
    """
    with library.exclusive("importing a model"), scratch_of(library.folder).folder() as scratch:
        try:
            sent = read_model_file(source, scratch)
            songs = songs_with_frames(library, library.songs())
            if not songs:
                raise FeatureVersionError(
                    f"{library.folder}: no audio features are stored to fit a model on. Turn on “Store "
                    "audio features” (Library > Settings; keep_frames on the command line) and add the "
                    "folders again."
                )
            name, keys = free_name(library, sent.name), sent.model.encoder_.own_keys()
            record = new_record(TAKEN_KIND, name, sent.model, len(songs), taken_from=source.name, keys=keys)

            def fill() -> None:
                place_new(library, record, progress)
                _check_vectors(library.vectors(record.id).X, source.name, sent.model)

            return publish(library, sent.model, record, fill=fill, report=sent.report, progress=progress)
        finally:
            library.models.discard_unfinished()


def _check_vectors(X: Float32Array, file: str, model: SimilarityModel) -> None:
    """Refuse a model that no song of this library has a place under, or that takes songs to where none can be."""
    if not len(X):
        raise ModelError(f"{file}: no song of this library has what it compares, {model.kind.description}.")
    if not (X.min() >= -_MAX_VECTOR and X.max() <= _MAX_VECTOR):  # NaN is neither
        raise ModelError(f"{file}: its numbers do not fit each other. Export the model again.")
