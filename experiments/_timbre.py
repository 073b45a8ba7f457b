"""Pieces compared by the app's models, and by these with a part left out: for experiments.real_music."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np

from experiments._pieces import Pieces
from experiments.sound_prior import N_SONGS
from musicsim import gaussians
from musicsim._arrays import Float64Array
from musicsim.audio.features import N_MFCC
from musicsim.explorer.upkeep.fitting import RepresentationSettings, song_parts
from musicsim.explorer.upkeep.model_catalogue import add_representation
from musicsim.library import Library, Song

__all__ = ["ablations", "app_models", "constants_of", "model_vectors"]

_OTHERS = ("histogram", "tfidf", "gmm", "harmony", "rhythm")


@contextmanager
def constants_of(library: Library, songs: Sequence[Song]) -> Iterator[None]:
    """What the model Sound knows of music before it sees a library is learned from these songs; nothing from none.

    The constants that come with the program were learned from the very pieces that the experiment judges by.
    """
    if songs:
        prior = gaussians.learn_prior(song_parts(library, songs, lambda *_: None), N_SONGS)
    else:
        known = gaussians.load_prior()
        prior = gaussians.Prior(replace(known.population, n_songs=0.0), replace(known.spread, n_songs=0.0))
    with patch.object(gaussians, "load_prior", return_value=prior):
        yield


def model_vectors(library: Library, pieces: Pieces, model_id: str) -> Float64Array:
    """Vectors of the pieces under a model of the library."""
    stored = library.vectors(model_id)
    row_of = {song_id: row for row, song_id in enumerate(stored.song_ids.tolist())}
    return np.asarray(stored.X[[row_of[song.id] for song in pieces.songs]], dtype=np.float64)


def app_models(library: Library, pieces: Pieces, *, others: bool) -> Iterator[tuple[str, Float64Array]]:
    """Vectors by the built-in models, and by the other representations if asked for."""
    for record in (library.models.native(), library.models.codewords()):
        if record is not None:
            yield record.name, model_vectors(library, pieces, record.id)
    for name in _OTHERS if others else ():
        made = add_representation(library, RepresentationSettings(name), name, lambda *_: None)
        yield name, model_vectors(library, pieces, made)


def ablations(library: Library, pieces: Pieces) -> Iterator[tuple[str, Float64Array]]:
    """Vectors by the model Sound made of these pieces alone, and with something left out or changed."""
    parts = song_parts(library, pieces.songs, lambda *_: None)
    whole = gaussians.SongGaussians.concatenate([some.merged() for some in parts])
    prior = gaussians.load_prior()

    def placed(
        n_columns: int | None = None,
        shrinkage: float = 0.9,
        *,
        level: int | None = 0,
        known: gaussians.Prior | None = None,
    ) -> Float64Array:
        chosen = parts if n_columns is None else [_columns(some, n_columns) for some in parts]
        songs = whole if n_columns is None else _columns(whole, n_columns)
        embedding, within = gaussians.fit_embedding(chosen, known and known.population)
        if level is None:
            embedding.set_params(level=None).fit(songs)
            within = None
        X = embedding.transform(songs)
        mean, axes = gaussians.song_axes(X, within, known and known.spread, shrinkage=shrinkage)
        return (X - mean) @ axes.T

    yield "Sound, with the program's constants, which know these pieces", placed(known=prior)
    yield "Sound, no whitening within songs", placed(shrinkage=1.0)
    for g in (0.5, 0.8):
        yield f"Sound, whitening shrunk by {g:g}", placed(shrinkage=g)
    yield "Sound, level kept, no whitening", placed(level=None, shrinkage=1.0)
    yield "Sound, without slopes and curvatures", placed(N_MFCC)


def _columns(songs: gaussians.SongGaussians, n: int) -> gaussians.SongGaussians:
    return gaussians.SongGaussians(songs.means[:, :n], songs.covariances[:, :n, :n], songs.n_frames)
