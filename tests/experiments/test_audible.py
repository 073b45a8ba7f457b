"""The experiment on what can be heard: its measures against closed forms."""

import numpy as np
import pytest

from experiments import audible
from musicsim.audio import SAMPLE_RATE, estimate_key, estimate_tempo, harmony, rhythm
from musicsim.demo.collection import plan_collection
from musicsim.demo.styles import SCALES


@pytest.mark.parametrize(
    ("found", "true", "score"),
    [
        (("A", "minor"), ("A", "minor"), 1.0),
        (("G", "major"), ("C", "major"), 0.5),
        (("F", "major"), ("C", "major"), 0.5),
        (("A", "minor"), ("C", "major"), 0.3),
        (("C", "major"), ("A", "minor"), 0.3),
        (("C", "minor"), ("C", "major"), 0.2),
        (("D", "major"), ("C", "major"), 0.0),
        (("Eb", "minor"), ("C", "major"), 0.0),
        ((None, None), ("C", "major"), 0.0),
    ],
)
def test_keys_are_scored_like_mirex(found, true, score):
    assert audible.key_score(found, true) == score


@pytest.mark.parametrize(
    ("found", "right", "octave"),
    [(124.0, True, True), (125.0, False, False), (61.0, False, True), (None, False, False)],
)
def test_tempo_tolerance_is_four_percent(found, right, octave):
    assert audible.tempo_is_right(found, 120.0, (1.0,)) == right
    assert audible.tempo_is_right(found, 120.0) == octave


def test_full_scale_sine_has_standard_loudness():
    """BS.1770-4: 997 Hz in one channel has -3.01 LUFS; silence around it does not count."""
    t = np.arange(5 * SAMPLE_RATE) / SAMPLE_RATE
    y = np.sin(2 * np.pi * 997 * t)
    assert audible.loudness_of_samples(y) == pytest.approx(-3.01, abs=0.02)
    padded = np.concatenate([y, np.zeros(5 * SAMPLE_RATE)])
    assert audible.loudness_of_samples(padded) == pytest.approx(-3.01, abs=0.3)


def test_synthetic_audio_has_stated_tempo_and_key():
    assert audible.tempo_is_right(estimate_tempo(rhythm(audible.clicks(100.0))), 100.0)
    assert estimate_key(harmony(audible.cadence(4, 1, 48))) == ("E", "minor")


def test_rivals_find_key_of_own_profile():
    for profiles in audible.RIVALS.values():
        for mode, profile in zip(("major", "minor"), profiles, strict=True):
            assert audible.key_by(profiles)(np.roll(profile, 9)) == ("A", mode)


def test_demo_songs_have_scale_and_key():
    plans = plan_collection(seed=0)[:12]
    assert {audible.draw_scale(plan) for plan in plans} <= set(SCALES)
    assert all(audible.key_of_plan(plan)[1] in ("major", "minor") for plan in plans)
