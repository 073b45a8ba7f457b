"""Tests of spectral shape: against librosa and NumPy, and sounds whose shape is known."""

import librosa
import numpy as np
import pytest
import scipy.fft

from musicsim.audio import N_SHAPE, SAMPLE_RATE, SHAPE_ROW, spectral_shape
from musicsim.audio.spectral_shape import SHAPE_FRAMES, shape_rows

UPPER = np.triu_indices(N_SHAPE)


def bursts(rng, seconds):
    """Return noise that changes its color and its level four times per second."""
    parts = [
        np.convolve(rng.standard_normal(SAMPLE_RATE // 4), rng.standard_normal(8), "same") * rng.uniform(0.001, 0.2)
        for _ in range(4 * seconds)
    ]
    return np.concatenate(parts).astype(np.float32)


def expected_rows(y):
    """Compute the rows with librosa's mel spectrogram, in float64."""
    power = librosa.feature.melspectrogram(y=y.astype(float), sr=SAMPLE_RATE, n_fft=512, hop_length=256, n_mels=40)
    power = np.maximum(np.maximum(power, 1e-10), power.max() * 1e-8).T
    rows = []
    for start in range(0, len(power), SHAPE_FRAMES):
        block = power[start : start + SHAPE_FRAMES]
        spectra = (block[0:-1:2] + block[1::2]) / 2 if len(block) > 1 else block
        coefficients = scipy.fft.dct(10 * np.log10(spectra), norm="ortho", axis=1)[:, :N_SHAPE]
        n = len(coefficients)
        covariance = np.cov(coefficients.T) if n > 1 else np.zeros((N_SHAPE, N_SHAPE))
        rows.append(np.concatenate([[n], coefficients.mean(axis=0), covariance[UPPER]]))
    return np.array(rows)


# both sides of a spectrum and of a block of 512 frames
@pytest.mark.filterwarnings("ignore:n_fft=512 is too large")
@pytest.mark.parametrize("n_frames", [1, 2, 3, 50, 511, 512, 513, 514, 1025, 2500])
def test_rows_equal_those_of_librosa(rng, n_frames):
    y = bursts(rng, 30)[: (n_frames - 1) * 256 + 100]
    found, expected = spectral_shape(y), expected_rows(y)
    assert found.dtype == np.float32
    assert found.shape == expected.shape == (-(-n_frames // SHAPE_FRAMES), SHAPE_ROW)
    np.testing.assert_array_equal(found[:, 0], expected[:, 0])
    # levels are float32 with values up to 100 dB, and covariances reach 1e4
    np.testing.assert_allclose(found[:, 1 : 1 + N_SHAPE], expected[:, 1 : 1 + N_SHAPE], atol=1e-3)
    np.testing.assert_allclose(found[:, 1 + N_SHAPE :], expected[:, 1 + N_SHAPE :], rtol=1e-4, atol=0.01)


def test_gain_changes_only_mean_level(rng):
    y = bursts(rng, 12)
    quiet, loud = spectral_shape(y), spectral_shape(4 * y)
    # a factor of 4 in each of 40 bands; the gain is a power of 2, so only float32 levels are rounded
    np.testing.assert_allclose(loud[:, 1] - quiet[:, 1], 20 * np.log10(4) * np.sqrt(40), atol=1e-3)
    np.testing.assert_allclose(np.delete(loud, 1, axis=1), np.delete(quiet, 1, axis=1), rtol=1e-3, atol=0.02)


def test_silence_is_one_constant_spectrum():
    found = spectral_shape(np.zeros(2 * SAMPLE_RATE, np.float32))
    assert found[0, 1] == pytest.approx(-100 * np.sqrt(40), rel=1e-6)
    np.testing.assert_allclose(found[0, 2:], 0, atol=1e-3)  # the DCT of -100 dB in float32


def test_huge_levels_do_not_overflow():
    rows = shape_rows(np.full((4, 40), 385.0, np.float32))  # 10 ** 38.5 is beyond float32
    assert np.isfinite(rows).all()
    assert rows[0, 1] == pytest.approx(385 * np.sqrt(40), rel=1e-6)
