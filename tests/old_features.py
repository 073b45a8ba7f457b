"""Songs and models of an older feature version, which an update of the program analyzes and fits again."""

import json

import numpy as np

from musicsim.explorer.refresh.placing import songs_with_frames
from musicsim.library.db import schema


def set_feature_version(library, record, version):
    """Set the feature version of a model."""
    about = library.models.path(record.id) / "model.json"
    about.write_text(json.dumps(json.loads(about.read_text()) | {"feature_version": version}))


def make_feature_version_2(library):
    """Turn a library into one of feature version 2, whose songs do not have patterns of fluctuation.

    Returns
    -------
    Library
        The same library.
    """
    for song in songs_with_frames(library, library.songs()):
        mfcc = np.array(library.frame_files.frames(song.content_hash).mfcc)
        np.save(library.frame_files.path(song.content_hash), mfcc)
    with library.exclusive():
        with library.write() as connection:
            connection.execute(schema.songs.update().values(feature_version=2))
        with library.note_refresh():
            pass
    for record in library.models.all(retired=True):
        set_feature_version(library, record, 2)
    return library
