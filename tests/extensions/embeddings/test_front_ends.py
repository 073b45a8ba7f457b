"""Tests of the mel spectrograms against librosa, and of patches."""

import librosa
import numpy as np
import pytest

from musicsim.extensions.embeddings.networks import FRONT_ENDS
from tests.extensions.embeddings.text_files import RATE, WINDOW, clap_input, repeat_and_pad

_RNG = np.random.default_rng(0)
SOUND = (0.1 * _RNG.standard_normal(16_000 * 8)).astype(np.float32)


def test_musicnn_equals_librosa():
    power = librosa.feature.melspectrogram(y=SOUND, sr=16_000, n_fft=512, hop_length=256, n_mels=96)
    np.testing.assert_allclose(FRONT_ENDS["musicnn"].spectrogram(SOUND), np.log10(10_000 * power.T + 1), atol=1e-5)


def test_essentia_starts_with_first_sample():
    centered = FRONT_ENDS["musicnn"].spectrogram(SOUND)
    np.testing.assert_allclose(FRONT_ENDS["essentia"].spectrogram(SOUND)[:400], centered[1:401], atol=1e-6)


def test_librosa_equals_librosa():
    power = librosa.feature.melspectrogram(y=SOUND, sr=22_050)
    expected = librosa.power_to_db(power.T, top_db=None)
    np.testing.assert_allclose(FRONT_ENDS["librosa"].spectrogram(SOUND), expected, atol=1e-4)  # 10 log10 in float32


def test_vggish_equals_its_definition():
    filters = librosa.filters.mel(sr=16_000, n_fft=512, n_mels=64, fmin=125, fmax=7_500, htk=True, norm=None).T
    frames = librosa.util.frame(SOUND, frame_length=400, hop_length=160, axis=0)
    spectrum = np.abs(np.fft.rfft(frames * librosa.filters.get_window("hann", 400), 512))
    actual = FRONT_ENDS["vggish"].spectrogram(SOUND)
    # VGGish's triangles are linear in mel, librosa's in Hz: the sums of all bands are close
    np.testing.assert_allclose(actual.sum(axis=1), np.log(spectrum @ filters + 0.01).sum(axis=1), rtol=0.05)
    assert actual.shape == (1 + (len(SOUND) - 400) // 160, 64)


def test_clap_windows_equal_librosa():
    sound = (0.1 * np.random.default_rng(1).standard_normal(25 * RATE)).astype(np.float32)
    patches = FRONT_ENDS["clap"].patches(sound, 1001)
    assert patches.shape == (2, 1001, 64)  # the incomplete third one is dropped
    for number, patch in enumerate(patches):
        expected = clap_input(sound[number * WINDOW : (number + 1) * WINDOW])
        np.testing.assert_allclose(patch, expected, atol=1e-3)


@pytest.mark.parametrize("seconds", [4, 6])
def test_clap_repeats_short_sound(seconds):
    sound = (0.1 * np.random.default_rng(1).standard_normal(seconds * RATE)).astype(np.float32)
    (patch,) = FRONT_ENDS["clap"].patches(sound, 1001, 3)
    np.testing.assert_allclose(patch, clap_input(repeat_and_pad(sound)), atol=1e-3)


def test_clap_of_nothing_is_silence():
    (patch,) = FRONT_ENDS["clap"].patches(SOUND[:0], 1001)
    np.testing.assert_allclose(patch, -100, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in FRONT_ENDS if name != "clap"])
@pytest.mark.parametrize("every", [1, 3])
def test_patches_are_parts_of_spectrogram(name, every):
    front_end = FRONT_ENDS[name]
    whole = front_end.spectrogram(SOUND)
    n_frames = len(whole) // 5
    patches = front_end.patches(SOUND, n_frames, every)
    n_patches = len(whole) // n_frames
    chosen = range(0, n_patches) if every == 1 else range(1, n_patches, 3)
    np.testing.assert_allclose(patches, [whole[i * n_frames : (i + 1) * n_frames] for i in chosen], atol=1e-6)


@pytest.mark.parametrize("n_samples", [0, 1, 3_000])
def test_short_sound_is_padded_with_silence(n_samples):
    front_end = FRONT_ENDS["musicnn"]
    (patch,) = front_end.patches(SOUND[:n_samples], 187, 6)
    assert patch.shape == (187, 96)
    assert not patch[2 + n_samples // 256 :].any()
