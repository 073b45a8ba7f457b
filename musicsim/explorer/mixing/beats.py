"""Regular beats in a part of a song, found by librosa's beat tracker."""

import math
from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Float32Array, Float64Array
from musicsim.audio import import_librosa

BEAT_RATE, _HOP = 22_050, 256  # beats are searched in frames of 12 ms
_WINDOW = 1024  # librosa's default is twice as long, and makes beats later and less regular
_MIN_BEATS = 8
_REGULAR_S = 0.035  # maximum distance of a regular beat from the grid
_MIN_REGULAR = 0.8  # minimum share of regular beats
_MIN_REPETITION = 0.15  # minimum autocorrelation of the onset strength after one or two beats; noise has about 0.05
MAX_STRETCH = 1.08  # maximum ratio of two tempos that a fade joins


@dataclass(frozen=True, slots=True)
class BeatGrid:
    """Equally spaced beats: ``first_s + k * period_s`` seconds for all integers k."""

    first_s: float
    period_s: float

    @property
    def tempo(self) -> float:
        """Beats per minute."""
        return 60.0 / self.period_s

    def shift(self, seconds: float) -> "BeatGrid":
        """Return the grid of the same beats in a sound that begins this many seconds earlier."""
        return BeatGrid(self.first_s + seconds, self.period_s)

    def beat_after(self, seconds: float) -> float:
        """Return the time of the first beat at or after a time."""
        return self.first_s + self.period_s * math.ceil((seconds - self.first_s) / self.period_s)

    def beat_before(self, seconds: float) -> float:
        """Return the time of the last beat at or before a time."""
        return self.first_s + self.period_s * math.floor((seconds - self.first_s) / self.period_s)


def find_beats(samples: Float32Array, rate: int, tempo: float | None = None) -> BeatGrid | None:
    """Find the beats of samples (channels, n), or return None if they are too few, not regular, or do not repeat.

    `tempo` is the number of beats per minute of the song; if it is unknown, librosa estimates it. The grid is the
    least-squares fit to the beats, so it is more precise than a frame.
    """
    librosa = import_librosa()

    sound = librosa.resample(samples.mean(axis=0), orig_sr=rate, target_sr=BEAT_RATE)
    if len(sound) < _WINDOW or not sound.any():
        return None
    strength = librosa.onset.onset_strength(y=sound, sr=BEAT_RATE, hop_length=_HOP, n_fft=_WINDOW, aggregate=np.median)
    _, frames = librosa.beat.beat_track(onset_envelope=strength, sr=BEAT_RATE, hop_length=_HOP, bpm=tempo, trim=False)
    if len(frames) < _MIN_BEATS:
        return None
    grid = _fit_grid(frames.astype(np.float64) * (_HOP / BEAT_RATE))
    is_clear = grid is not None and _measure_repetition(strength, grid) >= _MIN_REPETITION
    return grid if is_clear else None


def _measure_repetition(strength: Float32Array, grid: BeatGrid) -> float:
    """Return the greatest autocorrelation of the onset strength near one or two beats, at most 1."""
    librosa = import_librosa()

    correlation = librosa.autocorrelate(strength - strength.mean())
    lags = [
        round(n_beats * grid.period_s * BEAT_RATE / _HOP) + away for n_beats in (1, 2) for away in (-2, -1, 0, 1, 2)
    ]
    return float(max(correlation[lag] for lag in lags if 0 < lag < len(correlation)) / correlation[0])


def _fit_grid(times: Float64Array) -> BeatGrid | None:
    """Fit a grid to beats, which may skip some of its points; return None if too many beats are far from it."""
    gaps = np.diff(times)
    counts = np.concatenate([[0.0], np.cumsum(np.round(gaps / np.median(gaps)))])
    later, earlier = np.tril_indices(len(times), -1)
    # the median slope of all pairs ignores irregular beats, which are frequent at both ends
    period = np.median((times[later] - times[earlier]) / np.maximum(counts[later] - counts[earlier], 1.0))
    starts = times - period * counts
    is_near = np.abs(starts - np.median(starts)) <= _REGULAR_S
    if is_near.mean() < _MIN_REGULAR:
        return None
    period, first = np.polyfit(counts[is_near], times[is_near], 1)
    return BeatGrid(float(first), float(period))
