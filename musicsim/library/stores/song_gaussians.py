"""Gaussians of a song's parts, fitted once and stored after its frames in the same file, to save time."""

from pathlib import Path

import numpy as np

from musicsim import gaussians
from musicsim._arrays import FloatingArray
from musicsim.audio import HOP, SAMPLE_RATE, SongFrames, append_parts, read_song_frames

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
    stored = None if frames.parts is None else _unpack(frames.parts, len(frames))
    return _fit(frames) if stored is None else stored


def keep_gaussians(path: Path) -> None:
    """Append the parts' Gaussians to a frame file, which must not contain any yet."""
    parts = _fit(read_song_frames(path))
    # frame counts below 2 ** 24 (50 hours of sound) are exact in float32
    columns = [parts.n_frames[:, None].astype(np.float32), parts.means, parts.covariances[:, *_UPPER]]
    append_parts(path, np.concatenate(columns, axis=1))


def _fit(frames: SongFrames) -> gaussians.SongGaussians:
    return gaussians.fit_parts(frames.blocks(), part_length(len(frames)))


def _unpack(stored: FloatingArray, n_frames: int) -> gaussians.SongGaussians | None:
    """Unpack stored Gaussians; return None if this version divides a song of `n_frames` into different parts."""
    if stored.ndim != 2 or stored.shape[1] != _WIDTH or stored.dtype != np.float32:
        return None
    lengths = stored[:, 0].astype(np.int64)
    if lengths.sum() != n_frames or (lengths[:-1] != part_length(n_frames)).any():
        return None
    covariances = np.empty((len(stored), _N_COLUMNS, _N_COLUMNS), np.float32)
    covariances[:, *_UPPER] = covariances[:, *_UPPER[::-1]] = stored[:, 1 + _N_COLUMNS :]
    return gaussians.SongGaussians(stored[:, 1 : 1 + _N_COLUMNS], covariances, lengths)
