"""Tests of fluctuation: tones with known rates of change, and results that do not depend on block size."""

import numpy as np
import pytest

from musicsim.audio import FLUCTUATION_SIZE, SAMPLE_RATE, fluctuation
from musicsim.audio.fluctuation import N_BANDS, N_MODULATIONS, FluctuationStream

BANDS = np.geomspace(53.43, 10_500, N_BANDS)
MODULATIONS = np.geomspace(0.2, 10, N_MODULATIONS)


def seconds(n):
    return np.arange(round(n * SAMPLE_RATE)) / SAMPLE_RATE


def trembling(hz, rate, n=30.0):
    """Return a tone that rises and falls, over noise 80 dB softer."""
    t = seconds(n)
    noise = 1e-4 * np.random.default_rng(0).standard_normal(len(t))
    return (np.sin(2 * np.pi * hz * t) * (1 + 0.8 * np.sin(2 * np.pi * rate * t)) + noise).astype(np.float32)


@pytest.mark.parametrize("rate", [1.0, 2.5, 4.0, 8.0])
@pytest.mark.parametrize("hz", [220.0, 1000.0, 4000.0])
def test_tremolo_peaks_at_its_band_and_rate(hz, rate):
    patterns = fluctuation(trembling(hz, rate)).astype(np.float64)
    band, modulation = np.unravel_index(patterns.mean(axis=0).argmax(), (N_BANDS, N_MODULATIONS))
    assert abs(band - np.abs(np.log(BANDS / hz)).argmin()) <= 1
    assert abs(modulation - np.abs(np.log(MODULATIONS / rate)).argmin()) <= 1


def test_gain_does_not_change_fluctuation():
    y = trembling(440, 3.0)
    loud = fluctuation(y).astype(np.float64)
    for gain in (0.25, 4.0, 1e-3):
        np.testing.assert_allclose(fluctuation(y * np.float32(gain)), loud, atol=2e-3 * loud.max())


def test_steady_sound_has_no_fluctuation():
    t = seconds(20)
    steady = sum(np.sin(2 * np.pi * hz * t) for hz in (110.0, 1234.5, 5000.0)).astype(np.float32)
    assert fluctuation(steady).max() < 0.05 * fluctuation(trembling(1234.5, 4.0)).max()
    assert not fluctuation(np.zeros_like(steady)).any()


def test_block_boundaries_do_not_change_results(rng):
    y = rng.standard_normal(40 * SAMPLE_RATE).astype(np.float32)
    expected = fluctuation(y)
    assert expected.shape == (5, FLUCTUATION_SIZE)
    for n_parts in (7, 400):
        stream = FluctuationStream(SAMPLE_RATE)
        for part in np.array_split(y, n_parts):
            stream.add(part)
        np.testing.assert_array_equal(stream.finish(), expected)


def test_part_has_same_patterns_as_whole(rng):
    y = rng.standard_normal(40 * SAMPLE_RATE).astype(np.float32)
    whole, step = fluctuation(y), 256 * 512  # samples from one pattern to the next
    np.testing.assert_array_equal(fluctuation(y[2 * step :]), whole[2:])


@pytest.mark.parametrize("n_samples", [1, 2047, 2048, 30_000, 11 * SAMPLE_RATE])
def test_sound_shorter_than_block_has_one_pattern(rng, n_samples):
    found = fluctuation(rng.standard_normal(n_samples).astype(np.float32))
    assert found.shape == (1, FLUCTUATION_SIZE)
    assert np.isfinite(found).all()


def test_short_sound_resembles_longer_one():
    short, long = (fluctuation(trembling(800, 4.0, n)).mean(axis=0, dtype=np.float64) for n in (8.0, 40.0))
    assert np.corrcoef(short, long)[0, 1] > 0.9


def test_rejects_low_sample_rate():
    with pytest.raises(ValueError, match="sr=4000 must be at least 8000"):
        fluctuation(np.ones(9000, np.float32), 4000)
