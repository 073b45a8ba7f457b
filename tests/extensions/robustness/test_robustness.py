"""Changes of sound, and what a search for the changed sound finds."""

import json

import numpy as np
import pytest

from musicsim.errors import ModelError
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.explorer.trials.rates import estimate_rate
from musicsim.extensions.robustness import cli
from musicsim.extensions.robustness.changes import CHANGES, RATE, UNCHANGED, add_noise, analyze_changes, cut_middle
from musicsim.extensions.robustness.measuring import (
    ChangeResult,
    QueryResult,
    Robustness,
    measure_robustness,
    search_changed,
    share_kept,
)
from musicsim.progress import Canceled
from tests.command import run
from tests.progress import cancel_when


def test_noise_has_the_stated_level():
    y = np.sin(np.arange(RATE, dtype=np.float32))
    noise = add_noise(y, 20) - y
    assert 10 * np.log10(np.mean(y**2) / np.mean(noise**2)) == pytest.approx(20, abs=0.1)


@pytest.mark.parametrize(("n", "start"), [(4 * RATE, RATE), (RATE, 0)])
def test_middle_is_cut(n, start):
    y = np.arange(n, dtype=np.float32)
    np.testing.assert_array_equal(cut_middle(y, 2.0), y[start : start + 2 * RATE])


@pytest.mark.long
def test_pitch_and_tempo_change_as_named():
    y = np.sin(2 * np.pi * 440 * np.arange(2 * RATE, dtype=np.float32) / RATE)

    def frequency(sound):
        spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound))))
        return np.argmax(spectrum) * RATE / len(sound)

    assert frequency(CHANGES["a semitone up"](y)) == pytest.approx(440 * 2 ** (1 / 12), rel=0.005)
    faster = CHANGES["10% faster"](y)
    assert len(faster) == pytest.approx(len(y) / 1.1, rel=0.01)
    assert frequency(faster) == pytest.approx(440, rel=0.005)


def test_song_is_found_by_its_changed_sound(tiny_library):
    song, snapshot = tiny_library.songs()[0], take_snapshot(tiny_library)
    sounds = analyze_changes(song.path)
    assert set(CHANGES) < set(sounds)
    found = {name: search_changed(snapshot, sound, song) for name, sound in sounds.items()}
    assert all(found[name].is_first for name in (UNCHANGED, "mp3 128 kbit/s", "gain -12 dB"))
    assert all(song.id not in one.nearest for one in found.values())


def test_share_kept_counts_common_songs():
    assert share_kept(QueryResult(True, (1, 2, 3, 4)), QueryResult(True, (4, 3, 9, 8))) == 0.5
    assert share_kept(QueryResult(True, ()), QueryResult(True, ())) == 0.0


@pytest.mark.long
def test_measurement_leaves_out_unreadable_songs(tiny_library, own_music):
    songs = tiny_library.songs()
    songs[0].path.unlink()
    measured = measure_robustness(take_snapshot(tiny_library), len(songs))
    assert measured.n_left_out == 1
    (plain,) = (one for one in measured.results if one.change == UNCHANGED)
    assert (plain.kept, plain.kept_low, plain.kept_high, plain.found.n) == (1.0, 1.0, 1.0, len(songs) - 1)
    for one in measured.results:
        assert 0 <= one.kept_low <= one.kept <= one.kept_high <= 1
    for song in songs[1:]:
        song.path.unlink()
    with pytest.raises(ModelError, match="fewer than two songs can be read"):
        measure_robustness(take_snapshot(tiny_library), 3)


def test_measurement_can_be_canceled(tiny_library):
    with pytest.raises(Canceled):
        measure_robustness(take_snapshot(tiny_library), 2, progress=cancel_when(lambda *_: True))


@pytest.mark.long
def test_command_prints_each_change(tiny_library):
    out, _ = run("evaluate", "--robustness", 2, "--json", library=tiny_library.folder)
    (measured,) = json.loads(out)["models"]
    assert {one["change"] for one in measured["results"]} > set(CHANGES)
    out, _ = run("evaluate", "--robustness", 2, library=tiny_library.folder)
    assert "mp3 64 kbit/s" in out
    assert "2 songs, with 95% intervals" in " ".join(out.split())


@pytest.mark.parametrize("names", [[], ["Codewords"], ["Sound", "Codewords"]])
def test_command_measures_each_model(tiny_library, monkeypatch, names):
    def measure(snapshot, n, *, progress):
        return Robustness((ChangeResult("noise", estimate_rate(0.5, n), 0.4, 0.3, 0.5),), 0)

    monkeypatch.setattr(cli, "measure_robustness", measure)
    asked = ("evaluate", "--robustness", 2, *(part for name in names for part in ("--model", name)))
    out, _ = run(*asked, "--json", library=tiny_library.folder)
    assert [one["model"] for one in json.loads(out)["models"]] == (names or ["Sound"])
    out, _ = run(*asked, library=tiny_library.folder)
    assert all(name in out for name in names)
    assert out.count("2 songs, with 95% intervals") == max(1, len(names))


def test_unknown_model_is_named(tiny_library):
    _, err = run("evaluate", "--robustness", 2, "--model", "none", library=tiny_library.folder, expect=1)
    assert "does not have a model 'none'" in err


@pytest.mark.parametrize(
    "other", [("--against", "Sound"), ("--split", "test"), ("--search-speed",), ("--truth", "genre")]
)
def test_command_rejects_options_that_it_would_ignore(tiny_library, other):
    _, err = run("evaluate", "--robustness", 2, *other, library=tiny_library.folder, expect=2)
    assert "can be combined only with --model and --json" in " ".join(err.split())
