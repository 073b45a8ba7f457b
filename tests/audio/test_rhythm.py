"""Tests of rhythm on clicks of known tempo."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsim.audio import RHYTHM_SIZE, SAMPLE_RATE, TEMPOS, rhythm
from musicsim.audio.features import N_MELS, LevelStream
from musicsim.audio.rhythm import N_BANDS, RhythmStream
from tests.audio.generated import clicks


def tempos(r):
    return r[: len(TEMPOS)]


def bin_of(bpm):
    return int(np.argmin(np.abs(np.log2(TEMPOS / bpm))))


@pytest.mark.parametrize("bpm", [30, 40, 60, 75, 90, 100, 120, 133, 150, 180, 240, 300, 400])
def test_even_pulse_peaks_at_its_tempo(bpm):
    found = tempos(rhythm(clicks(bpm)))
    assert abs(int(np.argmax(found)) - bin_of(bpm)) <= 1
    # but not at half or double the tempo, although the clicks repeat there, too
    near = slice(max(bin_of(bpm) - 1, 0), bin_of(bpm) + 2)
    assert found[near].sum() > 0.8


def test_accented_beats_add_half_tempo():
    even = tempos(rhythm(clicks(140)))
    accented = tempos(rhythm(clicks(140, every=2) + clicks(140, level=0.02)))
    half = slice(bin_of(70) - 1, bin_of(70) + 2)
    assert accented[half].sum() > even[half].sum() + 0.05
    assert accented[half].sum() + accented[bin_of(140) - 1 : bin_of(140) + 2].sum() > 0.8


def test_pulses_separate_tempos_by_band():
    """A low drum beats 60 times per minute, a high one 240 times."""
    t = np.arange(round(0.08 * SAMPLE_RATE)) / SAMPLE_RATE

    def beats(bpm, hz, seconds=40):
        y = np.zeros(seconds * SAMPLE_RATE)
        y[(np.arange(0.1, seconds - 1, 60 / bpm) * SAMPLE_RATE).astype(int)] = 1
        return np.convolve(y, np.sin(2 * np.pi * hz * t) * np.hanning(len(t)))[: len(y)]

    y = beats(60, 120) + beats(240, 7000) + 1e-3 * np.random.default_rng(1).standard_normal(40 * SAMPLE_RATE)
    pulses = rhythm(y.astype(np.float32))[len(TEMPOS) :].reshape(N_BANDS, -1)
    slow, fast = bin_of(60), bin_of(240)
    assert pulses[0, slow] > 5 * pulses[-1, slow]
    assert int(np.argmax(pulses[-1])) == fast


def test_loudness_changes_little():
    # noise of 1e-4 is above the floor of 80 dB in both
    np.testing.assert_allclose(rhythm(clicks(100)), rhythm(0.1 * clicks(100)), atol=1e-3)


@pytest.mark.parametrize("sr", [8000, 16000, 44100, 48000])
def test_sample_rate_does_not_change_tempo(sr):
    assert abs(int(np.argmax(tempos(rhythm(clicks(100, sr=sr), sr)))) - bin_of(100)) <= 1


def test_offset_of_first_beat_changes_little():
    np.testing.assert_allclose(tempos(rhythm(clicks(90, first=0.4))), tempos(rhythm(clicks(90))), atol=0.05)


@pytest.mark.parametrize("n_samples", [1, 500, 2048, 256 * 1023, 256 * 1024, 256 * 1025])
@pytest.mark.parametrize("kind", ["silence", "noise", "constant"])
def test_any_sound_gives_two_normalized_histograms(kind, n_samples):
    rng = np.random.default_rng(n_samples)
    y = {"silence": np.zeros, "noise": rng.standard_normal, "constant": np.ones}[kind](n_samples)
    found = rhythm(y.astype(np.float32))
    assert found.shape == (RHYTHM_SIZE,)
    assert found.dtype == np.float32
    assert (found >= 0).all()
    assert [tempos(found).sum(), found[len(TEMPOS) :].sum()] == pytest.approx([1, 1], abs=1e-6)  # float32 sums


def test_sound_without_onsets_has_uniform_tempos():
    t = np.arange(20 * SAMPLE_RATE) / SAMPLE_RATE
    for y in (np.zeros(20 * SAMPLE_RATE), 0.3 * np.sin(2 * np.pi * 441 * t)):
        np.testing.assert_allclose(tempos(rhythm(y)), 1 / 48, rtol=1e-6)


def test_noise_has_no_tempo():
    found = tempos(rhythm(np.random.default_rng(0).standard_normal(60 * SAMPLE_RATE)))
    assert found.max() < 0.15


def test_tempo_of_a_short_sound():
    assert abs(int(np.argmax(tempos(rhythm(clicks(120, seconds=5))))) - bin_of(120)) <= 1


@given(cuts=st.lists(st.integers(0, 4000), max_size=8), n_frames=st.integers(1, 4000))
@settings(max_examples=20)
def test_block_boundaries_do_not_change_results(cuts, n_frames):
    levels = np.random.default_rng(n_frames).uniform(-80, 0, (n_frames, N_MELS)).astype(np.float32)
    whole, stream = RhythmStream(SAMPLE_RATE), RhythmStream(SAMPLE_RATE)
    whole.add(levels)
    for part in np.split(levels, sorted(min(cut, n_frames) for cut in cuts)):
        stream.add(part)
    # products of other shapes round differently in float32
    np.testing.assert_allclose(stream.finish(), whole.finish(), atol=1e-6)


def test_rhythm_uses_mfcc_levels():
    """The floor is that of the song, not of a block: a loud end hides soft sound before it."""
    y = np.concatenate([1e-5 * clicks(150, 15), clicks(90, 15)])
    levels, stream = LevelStream(SAMPLE_RATE), RhythmStream(SAMPLE_RATE)
    every = np.concatenate([b.copy() for part in (levels.add(y), levels.finish()) for b in part])
    stream.add(np.maximum(every, every.max() - np.float32(80)))
    found = rhythm(y)
    np.testing.assert_allclose(found, stream.finish(), atol=1e-6)
    assert tempos(found)[bin_of(150)] < 0.1


def test_rejects_bad_input():
    with pytest.raises(ValueError, match="sr=4000 must be at least 8000"):
        rhythm(np.zeros(100), 4000)
    with pytest.raises(ValueError, match="must be 1-D"):
        rhythm(np.zeros((100, 2)))
