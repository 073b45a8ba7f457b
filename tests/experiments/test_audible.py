"""The experiment on what can be heard: its measures against closed forms."""

import mutagen.flac
import mutagen.id3
import mutagen.wave
import numpy as np
import pytest
import soundfile

from benchmarks.support.report import Settings
from experiments import audible
from experiments.support.tempo_key_labels import parse_key, read_labels
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


def test_labels_are_read_from_annotations_and_tags(tmp_path):
    """The formats are those of GiantSteps (one file per recording) and of tags in FLAC and WAV files."""
    music, notes = tmp_path / "audio", tmp_path / "annotations" / "tempo"
    music.mkdir()
    notes.mkdir(parents=True)
    for name in ("100.LOFI.flac", "101.LOFI.flac", "tagged.flac", "tagged.wav", "plain.flac"):
        soundfile.write(music / name, audible.clicks(120, 2.0), SAMPLE_RATE)
    (notes / "100.LOFI.bpm").write_text("127.5\n")
    (notes / "101.LOFI.bpm").write_text("0.0")  # GiantSteps marks recordings without a tempo like this
    (notes / "101.LOFI.key").write_text("Eb minor\n")
    flac = mutagen.flac.FLAC(music / "tagged.flac")
    flac["bpm"], flac["initialkey"] = "95", "F#m"
    flac.save()
    wav = mutagen.wave.WAVE(music / "tagged.wav")
    wav.add_tags()
    wav.tags.add(mutagen.id3.TBPM(encoding=3, text="190"))
    wav.tags.add(mutagen.id3.TKEY(encoding=3, text="Gb"))
    wav.save()
    found = {label.path.name: (label.tempo, label.key) for label in read_labels(tmp_path)}
    assert found == {
        "100.LOFI.flac": (127.5, None),
        "101.LOFI.flac": (None, ("Eb", "minor")),
        "tagged.flac": (95.0, ("F#", "minor")),
        "tagged.wav": (190.0, ("F#", "major")),
    }


@pytest.mark.parametrize(
    ("text", "key"),
    [("A", ("A", "major")), ("a minor", ("A", "minor")), ("DM", ("D", "major")), ("Dm", ("D", "minor")), ("H", None),
     ("o", None), ("G# maj", ("Ab", "major")), ("", None)],
)  # fmt: skip
def test_keys_are_parsed_in_usual_notations(text, key):
    assert parse_key(text) == key


def test_labelled_recordings_are_compared_with_librosa(tmp_path):
    for bpm in (100, 125, 150):
        soundfile.write(tmp_path / f"{bpm}.flac", audible.clicks(bpm, 20.0), SAMPLE_RATE)
        (tmp_path / f"{bpm}.bpm").write_text(str(bpm))
    soundfile.write(tmp_path / "chords.flac", audible.cadence(9, 1, 48), SAMPLE_RATE)
    (tmp_path / "chords.key").write_text("A minor")
    rows = list(audible.labelled_rows(Settings(music=tmp_path), print))
    ours, librosas, key = rows[:3]
    assert (ours["songs"], ours["right or octave"]) == (3, 1.0)
    assert (librosas["what"], librosas["songs"]) == ("tempo, librosa", 3)
    assert (key["songs"], key["right"]) == (1, 1.0)
