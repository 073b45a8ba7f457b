"""Pieces compared by the app's models, by these with a part left out, and by rivals: for experiments.real_music."""

from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np

from benchmarks._report import Progress, version
from benchmarks._rival import RivalError, RivalProcess
from experiments._pieces import Pieces, euclidean
from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim.explorer.models.encoders import FLUCTUATION, TIMBRE
from musicsim.explorer.models.representations import FLUCTUATION_SHARE
from musicsim.explorer.upkeep.fitting import RepresentationSettings
from musicsim.explorer.upkeep.model_catalogue import add_representation
from musicsim.explorer.upkeep.sound import fit_sound, song_parts
from musicsim.gaussians import SongGaussians, fit_embedding, song_axes
from musicsim.library import Library

__all__ = [
    "Bliss",
    "ablations",
    "app_models",
    "bliss_distances",
    "gaussian_divergences",
    "model_vectors",
    "statistics",
]

_OTHERS = ("histogram", "tfidf", "gmm", "harmony", "rhythm")
_N_MFCC = 13


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
    timbre = [song.timbre for song in parts]
    whole = SongGaussians.concatenate([some.merged() for some in timbre])
    encoder, (of_timbre, of_fluctuation) = fit_sound(parts, use_prior=False)
    features = encoder.encode_frames(library.frame_files.frames(song.content_hash) for song in pieces.songs)

    def joined(shrinkage: float = 0.9) -> Float64Array:
        X = _placed(features[:, TIMBRE], of_timbre, shrinkage)
        Y = _placed(features[:, FLUCTUATION], of_fluctuation, shrinkage)
        return np.hstack([np.sqrt(1 - FLUCTUATION_SHARE) * X, np.sqrt(FLUCTUATION_SHARE) * Y])

    yield "Sound, without the constants of the program", joined()
    yield "Sound, no whitening within songs", joined(1.0)
    yield "Sound, whitening shrunk by 0.8", joined(0.8)
    yield "Sound, timbre alone", _placed(features[:, TIMBRE], of_timbre)
    yield "Sound, fluctuation alone", _placed(features[:, FLUCTUATION], of_fluctuation)
    columns = np.arange(_N_MFCC)
    embedding, within = fit_embedding([_columns(some, columns) for some in timbre])
    yield (
        "timbre alone, no slopes, no curvatures",
        _placed(embedding.transform(_columns(whole, columns)), within),
    )


def _placed(X: Float32Array, within: Float64Array, shrinkage: float = 0.9) -> Float64Array:
    mean, axes = song_axes(X, within, shrinkage=shrinkage)
    return (X - mean) @ axes.T


def _columns(gaussians: SongGaussians, which: Int64Array) -> SongGaussians:
    chosen = gaussians.covariances[:, which][:, :, which]
    return SongGaussians(gaussians.means[:, which], chosen, gaussians.n_frames)


# --- rivals ---------------------------------------------------------------------------------------


def statistics(library: Library, pieces: Pieces) -> Float64Array:
    """Means and deviations of the 39 columns, z-scored."""
    songs = [library.frames(song).astype(np.float64) for song in pieces.songs]
    X = np.array([np.concatenate([frames.mean(axis=0), frames.std(axis=0)]) for frames in songs])
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)


def gaussian_divergences(library: Library, pieces: Pieces) -> dict[str, Float64Array]:
    """Between single Gaussians of the MFCC: symmetrised Kullback-Leibler, and Musly's Jensen-Shannon.

    Musly (Schnitzer, 2012) takes 25 MFCC; 13 are stored here. The mixture of two Gaussians is taken as the Gaussian of
    its moments, as there; distances are the root.
    """
    songs = [library.frames(song)[:, :_N_MFCC].astype(np.float64) for song in pieces.songs]
    means = np.array([frames.mean(axis=0) for frames in songs])
    covariances = np.array([np.cov(frames.T) + 1e-3 * np.eye(_N_MFCC) for frames in songs])
    inverses, logs = np.linalg.inv(covariances), np.linalg.slogdet(covariances)[1]
    n = len(songs)
    kl, js = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        apart = means - means[i]
        outer = apart[:, :, None] * apart[:, None, :]
        traces = np.einsum("jab,ba->j", covariances, inverses[i]) + np.einsum(
            "jab,ab->j", inverses, covariances[i]
        )
        squares = np.einsum("ja,ab,jb->j", apart, inverses[i], apart) + np.einsum(
            "ja,jab,jb->j", apart, inverses, apart
        )
        kl[i] = (traces + squares) / 4.0 - _N_MFCC / 2.0
        middle = (covariances + covariances[i]) / 2.0 + outer / 4.0
        js[i] = np.linalg.slogdet(middle)[1] / 2.0 - (logs + logs[i]) / 4.0
    return {
        "one Gaussian, symmetrised KL": np.sqrt(np.maximum((kl + kl.T) / 2.0, 0.0)),
        "one Gaussian, Jensen-Shannon (Musly)": np.sqrt(np.maximum((js + js.T) / 2.0, 0.0)),
    }


class Bliss:
    """The rival's numbers of a file."""

    def __init__(self) -> None:
        import bliss_audio

        self._song = bliss_audio.Song

    def analyse(self, path: str) -> list[float]:
        """Some twenty numbers from -1 to 1."""
        return [float(value) for value in self._song(path).analysis]


def bliss_distances(pieces: Pieces, progress: Progress) -> tuple[Float64Array | None, str]:
    """Euclidean distances of bliss's numbers, or None with the reason; a file it fails on is far from all."""
    if not version("bliss-audio"):
        return None, "bliss-audio is not installed (pip install 'musicsim[bench]')"
    rows: list[list[float] | None] = []
    with ExitStack() as held:
        bliss: RivalProcess | None = None
        for number, song in enumerate(pieces.songs):
            try:
                if bliss is None:
                    bliss = held.enter_context(RivalProcess(Bliss))
                rows.append(bliss.call("analyse", str(song.path)).value)
            except RivalError as error:
                rows.append(None)
                bliss = None
                if not any(rows) and number >= 3:
                    return None, f"bliss: {error}"
            if number % 50 == 49:
                progress(f"bliss: {number + 1} of {len(pieces)}")
    read = [row for row in rows if row is not None]
    if not read:
        return None, "bliss read none of the files"
    failed = np.array([row is None for row in rows])
    D = euclidean(np.array([row or read[0] for row in rows]))
    D[failed] = D[:, failed] = 2.0 * D.max()
    return D, f"bliss read {len(read)} of {len(rows)} files"
