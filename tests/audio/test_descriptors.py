"""Tests of descriptors on generated sound with known values."""

from dataclasses import fields

import librosa
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.signal import butter, sosfilt

from musicsim.audio import (
    DESCRIPTORS,
    HARMONY_SIZE,
    KEYS,
    MODES,
    RHYTHM_SIZE,
    SAMPLE_RATE,
    Descriptors,
    describe,
    estimate_key,
    estimate_tempo,
    harmony,
    mfcc,
    rhythm,
)
from musicsim.audio.descriptors import k_weighting, measure_steadiness
from tests.audio.generated import clicks

SCALES = {"major": (0, 2, 4, 5, 7, 9, 11), "minor": (0, 2, 3, 5, 7, 8, 10)}
# tonic, subdominant, dominant, tonic; the dominant of minor is major
CADENCES = {
    "major": ((0, 4, 7), (5, 9, 0), (7, 11, 2), (0, 4, 7)),
    "minor": ((0, 3, 7), (5, 8, 0), (7, 11, 2), (0, 3, 7)),
}


def notes(chords, seconds=1.5, partials=4):
    """Return chords one after another, given as sets of MIDI numbers. Partials fall by 6 dB per octave."""
    t = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    fade = np.minimum(1, 20 * np.minimum(t, seconds - t))
    sounds = [
        fade
        * sum(
            np.sin(2 * np.pi * 440 * 2 ** ((note - 69) / 12) * k * t) / k
            for note in chord
            for k in range(1, partials + 1)
        )
        for chord in chords
    ]
    return (0.05 * np.concatenate(sounds)).astype(np.float32)


def noise(seconds=12.0, level=0.1, seed=0):
    return (level * np.random.default_rng(seed).standard_normal(round(seconds * SAMPLE_RATE))).astype(np.float32)


def heard(y):
    return describe(mfcc(y), harmony(y), rhythm(y))


# --- tempo ------------------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(bpm=st.floats(50, 220), first=st.floats(0, 0.5))
def test_click_tempo_is_within_four_percent_or_octave(bpm, first):
    found = estimate_tempo(rhythm(clicks(bpm, first=first)))
    assert min(abs(found / (bpm * octave) - 1) for octave in (0.5, 1, 2)) < 0.04


@pytest.mark.parametrize("bpm", [80, 93, 105, 121, 137])
def test_common_tempos_are_not_halved_or_doubled(bpm):
    assert estimate_tempo(rhythm(clicks(bpm))) == pytest.approx(bpm, rel=0.04)


@pytest.mark.parametrize("y", [noise(30), notes([(60, 64, 67)], 30), np.zeros(30 * SAMPLE_RATE, np.float32)])
def test_sound_without_beat_has_no_tempo(y):
    assert estimate_tempo(rhythm(y)) is None


@given(npst.arrays(np.float32, RHYTHM_SIZE, elements=st.floats(0, 1, width=32)))
def test_tempo_is_within_histogram_range(values):
    found = estimate_tempo(values / max(values[:48].sum(), 1e-6))
    assert found is None or 29 < found < 465


def test_steadiness_of_known_sounds():
    assert measure_steadiness(rhythm(clicks(120))) > 80
    assert measure_steadiness(rhythm(noise(30))) < 30, "no tempo, as below this value the tempo is unknown"
    # nine of 48 bins, or fewer at the ends of the histogram
    assert measure_steadiness(rhythm(np.zeros(30 * SAMPLE_RATE, np.float32))) == pytest.approx(100 * 9 / 48)


@given(npst.arrays(np.float32, RHYTHM_SIZE, elements=st.floats(0, 1, width=32)))
def test_steadiness_is_a_percentage(values):
    assert 0 <= measure_steadiness(values / max(values[:48].sum(), 1e-6)) <= 100 + 1e-4


def test_every_descriptor_has_a_value_and_a_scale():
    assert {*DESCRIPTORS, "key", "mode"} == {field.name for field in fields(Descriptors)}
    values = heard(clicks(120, seconds=30) + noise(30))
    assert None not in [getattr(values, name) for name in DESCRIPTORS]
    assert all(one.ends[0] < one.ends[1] for one in DESCRIPTORS.values())


# --- key --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tonic", range(12))
def test_key_of_cadence(tonic, mode):
    chords = [[48 + (tonic + note) % 12 + 12 * (k > 0) for k, note in enumerate(c)] for c in CADENCES[mode]]
    assert estimate_key(harmony(notes(chords))) == (KEYS[tonic], mode)


@pytest.mark.parametrize("mode", MODES)
def test_key_of_scale(mode):
    steps = SCALES[mode]
    line = [[62 + step] for step in (0, *steps, 12, *steps[::-1], 0, 7, 0, steps[2], 0)]
    assert estimate_key(harmony(notes(line, 0.8))) == ("D", mode)


@given(npst.arrays(np.float32, 12, elements=st.floats(0, 1, width=32)), st.integers(0, 11))
def test_transposition_shifts_key(classes, steps):
    def key(values):
        return estimate_key(np.concatenate([values, np.zeros(HARMONY_SIZE - 12, np.float32)]))

    # correlations that differ only by rounding are ties, decided differently in another key
    classes = classes + np.linspace(0, 1e-3, 12, dtype=np.float32) ** 2
    (before, mode), (after, same) = key(classes), key(np.roll(classes, steps))
    assert mode == same
    assert before is None or KEYS.index(after) == (KEYS.index(before) + steps) % 12


@pytest.mark.parametrize("seed", range(3))
def test_clicks_and_silence_have_no_key(seed):
    assert estimate_key(harmony(clicks(120, first=0.1 * seed))) == (None, None)
    assert estimate_key(harmony(np.zeros(SAMPLE_RATE, np.float32))) == (None, None)


# --- loudness, brightness, energy ---------------------------------------------------------------------------------


@pytest.mark.parametrize("gain_db", [-20, -6, 6])
def test_gain_changes_only_loudness(gain_db):
    y = notes(((60, 64, 67), (65, 69, 72))) + noise(3, 0.01)
    plain, moved = heard(y), heard((y * 10 ** (gain_db / 20)).astype(np.float32))
    assert moved.loudness - plain.loudness == pytest.approx(gain_db, abs=0.01)
    assert moved.brightness == pytest.approx(plain.brightness, rel=1e-3)
    assert moved.energy == pytest.approx(plain.energy, rel=1e-2)
    assert (moved.key, moved.mode, moved.tempo) == (plain.key, plain.mode, plain.tempo)


def test_loudness_weighting_follows_standard():
    """In BS.1770-4, a sine of 997 Hz gains 0.691 dB, which the offset removes. Low notes count less, high ones more."""
    at = 10 * np.log10(k_weighting(np.array([100.0, 997.0, 5000.0, 10000.0])))
    np.testing.assert_allclose(at, [-1.1, 0.691, 4.0, 4.0], atol=0.1)


def test_loudness_of_noise_matches_its_power():
    """The levels of noise are averaged in decibels, which loses 1 to 3 dB. The weighting adds 3."""
    for level in (0.01, 0.1):
        expected = 20 * np.log10(level)
        assert describe(mfcc(noise(level=level))).loudness == pytest.approx(expected + 2, abs=1.5)


def test_silence_at_ends_does_not_count():
    y = notes(((60, 64, 67), (65, 69, 72)) * 3) + noise(9, 1e-3)
    ends = np.zeros(5 * SAMPLE_RATE, np.float32)
    plain, padded = describe(mfcc(y)), describe(mfcc(np.concatenate([ends, y, ends])))
    assert padded.loudness == pytest.approx(plain.loudness, abs=0.3)
    assert padded.brightness == pytest.approx(plain.brightness, rel=0.05)
    assert padded.energy == pytest.approx(plain.energy, rel=0.1)


def test_silence_has_no_descriptors():
    assert describe(mfcc(np.zeros(SAMPLE_RATE, np.float32))) == Descriptors()


def test_brightness_approximates_spectral_centroid():
    """Filtered noise has a smooth spectrum, so 13 of 40 coefficients keep nearly all of it."""
    for hz in (800, 2000, 5000):
        y = sosfilt(butter(2, hz, fs=SAMPLE_RATE, output="sos"), noise()).astype(np.float32)
        spectrum = np.abs(librosa.stft(y, n_fft=512, hop_length=256)).mean(axis=1, keepdims=True)
        expected = librosa.feature.spectral_centroid(S=spectrum, sr=SAMPLE_RATE)[0, 0]
        assert describe(mfcc(y)).brightness == pytest.approx(expected, rel=0.15)


def test_attacks_have_more_energy_than_sustained_notes():
    held, struck = notes([(60, 64, 67)], 12), notes([(60, 64, 67)] * 48, 0.25)
    assert describe(mfcc(struck)).energy > 2 * describe(mfcc(held)).energy


@settings(max_examples=20)
@given(npst.arrays(np.float32, (50, 13), elements=st.floats(-200, 200, width=32)), st.integers(1, 5))
def test_any_frames_give_descriptors_in_range(frames, times):
    found = describe(np.tile(frames, (times, 1)))
    assert (found.loudness is None) == (found.brightness is None) == (found.energy is None)
    if found.loudness is not None:
        assert found.loudness >= -70.5
        assert 80 < found.brightness < SAMPLE_RATE / 2
        assert found.energy >= 0


def test_blocks_of_long_song_join_seamlessly():
    y = notes(((60, 64, 67), (65, 69, 72)) * 20)
    frames = mfcc(y)
    assert len(frames) > 4096
    whole, rolled = describe(frames), describe(np.roll(frames, 35 * 40, axis=0))
    assert whole.brightness == pytest.approx(rolled.brightness, rel=1e-6)
    assert whole.energy == pytest.approx(rolled.energy, rel=1e-2)  # one rise less, or one more


@pytest.mark.parametrize("shape", [(10, 12), (130,)])
def test_rejects_arrays_of_wrong_shape(shape):
    with pytest.raises(ValueError, match="shape"):
        describe(np.zeros(shape, np.float32))
    with pytest.raises(ValueError, match="shape"):
        estimate_tempo(np.zeros(7, np.float32))
    with pytest.raises(ValueError, match="shape"):
        estimate_key(np.zeros(7, np.float32))
