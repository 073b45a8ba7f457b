"""Gaussians of a song: those of its parts, stored after its frames in the same file, and that of its spectral shape."""

from pathlib import Path

import numpy as np

from musicsim import gaussians
from musicsim._arrays import FloatingArray
from musicsim.audio import HOP, N_SHAPE, SAMPLE_RATE, SongFrames, append_parts, read_song_frames

_FRAMES_PER_PART = 20.0 * SAMPLE_RATE / HOP
_MIN_PARTS, _MAX_PARTS = 2, 8
_N_COLUMNS = 39
_UPPER = np.triu_indices(_N_COLUMNS)
_WIDTH = 1 + _N_COLUMNS + len(_UPPER[0])  # number of frames, mean, upper triangle of the covariance


def part_length(n_frames: int) -> int:
    """Return the number of frames per part of a song: parts last about 20 s, and a song has two to eight."""
    return -(-n_frames // int(np.clip(round(n_frames / _FRAMES_PER_PART), _MIN_PARTS, _MAX_PARTS)))


def part_gaussians(frames: SongFrames) -> gaussians.SongGaussians:
    """Return the Gaussians of a song's parts, in order: stored ones if possible, otherwise fitted to the frames."""
    stored = frames.parts
    return _fit(frames) if stored is None or not _fits(stored, len(frames)) else _unpack(stored, _N_COLUMNS)


def shape_gaussian(frames: SongFrames) -> gaussians.SongGaussians:
    """Return the Gaussian of a song's spectral shape, which must be known."""
    assert frames.spectral_shape is not None
    return _unpack(frames.spectral_shape, N_SHAPE).merge()


def keep_gaussians(path: Path) -> None:
    """Append the parts' Gaussians to a frame file, which must not contain any yet."""
    parts = _fit(read_song_frames(path))
    # frame counts below 2 ** 24 (50 hours of sound) are exact in float32
    columns = [parts.n_frames[:, None].astype(np.float32), parts.means, parts.covariances[:, *_UPPER]]
    append_parts(path, np.concatenate(columns, axis=1))


def _fit(frames: SongFrames) -> gaussians.SongGaussians:
    return gaussians.fit_parts(frames.blocks(), part_length(len(frames)))


def _fits(stored: FloatingArray, n_frames: int) -> bool:
    """Return whether stored Gaussians are those of the parts into which this version divides a song."""
    if stored.ndim != 2 or stored.shape[1] != _WIDTH or stored.dtype != np.float32:
        return False
    lengths = stored[:, 0].astype(np.int64)
    return lengths.sum() == n_frames and bool((lengths[:-1] == part_length(n_frames)).all())


def _unpack(rows: FloatingArray, n_columns: int) -> gaussians.SongGaussians:
    """Unpack rows that have a number of frames, a mean, and the upper triangle of a covariance."""
    upper = np.triu_indices(n_columns)
    covariances = np.empty((len(rows), n_columns, n_columns), np.float32)
    covariances[:, *upper] = covariances[:, *upper[::-1]] = rows[:, 1 + n_columns :]
    return gaussians.SongGaussians(rows[:, 1 : 1 + n_columns], covariances, rows[:, 0].astype(np.int64))
