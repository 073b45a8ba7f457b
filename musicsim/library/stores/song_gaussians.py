"""The Gaussians of a song's parts: fitted to its frames once, and kept behind them in their file.

They are all that the native model takes from frames, and do not depend on any model: a fit reads 26 kB a song instead
of working out 39 columns of every frame again. If parts are divided otherwise by then, the frames are read.
"""

from pathlib import Path

import numpy as np

from musicsim import gaussians
from musicsim._arrays import Float32Array, FloatingArray
from musicsim.audio import HOP, SAMPLE_RATE, SongFrames, append_parts, read_song_frames

_FRAMES_A_PART = 20.0 * SAMPLE_RATE / HOP
_MIN_PARTS, _MAX_PARTS = 2, 8
_N_COLUMNS = 39
_UPPER = np.triu_indices(_N_COLUMNS)
_WIDTH = 1 + _N_COLUMNS + len(_UPPER[0])  # number of frames, mean, upper triangle of the covariance


def part_length(n_frames: int) -> int:
    """Frames of a song's parts: 20 s where that makes two to eight of them."""
    return -(-n_frames // int(np.clip(round(n_frames / _FRAMES_A_PART), _MIN_PARTS, _MAX_PARTS)))


def part_gaussians(frames: SongFrames) -> gaussians.SongGaussians:
    """The Gaussians of a song's parts, one after another, as they were kept, or of the frames: the same numbers."""
    kept = None if frames.parts is None else _unpacked(frames.parts, len(frames))
    return _fitted(frames) if kept is None else kept


def song_gaussian(frames: SongFrames) -> gaussians.SongGaussians:
    """The one Gaussian of a song, of its parts."""
    return part_gaussians(frames).merged()


def keep_gaussians(path: Path) -> None:
    """Write the Gaussians of parts behind the frames in their file, which has none yet."""
    append_parts(path, _packed(_fitted(read_song_frames(path))))


def _fitted(frames: SongFrames) -> gaussians.SongGaussians:
    return gaussians.fit_parts(frames.blocks(), part_length(len(frames)))


def _packed(parts: gaussians.SongGaussians) -> Float32Array:
    """(n_parts, 820); numbers of frames are below 2 ** 24 in sounds of up to 50 hours, and float32 holds them."""
    triangles = parts.covariances[:, *_UPPER]
    return np.concatenate([parts.n_frames[:, None].astype(np.float32), parts.means, triangles], axis=1)


def _unpacked(kept: FloatingArray, n_frames: int) -> gaussians.SongGaussians | None:
    """None where these are not the parts that this version divides so many frames into."""
    if kept.ndim != 2 or kept.shape[1] != _WIDTH or kept.dtype != np.float32:
        return None
    lengths = kept[:, 0].astype(np.int64)
    if lengths.sum() != n_frames or (lengths[:-1] != part_length(n_frames)).any():
        return None
    covariances = np.empty((len(kept), _N_COLUMNS, _N_COLUMNS), np.float32)
    covariances[:, *_UPPER] = covariances[:, *_UPPER[::-1]] = kept[:, 1 + _N_COLUMNS :]
    return gaussians.SongGaussians(kept[:, 1 : 1 + _N_COLUMNS], covariances, lengths)
