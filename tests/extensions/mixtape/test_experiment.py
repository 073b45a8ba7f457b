"""Tests of the experiment on mixing: true beats during a fade, and distances of known fades."""

import numpy as np
import pytest

from experiments import mixing
from musicsim.extensions.mixtape.fades import Fade


def test_beats_during_fade_are_at_its_tempo():
    material = mixing.Material(np.zeros((2, 1), np.float32), tempo=120.0, first_s=0.25)
    fade = Fade(100.0, 4.4, out_s=(10.0, 14.0), in_s=(0.0, 4.0))
    found = mixing.beats_during(material, fade.out_s, fade)
    # beats at 10.25, 10.75, ... 13.75 s are stretched by 1.1
    assert found == pytest.approx(100 + 1.1 * np.arange(0.25, 4, 0.5))


@pytest.mark.long
def test_loops_coincide_only_on_beat():
    rng = np.random.default_rng(0)
    first, second = mixing.drum_loop(120.0, rng), mixing.drum_loop(126.0, rng)
    fade, distance_s = mixing.measure(first, second, 8)
    assert (fade.n_beats, fade.reason) == (8, "")
    assert distance_s < 0.015
    fade, distance_s = mixing.measure(first, second, None)
    assert fade.n_beats == 0
    assert distance_s > 0.02  # with these random starts


@pytest.mark.parametrize(("other", "expected"), [(105, True), (108, False), (200, True), (52, True), (150, False)])
def test_pairs_have_similar_tempos_up_to_octaves(other, expected):
    assert mixing.is_near(100.0, other) == expected
