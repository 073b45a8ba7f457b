"""Add models to a library next to the built-in ones, refit them, and import models from other libraries."""

import logging
from pathlib import Path

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
    publish,
    songs_to_describe,
)
from musicsim.explorer.refresh.joined_model import COMBINED_KIND, JOINED_KIND, find_replaced_sources, join_unlocked
from musicsim.explorer.refresh.learned_model import LEARNED_KIND, learn_unlocked
from musicsim.explorer.refresh.placing import missing_features, place_new, songs_with_frames
from musicsim.explorer.requests.training import LearningSettings
from musicsim.explorer.snapshot import neighbors
from musicsim.library import Library, ModelRecord, scratch_of
from musicsim.progress import Progress

_log = logging.getLogger(__name__)

TAKEN_KIND = "taken"
_REFITTABLE = (REPRESENTATION_KIND, JOINED_KIND, LEARNED_KIND)  # kinds of models that may be stale, in order of refits
_MAX_VECTOR = 1e6  # mean squares are about 1; squares of numbers up to this limit do not overflow in float32


def stale_reason(library: Library, record: ModelRecord) -> str | None:
    """Return the reason why a model should be refitted; None if it is up to date."""
    if record.kind not in _REFITTABLE:
        return None
    base = record if record.base_id is None else library.models.get(record.base_id)
    if base.kind in (COMBINED_KIND, JOINED_KIND):
        replaced = find_replaced_sources(library, base)
        if replaced:
            return f"these models have been replaced since it was fitted: {', '.join(replaced)}"
    elif base.is_retired:
        return "its base model has been replaced"
    n_songs = len(library.models.song_rows(record.features_of).rows)  # this number is known even if the files are lost
    if n_songs >= 2 * record.n_songs_fitted:
        return f"it was fitted on {record.n_songs_fitted:,} songs, but there are {n_songs:,} now"
    return None


def damage(library: Library, record: ModelRecord) -> MusicsimError | None:
    """Return the error if a model's files are missing, damaged or from a different version; None if it is usable."""
    try:
        SimilarityModel.load(library.models.path(record.id))
        library.models.features(record.id)
        neighbors.build_exact_index(library.models.path(record.id), library.models.vectors(record.id).X)
    except (ModelError, FeatureVersionError) as error:
        return error
    return None


def stale_models(library: Library) -> list[ModelRecord]:
    """Return the models that should be refitted; those that build on others come later."""
    stale = [record for record in library.models.all() if stale_reason(library, record) is not None]
    return sorted(stale, key=lambda record: _REFITTABLE.index(record.kind))


def refit_model(library: Library, record: ModelRecord, watcher: TrainingProgress) -> bool:
    """Refit a stale model with its own settings, under the library's lock; returns False if it fails."""
    try:
        if record.kind == LEARNED_KIND:
            learn_unlocked(library, LearningSettings(**record.settings), record.name, watcher)
        elif record.kind == JOINED_KIND:
            join_unlocked(library, record.settings["sources"], record.name, watcher)
        else:
            settings = RepresentationSettings(**record.settings)
            songs = songs_to_describe(library, settings.representation)
            fit_representation(library, songs, settings, record.name, watcher)
    except (MusicsimError, ValueError) as error:
        _log.warning("%s was not refitted: %s", record.name, error)
        return False
    return True


def add_representation(library: Library, settings: RepresentationSettings, name: str, progress: Progress) -> str:
    """Fit a new model of a chosen representation; return its id. Raises ModelError or FeatureVersionError."""
    with library.exclusive("making a model"):
        try:
            n_songs = len(library.songs())
            songs = songs_to_describe(library, settings.representation)
            if len(songs) < n_songs or not songs:
                problem = f"the audio features of {n_songs - len(songs)} of {n_songs} songs were not stored"
                raise missing_features(library, problem)
            return fit_representation(library, songs, settings, name, progress)
        finally:
            library.models.discard_unfinished()


def import_model_file(library: Library, source: Path, progress: Progress) -> str:
    """Import a model file and apply it to all songs; return its id. Raises ModelError or FeatureVersionError."""
    with library.exclusive("importing a model"), scratch_of(library.folder).folder() as scratch:
        try:
            original_name, model, report = read_model_file(source, scratch)
            songs = songs_with_frames(library, library.songs())
            if not songs:
                raise missing_features(library, "there are no stored audio features to fit a model to")
            name, keys = free_name(library, original_name), model.encoder_.own_keys()
            record = new_record(TAKEN_KIND, name, model, len(songs), taken_from=source.name, keys=keys)

            def fill() -> None:
                place_new(library, record, progress)
                X = library.vectors(record.id).X
                if not len(X):
                    problem = "no song in this library has the data that this model requires"
                    raise ModelError(f"{source.name}: {problem} ({model.kind.description}).")
                if not (X.min() >= -_MAX_VECTOR and X.max() <= _MAX_VECTOR):  # comparisons with NaN are False
                    raise ModelError(f"{source.name}: the model computes invalid vectors. Export the model again.")

            return publish(library, model, record, fill=fill, report=report, progress=progress)
        finally:
            library.models.discard_unfinished()
