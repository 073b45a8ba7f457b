"""Rivals that compare pieces: statistics, Gaussians, block-level features, bliss, Musly; for experiments.real_music."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.extraction import Bliss
from benchmarks.support.report import Progress, version
from benchmarks.support.rival import RivalError, RivalProcess
from experiments.support.blocks import block_features, joined_distances
from experiments.support.pieces import Pieces, euclidean
from musicsim._arrays import Float32Array, Float64Array
from musicsim.audio import load
from musicsim.audio.errors import AudioError
from musicsim.extras import install_command
from musicsim.library import Library
from musicsim.library.disk.arrays import atomic_path

__all__ = ["Musly", "bliss_distances", "musly_distances", "rival_distances"]

_N_MFCC = 13
_SAVED_EVERY = 25  # files
_MUSLY_RATE = 22_050  # Hz

Numbers: TypeAlias = npt.NDArray[Any]
Describe = Callable[[str], Numbers | None]
"""The numbers of a file; None where it cannot be read."""
Found = tuple[Float64Array | None, str]
"""Distances (n, n) and a remark, or None and the reason if the rival is not available."""


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
    yield "bliss", *bliss_distances(pieces, folder, progress)


def bliss_distances(pieces: Pieces, folder: Path, progress: Progress) -> Found:
    """Return the distances of bliss, from numbers that are cached in `folder`."""
    if absent := _absence("bliss-audio"):
        return None, absent
    with ExitStack() as held:
        found = _of_files(pieces, folder / "bliss.npz", _in_process(Bliss, held), progress)
    return _distances(found, euclidean)


def musly_distances(pieces: Pieces, folder: Path, progress: Progress) -> Found:
    """Return the distances of Musly, which adjusts them by its own mutual proximity; its tracks are cached."""
    if absent := _absence("pymusly"):
        return None, absent
    with ExitStack() as held:
        found = _of_files(pieces, folder / "musly.npz", _in_process(Musly, held), progress)
    try:
        with RivalProcess(Musly) as musly:
            return _distances(found, lambda tracks: musly.call("distances", tracks).value)
    except RivalError as error:
        return None, str(error)


def _absence(package: str) -> str:
    return "" if version(package) else f"{package} is not installed ({install_command('bench')})"


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


def _of_files(pieces: Pieces, target: Path, describe: Describe, progress: Progress) -> list[Numbers | None]:
    """Return the numbers of each piece's file, from the cache of an earlier run if possible."""
    known: dict[str, Numbers] = {}
    if target.is_file():
        with np.load(target) as kept:
            known = {name: kept[name] for name in kept.files}
    rows: list[Numbers | None] = []
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


def _distances(rows: list[Numbers | None], distances: Callable[[Numbers], Float64Array]) -> Found:
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


class Musly:
    """Rival that computes a track of a file, and distances between tracks."""

    def __init__(self) -> None:
        import pymusly

        self._jukebox = pymusly.MuslyJukebox("timbre")

    def analyze(self, path: str) -> npt.NDArray[np.uint8]:
        """Return the serialized track of the whole file, decoded by us, because Musly's wheel has no decoder."""
        track = self._jukebox.track_from_audiodata(load(path, sr=_MUSLY_RATE))
        return np.frombuffer(self._jukebox.serialize_track(track), dtype=np.uint8)

    def distances(self, tracks: npt.NDArray[np.uint8]) -> Float64Array:
        """Return the distances between serialized tracks (n, size), normalized by all of them, (n, n)."""
        restored = [self._jukebox.deserialize_track(track.tobytes()) for track in tracks]
        self._jukebox.set_style(restored)
        pairs = list(zip(self._jukebox.add_tracks(restored), restored, strict=True))
        return np.array([self._jukebox.compute_similarity(pair, pairs) for pair in pairs], dtype=np.float64)


def _in_process(make: type, held: ExitStack) -> Describe:
    """Return a function that runs a rival in a separate process, with a new one after a file that crashes it."""
    running: list[RivalProcess] = []

    def describe(path: str) -> Numbers | None:
        try:
            if not running:
                running.append(held.enter_context(RivalProcess(make)))
            numbers: Numbers = running[0].call("analyze", path).value
            return numbers
        except RivalError:
            running.clear()
            return None

    return describe
