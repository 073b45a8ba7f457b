"""Changes of sound, and the measures of the experiment on robustness."""

import numpy as np
import pytest

from experiments.robustness import CHANGES, RATE, UNCHANGED, Found, add_noise, changed_sounds, cut_middle, search, table

pytestmark = pytest.mark.long


def test_noise_has_the_stated_level():
    y = np.sin(np.arange(RATE, dtype=np.float32))
    noise = add_noise(y, 20) - y
    assert 10 * np.log10(np.mean(y**2) / np.mean(noise**2)) == pytest.approx(20, abs=0.1)


@pytest.mark.parametrize(("n", "start"), [(4 * RATE, RATE), (RATE, 0)])
def test_middle_is_cut(n, start):
    y = np.arange(n, dtype=np.float32)
    np.testing.assert_array_equal(cut_middle(y, 2.0), y[start : start + 2 * RATE])


def test_pitch_and_tempo_change_as_named():
    y = np.sin(2 * np.pi * 440 * np.arange(2 * RATE, dtype=np.float32) / RATE)

    def frequency(sound):
        spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound))))
        return np.argmax(spectrum) * RATE / len(sound)

    assert frequency(CHANGES["a semitone up"](y)) == pytest.approx(440 * 2 ** (1 / 12), rel=0.005)
    faster = CHANGES["10 % faster"](y)
    assert len(faster) == pytest.approx(len(y) / 1.1, rel=0.01)
    assert frequency(faster) == pytest.approx(440, rel=0.005)


def test_song_is_found_by_its_changed_sound(tiny_library):
    songs = tiny_library.songs()
    labels = {song.id: song.genre for song in songs}
    model = tiny_library.models.active().id
    sounds = changed_sounds(songs[0].path)
    assert set(CHANGES) < set(sounds)
    found = {name: search(tiny_library, model, sound, songs[0], labels) for name, sound in sounds.items()}
    assert all(found[name].is_first for name in (UNCHANGED, "mp3 128 kbit/s", "gain -12 dB"))
    assert found[UNCHANGED].is_relevant[:3] == (True, True, True)
    assert all(songs[0].id not in one.nearest for one in found.values())


def test_row_compares_with_the_unchanged_queries():
    plain = [Found(True, tuple(range(10)), (True,) * 10), Found(True, tuple(range(10)), (True,) * 5 + (False,) * 5)]
    noisy = [Found(False, tuple(range(5, 15)), (False,) + (True,) * 9), plain[1]]
    first, second = table("made", "Sound", {UNCHANGED: plain, "noise": noisy}, ["A", "B"], seed=0)
    assert (first["kept"], first["found"], first["P@1"]) == (1.0, 1.0, 1.0)
    assert (second["kept"], second["found"], second["P@1"], second["P@5"]) == (0.75, 0.5, 0.5, pytest.approx(0.9))
    assert second["difference P@1"].startswith("-0.500")
