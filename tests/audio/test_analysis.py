"""Tests of one-pass analysis: the same numbers as the plain functions for any length, and the most typical part."""

import hashlib
import io

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsim.audio import AudioDecodeError, analyze_sound, decode, fluctuation, harmony, mfcc, rhythm, spectral_shape
from musicsim.audio.analysis import Outline
from musicsim.audio.features import LevelStream
from tests.shared import RECORDINGS, needs_recordings

SR = 22050


def wav(samples, rate=SR, **options):
    target = io.BytesIO()
    soundfile.write(target, samples, rate, **({"format": "WAV", "subtype": "FLOAT"} | options))
    return target.getvalue()


def melody(seconds, seed=0, rate=SR):
    """Return a melody of decaying tones, three per second, with one timbre throughout."""
    rng = np.random.default_rng(seed)
    t = np.arange(rate // 3) / rate
    tones = [
        sum(np.sin(2 * np.pi * 220 * 2 ** (step / 12) * k * t) / k for k in range(1, 6)) * np.exp(-6 * t)
        for step in rng.integers(0, 12, seconds * 3)
    ]
    return (0.1 * np.concatenate(tones)).astype(np.float32)


def assert_same_as_plain(source, sound):
    decoded = decode(source)
    expected = mfcc(decoded.samples).astype(np.float16)
    # bits, not values, because the hash is computed from them
    np.testing.assert_array_equal(sound.mfcc.view(np.uint16), expected.view(np.uint16))
    plain = Outline()
    plain.add(decoded.samples)
    np.testing.assert_array_equal(sound.outline, plain.finish())
    assert (sound.duration_s, sound.expected_s, sound.notes) == (decoded.duration_s, decoded.expected_s, decoded.notes)
    assert sound.n_frames == len(expected)
    assert sound.loudest == np.abs(decoded.samples).max()
    # 1e-6: squares are summed in float32 over 8,192 samples at a time
    assert sound.rms == pytest.approx(np.sqrt(np.mean(decoded.samples.astype(np.float64) ** 2)), rel=1e-6)
    np.testing.assert_array_equal(sound.fluctuation, fluctuation(decoded.samples))
    np.testing.assert_array_equal(sound.spectral_shape, spectral_shape(decoded.samples))
    assert sound.sound_hash == hashlib.blake2b(expected.tobytes(), digest_size=16).hexdigest()


# --- the same numbers ---


@needs_recordings
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda p: p.name)
def test_recordings_match_plain_functions(path):
    assert_same_as_plain(path, analyze_sound(path))


# one sample, and both sides of a frame, a block of 256 frames and 2,048 frames
@pytest.mark.parametrize("n_samples", [1, 255, 256, 257, 2048, 256 * 256 - 1, 256 * 256, 256 * 256 + 1, 2048 * 256 + 5])
def test_any_length_matches_plain_functions(n_samples):
    data = wav(0.3 * np.random.default_rng(n_samples).standard_normal(n_samples))
    assert_same_as_plain(data, analyze_sound(data))


def test_levels_on_disk_give_same_results(monkeypatch):
    data = wav(melody(20))
    expected = analyze_sound(data)
    monkeypatch.setattr("musicsim.audio.analysis.IN_MEMORY", 1000)
    sound = analyze_sound(data)
    assert sound.sound_hash == expected.sound_hash
    np.testing.assert_array_equal(sound.mfcc, expected.mfcc)


def test_loud_end_sets_floor_of_quiet_beginning():
    y = np.concatenate([1e-4 * melody(10), melody(10, 1)])
    data = wav(y)
    assert_same_as_plain(data, analyze_sound(data))
    # the floor of a song as quiet as its beginning would be 80 dB lower
    assert np.abs(analyze_sound(data).mfcc[:800] - analyze_sound(wav(y[: 10 * SR])).mfcc[:800]).max() > 20


def test_opposite_channels_fall_back_to_left_channel():
    y = melody(5)
    sound = analyze_sound(wav(np.stack([y, -y], axis=1)))
    assert sound.notes == ("the channels cancel each other out: only the left channel was used",)
    assert sound.sound_hash == analyze_sound(wav(y)).sound_hash
    assert sound.n_frames == 1 + len(y) // 256


def test_analysis_uses_requested_sample_rate():
    data = wav(melody(3))
    sound = analyze_sound(data, sr=16000)
    decoded = decode(data, sr=16000)
    np.testing.assert_array_equal(sound.mfcc, mfcc(decoded.samples, 16000).astype(np.float16))
    assert sound.duration_s == pytest.approx(3, abs=1e-3)


def test_silence_has_zero_level():
    sound = analyze_sound(wav(np.zeros(SR * 40)))
    assert (sound.loudest, sound.rms, sound.typical_s) == (0.0, 0.0, 0.0)
    np.testing.assert_array_equal(sound.outline, np.zeros(400))
    assert np.isfinite(sound.mfcc).all()


@given(cuts=st.lists(st.integers(0, 200_000), max_size=12), n_samples=st.integers(1, 200_000))
@settings(max_examples=25)
def test_block_boundaries_do_not_change_results(cuts, n_samples):
    y = np.random.default_rng(n_samples).standard_normal(n_samples).astype(np.float32)
    outline, stream = Outline(), LevelStream(SR)
    levels = []
    for part in np.split(y, sorted(min(cut, n_samples) for cut in cuts)):
        outline.add(part)
        levels += [block.copy() for block in stream.add(part)]
    levels += [block.copy() for block in stream.finish()]
    whole = LevelStream(SR)
    expected = [block.copy() for blocks in (whole.add(y), whole.finish()) for block in blocks]
    np.testing.assert_array_equal(np.concatenate(levels), np.concatenate(expected))
    assert stream.loudest == whole.loudest
    plain = Outline()
    plain.add(y)
    np.testing.assert_array_equal(outline.finish(), plain.finish())


# --- harmony and rhythm ---


def test_harmony_and_rhythm_match_plain_functions():
    # longer than a batch of samples and a block of levels
    data = wav(melody(60))
    sound, samples = analyze_sound(data, aspects=True), decode(data).samples
    np.testing.assert_array_equal(sound.harmony, harmony(samples))
    # levels come in other blocks, so products round differently
    np.testing.assert_allclose(sound.rhythm, rhythm(samples), atol=1e-6)


def test_aspects_are_optional_and_change_nothing_else():
    data = wav(melody(20))
    plain, more = analyze_sound(data), analyze_sound(data, aspects=True)
    assert plain.harmony is None
    assert plain.rhythm is None
    assert more.sound_hash == plain.sound_hash
    assert more.typical_s == plain.typical_s


def test_aspects_of_opposite_channels_use_left_channel():
    y = melody(5)
    sound = analyze_sound(wav(np.stack([y, -y], axis=1)), aspects=True)
    np.testing.assert_array_equal(sound.harmony, analyze_sound(wav(y), aspects=True).harmony)


def test_aspects_reject_low_sample_rate():
    with pytest.raises(ValueError, match="sr=4000 must be at least 8000"):
        analyze_sound(wav(melody(2)), sr=4000, aspects=True)


# --- files ---


def test_coefficients_are_written_as_plain_npy_file(tmp_path):
    data = wav(melody(30))
    expected = analyze_sound(data)
    sound = analyze_sound(data, frames_to=tmp_path / "frames.tmp")
    assert sound.mfcc is None
    assert sound.sound_hash == expected.sound_hash
    assert [p.name for p in tmp_path.iterdir()] == ["frames.tmp"]
    with (tmp_path / "frames.tmp").open("rb") as file:
        assert np.lib.format.read_magic(file) == (1, 0)
        file.seek(0)
        np.testing.assert_array_equal(np.load(file), expected.mfcc)
    mapped = np.lib.format.open_memmap(tmp_path / "frames.tmp", mode="r")
    assert mapped.dtype == np.float16
    np.testing.assert_array_equal(mapped, expected.mfcc)


def test_unreadable_file_leaves_no_output(tmp_path):
    (tmp_path / "words.mp3").write_text("only words " * 500)
    with pytest.raises(AudioDecodeError, match=r"words\.mp3"):
        analyze_sound(tmp_path / "words.mp3", frames_to=tmp_path / "frames.tmp")
    assert [p.name for p in tmp_path.iterdir()] == ["words.mp3"]


def test_full_disk_leaves_no_output(tmp_path, monkeypatch):
    def full(file, header):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array_header_1_0", full)
    # not reported as damage of the file
    with pytest.raises(OSError, match="No space left"):
        analyze_sound(wav(melody(2)), frames_to=tmp_path / "frames.tmp")
    assert list(tmp_path.iterdir()) == []


def test_errors_contain_given_source_name():
    with pytest.raises(AudioDecodeError, match="upload 7"):
        analyze_sound(b"no sound", name="upload 7")
    with pytest.raises(ValueError, match="sr=0"):
        analyze_sound(b"no sound", sr=0)


# --- the most typical part ---


def plain_typical(frames, n_samples):
    """Search window by window, from the definition."""
    second = np.arange(len(frames)) * 256 // SR
    rows = []
    for start in range(n_samples // SR - 30 + 1):
        window = frames[(second >= start) & (second < start + 30)].astype(np.float64)
        rows.append(np.concatenate([window.mean(axis=0), np.log(np.maximum(window.std(axis=0), 0.25))]))
    rows = np.array(rows)
    away = (rows - np.median(rows, axis=0)) / np.maximum(rows.std(axis=0), 0.01)
    return float(np.argmin(np.round(np.linalg.norm(away, axis=1), 6)))


@pytest.mark.parametrize("seed", range(4))
def test_typical_part_matches_plain_loop(seed):
    rng = np.random.default_rng(seed)
    parts = [melody(int(s), seed) * rng.uniform(0.1, 1) for s in rng.integers(5, 25, 4)]
    y = np.concatenate([*parts, 0.05 * rng.standard_normal(SR * 10 + 777)]).astype(np.float32)
    sound = analyze_sound(wav(y))
    assert sound.typical_s == plain_typical(sound.mfcc, len(y))


@pytest.mark.parametrize("seed", range(4))
def test_typical_part_avoids_intro_and_silence(seed):
    noise = 0.2 * np.random.default_rng(seed).standard_normal(10 * SR)
    y = np.concatenate([noise, melody(60, seed), np.zeros(20 * SR)]).astype(np.float32)
    assert 10 <= analyze_sound(wav(y)).typical_s <= 40


def test_typical_part_avoids_applause():
    rng = np.random.default_rng(5)
    claps = 0.3 * rng.standard_normal(15 * SR) * (rng.random(15 * SR) < 0.02)
    y = np.concatenate([claps, melody(70, 5), claps]).astype(np.float32)
    assert 15 <= analyze_sound(wav(y)).typical_s <= 55


@pytest.mark.parametrize("seconds", [1, 29, 30])
def test_typical_part_of_short_song_is_its_beginning(seconds):
    assert analyze_sound(wav(melody(seconds))).typical_s == 0.0
