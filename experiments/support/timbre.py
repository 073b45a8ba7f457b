"""Distances of pieces by the app's models and by ablations of them: for experiments.real_music."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from unittest.mock import patch

import numpy as np

from experiments.sound_prior import N_SONGS, learn_prior
from experiments.support.pieces import Pieces
from musicsim import gaussians
from musicsim._arrays import Float32Array, Float64Array, FloatingArray
from musicsim.audio.features import N_MFCC
from musicsim.explorer.models.encoders import FLUCTUATION, SHAPE, TIMBRE
from musicsim.explorer.models.representations import FLUCTUATION_SHARE, SHAPE_SHARE, TIMBRE_SHARE, TIMBRE_SHRINKAGE
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
        prior = learn_prior(song_parts(library, songs, lambda *_: None), N_SONGS)
    else:
        known = gaussians.load_prior()
        prior = gaussians.Prior(*(replace(getattr(known, of.name), n_songs=0.0) for of in fields(known)))
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
    known = gaussians.load_prior()
    knowing, (timbre, fluctuation) = described(use_prior=True)
    yield (
        "Sound, with the program's constants, which know these pieces",
        join_parts(
            scale_lengths(place_songs(knowing[:, TIMBRE], timbre, known.timbre, shrinkage=TIMBRE_SHRINKAGE)),
            place_songs(knowing[:, FLUCTUATION], fluctuation, known.fluctuation),
            scale_lengths(place_songs(knowing[:, SHAPE], None, known.shape)),
        ),
    )
    timbre_axes = {
        shrinkage: place_songs(features[:, TIMBRE], of_timbre, shrinkage=shrinkage)
        for shrinkage in (TIMBRE_SHRINKAGE, 0.9, 1.0)
    }
    rhythm = place_songs(features[:, FLUCTUATION], of_fluctuation)
    shape = place_songs(features[:, SHAPE])
    unit, unit_shape = scale_lengths(timbre_axes[TIMBRE_SHRINKAGE]), scale_lengths(shape)
    yield (
        "Sound, no whitening within songs",
        join_parts(
            scale_lengths(timbre_axes[1.0]),
            place_songs(features[:, FLUCTUATION], of_fluctuation, shrinkage=1.0),
            unit_shape,
        ),
    )
    yield "Sound, vectors of any length", join_parts(timbre_axes[TIMBRE_SHRINKAGE], rhythm, shape)
    yield "Sound without spectral shape", join_parts(unit, rhythm)
    yield "Sound of feature version 3", join_parts(timbre_axes[0.9], rhythm)
    yield "Sound, timbre alone", unit
    yield "Sound, fluctuation alone", rhythm
    yield "Sound, spectral shape alone", unit_shape
    embedding, within = gaussians.fit_embedding([_cepstra(song.timbre) for song in parts])
    whole = gaussians.SongGaussians.concatenate([_cepstra(song.timbre.merge()) for song in parts])
    cepstra = place_songs(embedding.transform(whole), within, shrinkage=TIMBRE_SHRINKAGE)
    yield "timbre alone, no slopes, no curvatures", scale_lengths(cepstra)


def join_parts(
    timbre: Float64Array, fluctuation: Float64Array, shape: Float64Array | None = None, *, share: float = SHAPE_SHARE
) -> Float64Array:
    """Return the vectors of Sound from those of its parts; `share` is that of spectral shape, if it is given."""
    parts = [np.sqrt(TIMBRE_SHARE) * timbre, np.sqrt(FLUCTUATION_SHARE) * fluctuation]
    return np.hstack(parts if shape is None else [*parts, np.sqrt(share * (1 - SHAPE_SHARE) / (1 - share)) * shape])


def scale_lengths(X: Float64Array) -> Float64Array:
    """Scale rows to their root mean square length."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    scaled: Float64Array = X / lengths * np.sqrt(np.mean(lengths**2))
    return scaled


def place_songs(
    X: FloatingArray,
    within: Float64Array | None = None,
    known: gaussians.Spread | None = None,
    *,
    variance: float = 0.95,
    shrinkage: float = 0.9,
) -> Float64Array:
    """Return the coordinates of songs on the axes of a part of Sound."""
    mean, axes = gaussians.song_axes(X, within, known, variance=variance, shrinkage=shrinkage)
    placed: Float64Array = (X - mean) @ axes.T
    return placed


def _cepstra(songs: gaussians.SongGaussians) -> gaussians.SongGaussians:
    which = slice(N_MFCC)
    return gaussians.SongGaussians(songs.means[:, which], songs.covariances[:, which, which], songs.n_frames)
