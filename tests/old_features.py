"""Songs and models of an older feature version, which an update of the program analyzes and fits again."""

import json

import numpy as np

from musicsim.audio import FLUCTUATION_SIZE
from musicsim.explorer.models.encoders import SoundEncoder
from musicsim.explorer.models.schema import SOUND
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.refresh.fitting import new_record, publish
from musicsim.explorer.refresh.placing import songs_with_frames
from musicsim.gaussians import song_axes
from musicsim.library.db import schema
from musicsim.library.stores.models import NATIVE_KIND
from musicsim.progress import no_progress


def set_feature_version(library, record, version):
    """Set the feature version of a model."""
    about = library.models.path(record.id) / "model.json"
    about.write_text(json.dumps(json.loads(about.read_text()) | {"feature_version": version}))


def make_feature_version_3(library):
    """Turn a library into one of feature version 3, whose songs and model Sound have no spectral shape.

    Returns
    -------
    Library
        The same library.
    """
    songs = songs_with_frames(library, library.songs())
    for song in songs:
        frames = library.frame_files.frames(song.content_hash)
        with library.frame_files.path(song.content_hash).with_suffix(".new").open("wb") as file:
            for array in (frames.mfcc, frames.fluctuation, frames.parts):
                np.lib.format.write_array(file, np.array(array))
        library.frame_files.path(song.content_hash).with_suffix(".new").replace(
            library.frame_files.path(song.content_hash)
        )
    with library.exclusive():
        _publish_older_sound(library, songs)
        with library.write() as connection:
            connection.execute(schema.songs.update().values(feature_version=3))
        with library.note_refresh():
            pass
    for record in library.models.all(retired=True):
        set_feature_version(library, record, 3)
    return library


def older_sound(timbre, features):
    """Fit Sound as version 3 did to features of timbre and fluctuation; vectors have any length."""
    model = SimilarityModel(SOUND, random_state=0).use_encoder(SoundEncoder(timbre))
    groups = [song_axes(features[:, columns]) for columns in (slice(-FLUCTUATION_SIZE), slice(-FLUCTUATION_SIZE, None))]
    (mean, axes), (other_mean, other_axes) = groups
    model.mean_ = np.concatenate([mean, other_mean])
    model.axes_ = np.zeros((len(axes) + len(other_axes), len(model.mean_)))
    model.axes_[: len(axes), : len(mean)] = np.sqrt(0.75) * axes
    model.axes_[len(axes) :, len(mean) :] = np.sqrt(0.25) * other_axes
    model.weights_, model.n_songs_ = None, len(features)
    return model


def _publish_older_sound(library, songs):
    current = SimilarityModel.load(library.models.path(library.models.native().id))
    encoder = SoundEncoder(current.encoder_.timbre)
    features = encoder.encode_frames(library.frame_files.frames(song.content_hash) for song in songs)
    model = older_sound(encoder.timbre, features)
    record = new_record(NATIVE_KIND, "Sound", model, len(songs))

    def fill():
        library.models.append(record.id, [song.id for song in songs], features, model.vectors(features))

    publish(library, model, record, fill=fill, progress=no_progress, activate=True)
