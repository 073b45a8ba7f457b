"""Libraries as older versions of the program wrote them."""

import json
import sqlite3
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from musicsim import gaussians
from musicsim.explorer.models.encoders import GaussianEncoder
from musicsim.explorer.models.schema import OLDER_SOUND
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.upkeep.fitting import new_record
from musicsim.explorer.upkeep.placing import songs_with_frames
from musicsim.explorer.upkeep.publish import publish
from musicsim.library.db import migrations, schema

VERSION_1 = Path(__file__).with_name("version_1.sql")


def make_version_1(folder, music, digest="abc"):
    """A library as the first version wrote it, with one song that has been played and put on a list."""
    folder.mkdir(parents=True)
    with sqlite3.connect(folder / "library.sqlite") as old:
        old.executescript(VERSION_1.read_text())
        old.execute("INSERT INTO meta VALUES ('schema_version', '1')")
        old.execute("INSERT INTO roots VALUES (?, 1.0)", (str(music),))
        old.execute(
            "INSERT INTO songs VALUES (7, ?, 'One', 'Me', NULL, NULL, 1, 1999, 'jazz', 1.5, '', x'00', 1, 2.0)",
            (digest,),
        )
        old.execute("INSERT INTO files VALUES (?, 7, ?, 10, 20)", (str(music / "one.flac"), str(music)))
        old.execute("INSERT INTO failures VALUES (?, 'no sound', 1, 2, 3.0)", (str(music / "x.mp3"),))
        old.execute("INSERT INTO plays VALUES ('me', 7, 3)")
        old.execute("INSERT INTO playlists VALUES (1, 'mine', NULL, 'saved', 4.0)")
        old.execute("INSERT INTO playlist_songs VALUES (1, 0, 7)")
    old.close()


def step_to(version, folder, *more):
    """Bring a library to a version, and say something that only this version can."""
    engine = sa.create_engine(f"sqlite:///{folder / 'library.sqlite'}")
    with engine.begin() as connection:
        meta = schema.meta.c
        now = connection.scalar(sa.select(meta.value).where(meta.key == "schema_version"))
        for step in range(int(now), version):
            for statement in migrations.MIGRATIONS[step]:
                connection.exec_driver_sql(statement)
        connection.execute(
            schema.meta.update().where(meta.key == "schema_version").values(value=str(version))
        )
        for statement in more:
            connection.exec_driver_sql(statement)
    engine.dispose()


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
