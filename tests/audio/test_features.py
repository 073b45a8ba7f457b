"""Tests of delta-MFCC against librosa, on closed forms and on every recording of the shared data folder."""

import itertools
import warnings

import librosa
import numpy as np
import pytest
import scipy.fft
import scipy.signal
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsim.audio import AudioTooShortError, delta_mfcc, derivative_blocks, derivatives, derivatives_at, load, mfcc
from musicsim.audio.analysis import Outline
from musicsim.audio.features import dct_basis, mel_basis
from musicsim.demo import plan_collection, write_song
from tests.shared import RECORDINGS, needs_recordings

# The contract. Measured differences stay below 3e-4: float32 rounding of levels near 100 dB in both products.
ATOL = 1e-3


def librosa_twin(y, sr=22050):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # n_fft longer than the signal
        m = librosa.feature.mfcc(y=y, sr=sr, n_mfcc=13, n_fft=512, hop_length=256, n_mels=40)
    return np.concatenate([m, librosa.feature.delta(m), librosa.feature.delta(m, order=2)]).T


def _time(seconds=2.0):
    return np.arange(round(seconds * 22050)) / 22050


def _hard_signals():
    rng, t = np.random.default_rng(0), _time()
    noise = rng.standard_normal(len(t))
    return {
        "silence": np.zeros(len(t)),
        "noise": 0.3 * noise,
        "very quiet noise": 1e-6 * noise,
        "very quiet tone": 1e-6 * np.sin(2 * np.pi * 440 * t),
        "clipped tone": np.clip(5 * np.sin(2 * np.pi * 100 * t), -1, 1),
        "over full scale": 40 * noise,
        "single impulse": np.eye(1, len(t), 20000)[0],
        "constant": np.full(len(t), 0.5),
        "constant with faint noise": 0.9 + 1e-4 * noise,
        "highest frequency": 0.9 * (-1.0) ** np.arange(len(t)),
        "fade to nothing": np.exp(-20 * t) * noise,
        # float32 spectra are off by more than 1e-3 here
        "bass and a tone 80 dB below": 0.5 * np.sin(2 * np.pi * 60 * t) + 5e-5 * np.sin(2 * np.pi * 9000 * t),
        "half silence": np.where(t < 1, 0.0, 0.2 * noise),
        "first sample only": np.eye(1, len(t), 0)[0],
        "last sample only": np.eye(1, len(t), len(t) - 1)[0],
    }


@pytest.mark.parametrize("name", _hard_signals())
def test_delta_mfcc_equals_librosa_on_hard_signals(name):
    y = _hard_signals()[name].astype(np.float32)
    features = delta_mfcc(y)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, librosa_twin(y), rtol=0, atol=ATOL)


# around one frame, the minimum length, and both sides of one and two blocks of 256 frames
LENGTHS = (2048, 2049, 2303, 2304, 5000, 511 * 256 - 1, 511 * 256, 512 * 256 - 1, 512 * 256, 513 * 256 + 7, 300_000)


@pytest.mark.parametrize("n_samples", LENGTHS)
def test_delta_mfcc_equals_librosa_at_any_length(n_samples):
    y = np.random.default_rng(n_samples).standard_normal(n_samples).astype(np.float32)
    np.testing.assert_allclose(delta_mfcc(y), librosa_twin(y), rtol=0, atol=ATOL)


@pytest.mark.parametrize("n_samples", [1, 100, 255, 256, 257, 511, 512, 1000, 2047])
def test_mfcc_of_fewer_than_nine_frames_equals_librosa(n_samples):
    y = np.random.default_rng(1).standard_normal(n_samples).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        expected = librosa.feature.mfcc(y=y, sr=22050, n_mfcc=13, n_fft=512, hop_length=256, n_mels=40).T
    np.testing.assert_allclose(mfcc(y), expected, rtol=0, atol=ATOL)


@pytest.mark.parametrize("sr", [8000, 16000, 44100])
def test_other_rates_equal_librosa(sr):
    y = np.random.default_rng(2).standard_normal(sr).astype(np.float32)
    np.testing.assert_allclose(delta_mfcc(y, sr), librosa_twin(y, sr), rtol=0, atol=ATOL)


@needs_recordings
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda p: p.name)
def test_delta_mfcc_equals_librosa_on_real_recordings(path):
    y = load(path, duration=40)
    np.testing.assert_allclose(delta_mfcc(y), librosa_twin(y), rtol=0, atol=ATOL)


@pytest.mark.parametrize(
    "plan", plan_collection(n_artists_per_style=1, n_songs_per_artist=1), ids=lambda plan: plan.style
)
def test_delta_mfcc_equals_librosa_on_demo(plan, tmp_path):
    y = load(write_song(plan, tmp_path))
    np.testing.assert_allclose(delta_mfcc(y), librosa_twin(y), rtol=0, atol=ATOL)


def test_strided_and_float64_samples_give_same_features():
    y = np.random.default_rng(3).standard_normal(20000).astype(np.float32)
    both = np.stack([y, y], axis=1)
    np.testing.assert_array_equal(delta_mfcc(both[:, 0]), delta_mfcc(y))
    np.testing.assert_array_equal(delta_mfcc(y.astype(np.float64)), delta_mfcc(y))


def test_silence_gives_constant_rows_and_no_nan():
    features = delta_mfcc(np.zeros(22050, np.float32))
    # all 40 bands are at -100 dB, and the orthonormal DCT puts sqrt(40) times that in the first column
    expected = np.zeros(39)
    expected[0] = -100 * np.sqrt(40)
    # 1e-3: one unit in the last place of 632 is 6e-5, summed over 40 products
    np.testing.assert_allclose(features, np.tile(expected, (87, 1)), atol=1e-3)


@given(gain_db=st.floats(-30, 20), seed=st.integers(0, 100))
@settings(max_examples=25)
def test_gain_changes_only_first_column(gain_db, seed):
    y = (0.1 * np.random.default_rng(seed).standard_normal(4000)).astype(np.float32)
    moved = delta_mfcc((y * 10 ** (gain_db / 20)).astype(np.float32)) - delta_mfcc(y)
    expected = np.zeros(39)
    expected[0] = gain_db * np.sqrt(40)
    # 2e-3: float32 rounding of the samples and of coefficients of some hundred dB, twice
    np.testing.assert_allclose(moved, np.broadcast_to(expected, moved.shape), atol=2e-3)


@given(slope=st.floats(-5, 5), bend=st.floats(-0.5, 0.5), n_frames=st.integers(9, 60), n_columns=st.integers(1, 13))
@settings(max_examples=40)
def test_derivatives_of_parabola_are_exact(slope, bend, n_frames, n_columns):
    t = np.arange(n_frames, dtype=np.float64)[:, None] - n_frames / 2
    curve = np.repeat(slope * t + bend * t**2, n_columns, axis=1)
    first, second = np.split(derivatives(curve), 3, axis=1)[1:]
    inner = slice(4, n_frames - 4)  # at the ends, the first order is fitted by a line instead of a parabola
    # 1e-4: results are stored in float32 and reach 35
    np.testing.assert_allclose(first[inner], np.repeat(slope + 2 * bend * t, n_columns, axis=1)[inner], atol=1e-4)
    np.testing.assert_allclose(second, 2 * bend, atol=1e-4)


@pytest.mark.parametrize("sr", [1000, 8000, 11025, 22050, 44100, 96000])
def test_mel_filters_equal_librosa(sr):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # empty filters at low rates
        expected = librosa.filters.mel(sr=sr, n_fft=512, n_mels=40)
    # if a corner coincides with a bin, rounding decides between 0 and 1e-18; all else is equal to the bit
    np.testing.assert_allclose(mel_basis(float(sr)), expected.T, rtol=0, atol=1e-15)


def test_dct_equals_scipy():
    expected = scipy.fft.dct(np.eye(40), axis=1, norm="ortho")
    # one unit in the last place of float32 numbers below 0.25
    np.testing.assert_allclose(dct_basis(), expected[:, :13], rtol=0, atol=1.5e-8)
    np.testing.assert_allclose(dct_basis(25), expected[:, :25], rtol=0, atol=1.5e-8)


@pytest.mark.parametrize("n_frames", [9, 10, 12, 13, 17, 100, 2_050, 8_200])
def test_derivatives_equal_scipy(n_frames):
    frames = 100 * np.random.default_rng(n_frames).standard_normal((n_frames, 13))
    slopes, curvatures = (
        scipy.signal.savgol_filter(frames, 9, polyorder=k, deriv=k, axis=0, mode="interp") for k in (1, 2)
    )
    # rounding of float32 numbers up to 300
    np.testing.assert_allclose(derivatives(frames), np.hstack([frames, slopes, curvatures]), rtol=0, atol=2e-5)


@given(n_frames=st.integers(9, 80), block=st.integers(1, 90))
@settings(max_examples=60)
def test_blockwise_derivatives_equal_full_derivatives(n_frames, block):
    frames = (100 * np.random.default_rng(n_frames).standard_normal((n_frames, 13))).astype(np.float16)
    blocks = list(derivative_blocks(frames, block))
    assert [len(b) for b in blocks[:-1]] == [block] * (len(blocks) - 1)
    assert all(b.dtype == np.float32 for b in blocks)
    # each row is computed from the same nine rows in the same order, so results agree to the bit
    np.testing.assert_array_equal(np.concatenate(blocks), derivatives(frames))


@given(n_frames=st.integers(9, 80), seed=st.integers(0, 99))
@settings(max_examples=60)
def test_derivatives_of_selected_frames_match_full_derivatives(n_frames, seed):
    rng = np.random.default_rng(seed)
    frames = (100 * rng.standard_normal((n_frames, 13))).astype(np.float16)
    rows = rng.integers(n_frames, size=rng.integers(0, 2 * n_frames))
    found = derivatives_at(frames, rows)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, derivatives(frames)[rows])


def test_derivatives_of_memory_mapped_file(tmp_path):
    frames = (100 * np.random.default_rng(0).standard_normal((20_000, 13))).astype(np.float16)
    np.save(tmp_path / "frames.npy", frames)
    mapped = np.load(tmp_path / "frames.npy", mmap_mode="r")
    blocks = list(derivative_blocks(mapped))
    assert [len(b) for b in blocks] == [8192, 8192, 20_000 - 2 * 8192]
    np.testing.assert_array_equal(np.concatenate(blocks), derivatives(frames))


def test_derivative_blocks_reject_bad_input_immediately():
    with pytest.raises(AudioTooShortError, match="8 frames; derivatives need at least 9"):
        derivative_blocks(np.zeros((8, 13), np.float16))
    with pytest.raises(ValueError, match="mfcc must have shape"):
        derivative_blocks(np.zeros(13))
    with pytest.raises(ValueError, match="block=0"):
        derivative_blocks(np.zeros((9, 13)), 0)


def test_too_short_error_names_length_and_minimum():
    with pytest.raises(AudioTooShortError, match=r"0\.093 s long \(8 frames\).*at least 9.*0\.093 s"):
        delta_mfcc(np.ones(2047, np.float32))
    with pytest.raises(AudioTooShortError, match="8 frames; derivatives need at least 9"):
        derivatives(np.zeros((8, 13), np.float32))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.zeros((2, 5000), np.float32), "y must be 1-D"),
        (np.zeros(0, np.float32), "y is empty"),
        (np.zeros(5000, np.int16), "y must be an array of floating-point samples, not int16"),
        ([0.0] * 5000, "y must be an array of floating-point samples, not list"),
        (np.full(5000, np.nan, np.float32), "y contains NaN"),
        (np.array([0.0] * 4999 + [-np.inf]), "y contains NaN"),
        (np.array([np.nan] + [0.0] * 4999), "y contains NaN"),
    ],
)
def test_rejects_bad_samples(y, words):
    with pytest.raises(ValueError, match=words):
        delta_mfcc(y)


@pytest.mark.parametrize("sr", [0, -1, float("nan")])
def test_rejects_bad_sample_rate(sr):
    with pytest.raises(ValueError, match="sr="):
        delta_mfcc(np.zeros(5000, np.float32), sr)


@pytest.mark.parametrize("shape", [(13,), (2, 20, 13)])
def test_derivatives_reject_wrong_shape(shape):
    with pytest.raises(ValueError, match="mfcc must have shape"):
        derivatives(np.zeros(shape))


def peaks(y):
    outline = Outline()
    outline.add(y)
    return outline.finish()


@given(n_samples=st.integers(1, 3000), seed=st.integers(0, 1000))
@settings(max_examples=60)
def test_peaks_match_plain_loop(n_samples, seed):
    y = np.random.default_rng(seed).standard_normal(n_samples).astype(np.float32)
    edges = [i * n_samples // 400 for i in range(401)]
    plain = np.array([np.abs(y[a : max(b, a + 1)]).max() for a, b in itertools.pairwise(edges)])
    np.testing.assert_array_equal(peaks(y), plain / np.abs(plain).max())


@given(n_samples=st.integers(8193, 300_000), seed=st.integers(0, 1000))
@settings(max_examples=20)
def test_peaks_of_long_sounds_start_at_whole_steps(n_samples, seed):
    y = np.random.default_rng(seed).standard_normal(n_samples).astype(np.float32)
    step = 1
    while n_samples > 8192 * step:
        step *= 2
    steps = np.abs(np.pad(y, (0, -n_samples % step))).reshape(-1, step).max(axis=1)
    edges = [i * len(steps) // 400 for i in range(401)]
    plain = np.array([steps[a:b].max() for a, b in itertools.pairwise(edges)])
    np.testing.assert_array_equal(peaks(y), plain / np.abs(y).max())


def test_peaks_of_silence_are_zero():
    np.testing.assert_array_equal(peaks(np.zeros(1000, np.float32)), np.zeros(400))
