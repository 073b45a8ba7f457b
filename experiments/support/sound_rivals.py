"""Rivals that compare pieces: statistics, single Gaussians, block-level features, bliss; for experiments.real_music."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from benchmarks.support.report import Progress, version
from benchmarks.support.rival import RivalError, RivalProcess
from experiments.support.blocks import block_features, joined_distances
from experiments.support.pieces import Pieces, euclidean
from musicsim._arrays import Float32Array, Float64Array
from musicsim.audio import load
from musicsim.audio.errors import AudioError
from musicsim.library import Library
from musicsim.library.disk.arrays import atomic_path

__all__ = ["Bliss", "rival_distances"]

_N_MFCC = 13
_SAVED_EVERY = 25  # files

Describe = Callable[[str], Float32Array | None]
"""The numbers of a file; None where it cannot be read."""


def rival_distances(
    library: Library, pieces: Pieces, folder: Path, progress: Progress
) -> Iterator[tuple[str, Float64Array | None, str]]:
    """Yield name and distances (n, n) of each rival, or None and the reason if it is unavailable.

    Parameters
    ----------
    folder : Path
        Caches the numbers of rivals that read files, by hash of the file.
    """
    yield "MFCC statistics", euclidean(_statistics(library, pieces)), ""
    for name, D in _gaussian_divergences(library, pieces).items():
        yield name, D, ""
    blocks = _of_files(pieces, folder / "blocks.npz", _blocks_of, progress)
    yield "block-level features", *_distances(blocks, joined_distances)
    if not version("bliss-audio"):
        yield "bliss", None, "bliss-audio is not installed (pip install 'musicsim[bench]')"
        return
    with _bliss() as describe:
        found = _of_files(pieces, folder / "bliss.npz", describe, progress)
    yield "bliss", *_distances(found, euclidean)


def _statistics(library: Library, pieces: Pieces) -> Float64Array:
    """Return means and deviations of the 39 columns, z-scored."""
    songs = [library.frames(song).astype(np.float64) for song in pieces.songs]
    X = np.array([np.concatenate([frames.mean(axis=0), frames.std(axis=0)]) for frames in songs])
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)


def _gaussian_divergences(library: Library, pieces: Pieces) -> dict[str, Float64Array]:
    """Return divergences of single Gaussians of the MFCC: symmetrized Kullback-Leibler, and Musly's Jensen-Shannon.

    Musly (Schnitzer, 2012) uses 25 MFCC; only 13 are stored here. As in Musly, the mixture of two Gaussians is replaced
    by the Gaussian with its moments. Distances are the root.
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
        traces = np.einsum("jab,ba->j", covariances, inverses[i]) + np.einsum("jab,ab->j", inverses, covariances[i])
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


# --- rivals that read the files -------------------------------------------------------------------


def _of_files(pieces: Pieces, target: Path, describe: Describe, progress: Progress) -> list[Float32Array | None]:
    """Return the numbers of each piece's file, from the cache of an earlier run if possible."""
    known: dict[str, Float32Array] = {}
    if target.is_file():
        with np.load(target) as kept:
            known = {name: kept[name] for name in kept.files}
    rows: list[Float32Array | None] = []
    for number, song in enumerate(pieces.songs, start=1):
        found = known.get(song.content_hash)
        is_new = found is None
        if found is None and (found := describe(str(song.path))) is not None:
            known[song.content_hash] = found
        rows.append(found)
        if is_new and (number % _SAVED_EVERY == 0 or number == len(pieces)):
            with atomic_path(target) as path, path.open("wb") as stream:
                np.savez(stream, **known)  # type: ignore[arg-type]
            progress(f"{target.stem}: {number} of {len(pieces)}")
    return rows


def _distances(
    rows: list[Float32Array | None], distances: Callable[[Float32Array], Float64Array]
) -> tuple[Float64Array | None, str]:
    """Return the distances of the files that were read; all others are far from every piece."""
    read = [row for row in rows if row is not None]
    if not read:
        return None, "none of the files was read"
    failed = np.array([row is None for row in rows])
    D = distances(np.array([read[0] if row is None else row for row in rows]))
    D[failed] = D[:, failed] = 2.0 * D.max()
    return D, f"{len(read)} of {len(rows)} files read" if failed.any() else ""


def _blocks_of(path: str) -> Float32Array | None:
    try:
        return block_features(load(path))
    except (AudioError, OSError):
        return None


class Bliss:
    """Rival that computes numbers of a file."""

    def __init__(self) -> None:
        import bliss_audio

        self._song = bliss_audio.Song

    def analyse(self, path: str) -> list[float]:
        """Return about twenty numbers from -1 to 1."""
        return [float(value) for value in self._song(path).analysis]


@contextmanager
def _bliss() -> Iterator[Describe]:
    """Yield a function that runs bliss in a separate process, with a new one after a file that crashes it."""
    with ExitStack() as held:
        running: list[RivalProcess] = []

        def describe(path: str) -> Float32Array | None:
            try:
                if not running:
                    running.append(held.enter_context(RivalProcess(Bliss)))
                return np.array(running[0].call("analyse", path).value, dtype=np.float32)
            except RivalError:
                running.clear()
                return None

        yield describe
