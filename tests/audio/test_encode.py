"""Tests of the formats that browsers play, and of copies of other files."""

import io

import av
import numpy as np
import pytest
import soundfile

from musicsim.audio import (
    BROWSER_EXTENSIONS,
    AudioDecodeError,
    decode,
    load,
    media_type,
    plays_in_browser,
    transcode,
    transcode_suffix,
)
from tests.audio.signals import encoded, tone
from tests.shared import FORMATS, needs_formats

REFUSED = {"plum_alac.m4a", "plum_mulaw_8k_mono.wav", "plum_s16_22k_mono.aiff", "plum_wma2.wma"}


def two_tones(seconds=2.0, rate=44100):
    """Return 440 Hz on the left and 880 Hz on the right."""
    t = np.arange(round(seconds * rate)) / rate
    return (0.4 * np.sin(2 * np.pi * np.outer(t, [440, 880]))).astype(np.float32)


def pitches(path):
    with av.open(str(path)) as container:
        frames = [f.to_ndarray() for f in container.decode(audio=0)]
        stream = container.streams.audio[0]
        rate, n_channels = stream.sample_rate, stream.channels
    samples = np.concatenate(frames, axis=1)
    if len(samples) != n_channels:
        samples = samples.reshape(-1, n_channels).T
    window: np.ndarray = np.hanning(samples.shape[1])
    peaks = np.abs(np.fft.rfft(samples.astype(np.float64) * window)).argmax(axis=1)
    return peaks * rate / samples.shape[1]


@needs_formats
@pytest.mark.parametrize("path", FORMATS, ids=lambda p: p.name)
def test_recognizes_formats_that_browsers_play(path):
    assert plays_in_browser(path) == (path.name not in REFUSED)


@pytest.mark.parametrize(("subtype", "plays"), [("PCM_24", True), ("FLOAT", True), ("ULAW", False)])
def test_wav_plays_depending_on_sample_format(tmp_path, subtype, plays):
    soundfile.write(tmp_path / "a.WAV", two_tones(), 44100, subtype=subtype)
    assert plays_in_browser(tmp_path / "a.WAV") == plays


def test_non_audio_does_not_play(tmp_path):
    (tmp_path / "words.mp3").write_text("only words " * 500)
    assert not plays_in_browser(tmp_path / "words.mp3")
    assert not plays_in_browser(tmp_path / "missing.mp3")
    nameless = encoded(tone(), "aac", "ipod").replace(b"stbl", b"xxxx")
    (tmp_path / "nameless.m4a").write_bytes(nameless)
    assert not plays_in_browser(tmp_path / "nameless.m4a")
    assert not plays_in_browser(tmp_path)


@pytest.mark.parametrize("suffix", [".mp3", ".m4a", ".wav"])
@pytest.mark.parametrize("rate", [22050, 44100, 96000])
def test_transcoding_keeps_stereo(tmp_path, suffix, rate):
    source, target = tmp_path / "a.aiff", tmp_path / f"a{suffix}"
    soundfile.write(source, two_tones(rate=rate), rate)
    assert transcode(source, target) == target
    # one bin of a two-second spectrum
    np.testing.assert_allclose(pitches(target), [440, 880], atol=1)
    assert plays_in_browser(target)
    # delay and padding of MP3 and AAC encoders
    assert decode(target).duration_s == pytest.approx(2, abs=0.1)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_mono_stays_mono_and_surround_becomes_stereo(tmp_path):
    for n_channels, expected in [(1, 1), (6, 2), (8, 2), (10, 2)]:
        y = np.repeat(two_tones(1)[:, :1], n_channels, axis=1) / 4
        soundfile.write(tmp_path / "a.wav", y, 44100)
        transcode(tmp_path / "a.wav", tmp_path / "a.mp3")
        np.testing.assert_allclose(pitches(tmp_path / "a.mp3"), [440] * expected, atol=2)  # 1 s: 1 Hz per bin


def test_bitrate_sets_the_size(tmp_path):
    soundfile.write(tmp_path / "a.wav", two_tones(8), 44100)
    sizes = []
    for bitrate in (64_000, 128_000, 256_000):
        transcode(tmp_path / "a.wav", tmp_path / "a.mp3", bitrate=bitrate)
        sizes.append((tmp_path / "a.mp3").stat().st_size * 8 / 8 / bitrate)
    np.testing.assert_allclose(sizes, 1, atol=0.05)  # header and padding of the last frame


@pytest.mark.parametrize("suffix", [".mp3", ".m4a", ".wav"])
def test_changing_sample_rates_are_unified(tmp_path, suffix):
    parts = []
    for rate in (44100, 22050, 48000):
        target = io.BytesIO()
        soundfile.write(target, two_tones(2, rate), rate, format="OGG", subtype="VORBIS")
        parts.append(target.getvalue())
    target_path = transcode(b"".join(parts), tmp_path / f"chained{suffix}")
    assert decode(target_path).duration_s == pytest.approx(6, abs=0.1)  # encoder padding
    np.testing.assert_allclose(pitches(target_path), [440, 880], atol=1)


def test_nan_samples_do_not_reach_the_encoder(tmp_path):
    y = two_tones(1)
    y[::1000] = np.nan
    soundfile.write(tmp_path / "nan.wav", y, 44100, subtype="FLOAT")
    transcode(tmp_path / "nan.wav", tmp_path / "nan.mp3")
    assert np.abs(load(tmp_path / "nan.mp3")).max() > 0.1


def test_failure_leaves_only_old_file(tmp_path):
    (tmp_path / "words.wma").write_text("only words " * 500)
    (tmp_path / "a.mp3").write_bytes(b"old")
    with pytest.raises(AudioDecodeError, match=r"words\.wma"):
        transcode(tmp_path / "words.wma", tmp_path / "a.mp3")
    assert (tmp_path / "a.mp3").read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.mp3", "words.wma"]


def test_rejects_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match=r"target='a\.xyz' must end in"):
        transcode(b"x", "a.xyz")
    with pytest.raises(ValueError, match="bitrate=0"):
        transcode(b"x", "a.mp3", bitrate=0)


def test_every_browser_extension_has_a_media_type():
    assert all(media_type(f"song{e}").startswith("audio/") for e in BROWSER_EXTENSIONS)
    assert media_type("song.xyz") == "application/octet-stream"
    assert transcode_suffix() in BROWSER_EXTENSIONS


def test_transcodes_requested_part_and_rejects_part_past_end(tmp_path):
    y = np.linspace(-0.5, 0.5, 3 * 22050, dtype=np.float32)  # no two places are alike
    soundfile.write(tmp_path / "all.wav", y, 22050, subtype="FLOAT")
    for start_s, length_s in ((0.0, 1.0), (0.5, 1.5), (2.5, 30.0), (0.0, np.inf)):
        transcode(tmp_path / "all.wav", tmp_path / "part.wav", start_s=start_s, length_s=length_s)
        part, _ = soundfile.read(tmp_path / "part.wav")
        first = round(start_s * 22050)
        wanted = y[first:] if np.isinf(length_s) else y[first : first + round(length_s * 22050)]
        assert len(part) == len(wanted)
        np.testing.assert_allclose(part, wanted, atol=2**-14)  # 16 bits
    with pytest.raises(AudioDecodeError, match="does not contain sound"):
        transcode(tmp_path / "all.wav", tmp_path / "part.wav", start_s=4.0)
