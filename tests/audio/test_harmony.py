"""Tests of harmony on chords with known notes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsim.audio import HARMONY_SIZE, SAMPLE_RATE, harmony
from musicsim.audio.harmony import HarmonyStream

MAJOR, MINOR = (0, 4, 7), (0, 3, 7)


def notes(midi, seconds=4.0, sr=SAMPLE_RATE, overtones=1, level=0.1):
    """Return sines at MIDI note numbers, where 69 is A = 440 Hz. Fractions are out of tune."""
    t = np.arange(round(seconds * sr)) / sr
    hz = 440.0 * 2.0 ** ((np.asarray(midi, dtype=float) - 69) / 12)
    sines = [np.sin(2 * np.pi * h * f * t) / h for f in hz for h in range(1, overtones + 1)]
    return (level * np.sum(sines, axis=0)).astype(np.float32)


def song(shift=0.0, overtones=4, **options):
    """Return C, F, G and A minor, repeated."""
    chords = [(60, MAJOR), (65, MAJOR), (67, MAJOR), (57, MINOR)] * 4
    parts = [notes([root + i + shift for i in kind], 2.3, overtones=overtones, **options) for root, kind in chords]
    return np.concatenate(parts)


def parts(h):
    return h[:12], h[12:].reshape(12, 12)


@pytest.mark.parametrize("root", range(36, 84, 5))
@pytest.mark.parametrize("kind", [MAJOR, MINOR])
def test_chord_appears_at_its_notes(root, kind):
    classes, pairs = parts(harmony(notes([root + i for i in kind])))
    wanted = sorted((root + i) % 12 for i in kind)
    assert sorted(np.argsort(-classes)[:3]) == wanted
    # a chord only continues with its own notes; a thirtieth is for beats and window effects
    assert classes[wanted].sum() > 0.97
    assert pairs[np.ix_(wanted, wanted)].sum() > 0.94


def test_order_of_chords_is_distinguished():
    C, G = notes([60, 64, 67], 6.0), notes([67, 71, 74], 6.0)
    _, forth = parts(harmony(np.concatenate([C, G])))
    _, back = parts(harmony(np.concatenate([G, C])))
    E, B = 4, 11
    # the one change of chords among 16 pairs of chords
    assert forth[E, B] > 0.003
    assert forth[E, B] > 5 * forth[B, E]
    assert back[B, E] > 5 * back[E, B]


@pytest.mark.parametrize("steps", [1, 3, 6, 11])
def test_transposition_rotates_pitch_classes(steps):
    classes, pairs = parts(harmony(song()))
    shifted, shifted_pairs = parts(harmony(song(steps)))
    # partials of two notes that nearly coincide beat at other rates
    np.testing.assert_allclose(shifted, np.roll(classes, steps), atol=0.08)
    np.testing.assert_allclose(shifted_pairs, np.roll(pairs, (steps, steps), (0, 1)), atol=0.03)


@pytest.mark.long
@pytest.mark.parametrize("shift", [-0.4, -0.2, 0.1, 0.3, 0.45])
def test_detuned_song_is_tuned(shift):
    expected = harmony(song())
    classes, _ = parts(harmony(song(shift)))
    np.testing.assert_allclose(classes, expected[:12], atol=0.08)


def test_loudness_does_not_change_harmony():
    # the softest partial may fall below the threshold for tones
    np.testing.assert_allclose(harmony(song(level=0.001)), harmony(song()), atol=1e-3)


def test_chord_is_recognized_through_noise():
    y = notes([60, 64, 67], 8.0) + 0.03 * np.random.default_rng(0).standard_normal(8 * SAMPLE_RATE)
    classes, _ = parts(harmony(y))
    assert sorted(np.argsort(-classes)[:3]) == [0, 4, 7]


@pytest.mark.long
@pytest.mark.parametrize("sr", [8000, 11025, 16000, 44100, 48000])
def test_sample_rate_changes_little(sr):
    expected = harmony(song())
    found = harmony(song(sr=sr), sr)
    np.testing.assert_allclose(found[:12], expected[:12], atol=0.08)


def test_high_notes_are_not_aliased_into_range():
    classes, _ = parts(harmony(notes([60], 4.0) + 5 * notes([105.4], 4.0)))  # 3.6 kHz, mirrored at 1.9 kHz
    assert classes[0] > 0.9


@pytest.mark.parametrize("n_samples", [1, 500, 8191, 8192, 8193, 131072, 131073])
@pytest.mark.parametrize("kind", ["silence", "noise", "constant"])
def test_any_sound_gives_two_normalized_histograms(kind, n_samples):
    rng = np.random.default_rng(n_samples)
    y = {"silence": np.zeros, "noise": rng.standard_normal, "constant": np.ones}[kind](n_samples)
    found = harmony(y.astype(np.float32))
    assert found.shape == (HARMONY_SIZE,)
    assert found.dtype == np.float32
    assert (found >= 0).all()
    assert [found[:12].sum(), found[12:].sum()] == pytest.approx([1, 1], abs=1e-6)  # float32 sums


def test_silence_gives_uniform_histograms():
    np.testing.assert_allclose(harmony(np.zeros(50_000)), np.r_[np.full(12, 1 / 12), np.full(144, 1 / 144)], rtol=1e-6)


def test_silence_between_chords_does_not_count():
    quiet = np.zeros(4 * SAMPLE_RATE, np.float32)
    C = notes([60, 64, 67], 6.0)
    classes, _ = parts(harmony(np.concatenate([quiet, C, quiet])))
    np.testing.assert_allclose(classes, parts(harmony(C))[0], atol=0.03)


@pytest.mark.long
@given(cuts=st.lists(st.integers(0, 400_000), max_size=8), n_samples=st.integers(1, 400_000))
@settings(max_examples=12)
def test_block_boundaries_do_not_change_results(cuts, n_samples):
    y = song()[:n_samples]
    stream = HarmonyStream(SAMPLE_RATE)
    for part in np.split(y, sorted(min(cut, n_samples) for cut in cuts)):
        stream.add(part)
    np.testing.assert_array_equal(stream.finish(), harmony(y))


def test_rejects_bad_input():
    with pytest.raises(ValueError, match="sr=4000 must be at least 8000"):
        harmony(np.zeros(100), 4000)
    with pytest.raises(ValueError, match="y is empty"):
        harmony(np.zeros(0))
    with pytest.raises(ValueError, match="NaN"):
        harmony(np.full(100, np.nan))
