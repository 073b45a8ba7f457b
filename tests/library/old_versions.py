"""Libraries as older versions of the program wrote them."""

import json

import numpy as np

from musicsim import gaussians
from musicsim.explorer.models.encoders import GaussianEncoder
from musicsim.explorer.models.schema import OLDER_SOUND
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.upkeep.fitting import new_record
from musicsim.explorer.upkeep.placing import songs_with_frames
from musicsim.explorer.upkeep.publish import publish
from musicsim.library.db import schema


def make_feature_version_2(library):
    """Turn a library into one of feature version 2: nothing kept of fluctuation, Sound without it.

    Returns
    -------
    Library
        The same.
    """
    songs = songs_with_frames(library, library.songs())
    for song in songs:
        mfcc = np.array(library.frame_files.mfcc(song.content_hash))
        np.save(library.frame_files.path(song.content_hash), mfcc)
    frames = [library.frames(song) for song in songs]
    embedding = gaussians.GaussianEmbedding().fit(gaussians.fit_gaussians(frames))
    model = SimilarityModel(OLDER_SOUND, random_state=0).use_encoder(GaussianEncoder(embedding))
    features = model.features(frames)
    model.fit_space(features)
    record = new_record("native", "Sound", model, len(songs))
    ids = [song.id for song in songs]

    def fill():
        library.models.append(record.id, ids, features, model.vectors(features))

    with library.exclusive():
        publish(library, model, record, fill=fill, tell=lambda *_: None, activate=True)
        with library.write() as connection:
            connection.execute(schema.songs.update().values(feature_version=2))
        library.note_refreshed()
    for one in library.models.all(retired=True):
        about = library.models.path(one.id) / "model.json"
        about.write_text(json.dumps(json.loads(about.read_text()) | {"feature_version": 2}))
    return library
