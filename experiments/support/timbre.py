"""Distances of pieces by the app's models and by ablations of them: for experiments.real_music."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np

from experiments.sound_prior import N_SONGS, learn_prior
from experiments.support.pieces import Pieces
from musicsim import gaussians
from musicsim._arrays import Float32Array, Float64Array, FloatingArray
from musicsim.audio.features import N_MFCC
from musicsim.explorer.models.encoders import FLUCTUATION, TIMBRE
from musicsim.explorer.models.representations import FLUCTUATION_SHARE
from musicsim.explorer.refresh.fitting import RepresentationSettings, fit_sound, song_parts
from musicsim.explorer.refresh.model_catalogue import add_representation
from musicsim.library import Library, Song

__all__ = ["ablations", "app_models", "constants_of", "model_vectors", "sound_vectors"]

_OTHERS = ("histogram", "tfidf", "gmm", "harmony", "rhythm")


@contextmanager
def constants_of(library: Library, songs: Sequence[Song]) -> Iterator[None]:
    """Learn the constants of the model Sound from these songs; without songs, use none.

    The constants that ship with the program were learned from the very pieces that the experiment evaluates on.
    """
    if songs:
        parts = song_parts(library, songs, lambda *_: None)
        prior = learn_prior([song.timbre for song in parts], [song.fluctuation for song in parts], N_SONGS)
    else:
        known = gaussians.load_prior()
        prior = gaussians.Prior(
            *(replace(of, n_songs=0.0) for of in (known.population, known.timbre, known.fluctuation))
        )
    with patch.object(gaussians, "load_prior", return_value=prior):
        yield


def model_vectors(library: Library, pieces: Pieces, model_id: str) -> Float64Array:
    """Return the vectors of the pieces under a model of the library."""
    stored = library.vectors(model_id)
    row_of = {song_id: row for row, song_id in enumerate(stored.song_ids.tolist())}
    return np.asarray(stored.X[[row_of[song.id] for song in pieces.songs]], dtype=np.float64)


def sound_vectors(library: Library, pieces: Pieces) -> Float64Array:
    """Return the vectors of the pieces under the model Sound."""
    record = library.models.native()
    assert record is not None
    return model_vectors(library, pieces, record.id)


def app_models(library: Library, pieces: Pieces, *, others: bool) -> Iterator[tuple[str, Float64Array]]:
    """Yield vectors by the built-in models and, if requested, by the other representations."""
    for record in (library.models.native(), library.models.codewords()):
        if record is not None:
            yield record.name, model_vectors(library, pieces, record.id)
    for name in _OTHERS if others else ():
        made = add_representation(library, RepresentationSettings(name), name, lambda *_: None)
        yield name, model_vectors(library, pieces, made)


def ablations(library: Library, pieces: Pieces) -> Iterator[tuple[str, Float64Array]]:
    """Yield vectors by the model Sound fitted on these pieces only, with one part removed or changed."""
    parts = song_parts(library, pieces.songs, lambda *_: None)

    def described(*, use_prior: bool) -> tuple[Float32Array, list[Float64Array]]:
        encoder, within = fit_sound(parts, use_prior=use_prior)
        frames = (library.frame_files.frames(song.content_hash) for song in pieces.songs)
        return encoder.encode_frames(frames), within

    features, (of_timbre, of_fluctuation) = described(use_prior=False)

    def sound(shrinkage: float) -> Float64Array:
        return join_parts(
            place_songs(features[:, TIMBRE], of_timbre, shrinkage=shrinkage),
            place_songs(features[:, FLUCTUATION], of_fluctuation, shrinkage=shrinkage),
        )

    known = gaussians.load_prior()
    knowing, (timbre, fluctuation) = described(use_prior=True)
    yield (
        "Sound, with the program's constants, which know these pieces",
        join_parts(
            place_songs(knowing[:, TIMBRE], timbre, known.timbre),
            place_songs(knowing[:, FLUCTUATION], fluctuation, known.fluctuation),
        ),
    )
    yield "Sound, no whitening within songs", sound(1.0)
    yield "Sound, whitening shrunk by 0.8", sound(0.8)
    yield "Sound, timbre alone", place_songs(features[:, TIMBRE], of_timbre)
    yield "Sound, fluctuation alone", place_songs(features[:, FLUCTUATION], of_fluctuation)
    embedding, within = gaussians.fit_embedding([_cepstra(song.timbre) for song in parts])
    whole = gaussians.SongGaussians.concatenate([_cepstra(song.timbre.merge()) for song in parts])
    yield "timbre alone, no slopes, no curvatures", place_songs(embedding.transform(whole), within)


def join_parts(timbre: Float64Array, fluctuation: Float64Array) -> Float64Array:
    """Return the vectors of Sound from those of its two parts."""
    return np.hstack([np.sqrt(1 - FLUCTUATION_SHARE) * timbre, np.sqrt(FLUCTUATION_SHARE) * fluctuation])


def place_songs(
    X: FloatingArray, within: Float64Array, known: gaussians.Spread | None = None, *, shrinkage: float = 0.9
) -> Float64Array:
    """Return the coordinates of songs on the axes of a part of Sound."""
    mean, axes = gaussians.song_axes(X, within, known, shrinkage=shrinkage)
    placed: Float64Array = (X - mean) @ axes.T
    return placed


def _cepstra(songs: gaussians.SongGaussians) -> gaussians.SongGaussians:
    which = slice(N_MFCC)
    return gaussians.SongGaussians(songs.means[:, which], songs.covariances[:, which, which], songs.n_frames)
