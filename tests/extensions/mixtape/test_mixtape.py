"""Tests of mixes of known sound: length, order, loudness, fades and peaks; and unusable songs."""

import tracemalloc
from dataclasses import replace

import av
import numpy as np
import pytest
import soundfile

from musicsim.audio import decode
from musicsim.errors import AudioDecodeError
from musicsim.extensions.mixtape.encoding import MIX_ENDINGS
from musicsim.extensions.mixtape.mixtape import render_mix
from musicsim.extensions.mixtape.request import MixRequest
from musicsim.library.db import schema
from musicsim.progress import Canceled
from tests.extensions.mixtape.loops import RATE
from tests.progress import cancel_when

# An encoder pads its last frame, and AAC may add one more. Opus, MP3 and lossless formats state their length.
FRAME_S = {".m4a": 2 * 1024 / RATE}
EXACT_S = 1 / RATE


def tone(frequency, seconds, level=0.5, rate=RATE):
    """Return a sine on the left, and the same with half the amplitude on the right."""
    y = level * np.sin(2 * np.pi * frequency * np.arange(round(seconds * rate)) / rate)
    return np.stack([y, y / 2], axis=1)


def noise(seed, seconds, level=0.1):
    return level * np.random.default_rng(seed).standard_normal((round(seconds * RATE), 2))


def written(mix):
    """Return the samples of a mix, (n, 2), as read by another program than the one that wrote them."""
    y, rate = soundfile.read(mix.path, always_2d=True)
    assert (rate, y.shape[1]) == (RATE, 2)
    return y


def rms(y):
    return np.sqrt(np.mean(np.square(y, dtype=np.float64)))


def pitch(y):
    """Return the loudest frequency, to half a bin."""
    return np.abs(np.fft.rfft(y * np.hanning(len(y)))).argmax() * RATE / len(y)


@pytest.mark.long
@pytest.mark.parametrize("ending", MIX_ENDINGS)
def test_every_format_contains_songs_in_order(store, mixable, tmp_path, ending):
    songs = mixable(tone(300, 6), tone(700, 6), tone(1500, 6))
    order = [songs[i] for i in (2, 0, 1, 2)]
    mix = render_mix(store, order, tmp_path / f"mix{ending}", MixRequest(seconds=4, crossfade_s=1))
    assert mix.songs == tuple(order)
    assert mix.left_out == ()
    assert mix.starts == pytest.approx((0, 3, 6, 9), abs=EXACT_S)
    assert mix.duration_s == pytest.approx(13, abs=EXACT_S)
    heard = decode(mix.path, sr=RATE)
    assert heard.notes == ()
    assert heard.duration_s == pytest.approx(13, abs=FRAME_S.get(ending, EXACT_S))
    for start, frequency in zip(mix.starts, (1500, 300, 700, 1500), strict=True):
        alone = heard.samples[round((start + 1.5) * RATE) : round((start + 2.5) * RATE)]
        assert pitch(alone) == pytest.approx(frequency, abs=1)  # one bin of a second
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize(
    ("ending", "codec", "rate"), [(".m4a", "aac", 44100), (".opus", "opus", 48000), (".FLAC", "flac", 44100)]
)
def test_codec_rate_and_channels_are_as_stated(store, mixable, tmp_path, ending, codec, rate):
    mix = render_mix(store, mixable(tone(500, 2)), tmp_path / f"mix{ending}", MixRequest(seconds=2, crossfade_s=0))
    with av.open(str(mix.path)) as container:
        (stream,) = container.streams
        assert (stream.codec_context.codec.canonical_name, stream.rate, stream.channels) == (codec, rate, 2)


@pytest.mark.long
def test_left_and_right_stay_separate(store, mixable, tmp_path):
    y = written(render_mix(store, mixable(tone(500, 3)), tmp_path / "mix.wav", MixRequest(seconds=2, crossfade_s=0)))
    assert rms(y[:, 0]) == pytest.approx(2 * rms(y[:, 1]), rel=1e-3)  # 16 bits: steps of 3e-5 at 0.13


def test_mono_and_other_rates_become_44100_hz_stereo(store, mixable, tmp_path):
    songs = mixable(tone(500, 3, rate=22050)[:, :1], tone(900, 3, rate=22050), rate=22050)
    mix = render_mix(store, songs, tmp_path / "mix.wav", MixRequest(seconds=2, crossfade_s=0))
    y = written(mix)
    assert pitch(y[:RATE, 1]) == pytest.approx(500, abs=1)
    assert pitch(y[-RATE:, 1]) == pytest.approx(900, abs=1)
    # the resampler may drop or add some samples at the end of an excerpt
    assert len(y) == pytest.approx(4 * RATE, abs=40)
    np.testing.assert_allclose(y[:RATE, 0], y[:RATE, 1], atol=1e-4)  # two steps of 16 bits


def test_mix_uses_typical_part(store, mixable, tmp_path):
    (song,) = mixable(np.concatenate([tone(300, 5), tone(700, 5), tone(1500, 5)]))
    for typical_s, start_s in ((5.0, 5.0), (12.0, 11.0), (0.0, 0.0)):  # 12 s leaves 3 s of the 4: one second earlier
        with store.write() as connection:
            connection.execute(schema.songs.update().values(typical_s=typical_s))
        mix = render_mix(store, store.songs(), tmp_path / "mix.wav", MixRequest(seconds=4, crossfade_s=0))
        expected = soundfile.read(song.path, always_2d=True)[0][round(start_s * RATE) :][: 4 * RATE]
        y = written(mix)
        np.testing.assert_allclose(y, expected * rms(y) / rms(expected), atol=1e-4)  # two steps of 16 bits


def test_loudness_is_equalized_and_peaks_are_limited(store, mixable, tmp_path):
    quiet, loud = noise(1, 3, level=0.02), noise(2, 3, level=0.3)
    spiky = noise(3, 3, level=0.01)
    spiky[::20_000] = 1.0
    songs = mixable(quiet, loud, spiky, noise(4, 3, level=1e-3), np.zeros((3 * RATE, 2)))
    y = written(render_mix(store, songs, tmp_path / "mix.wav", MixRequest(seconds=3, crossfade_s=0)))
    parts = [y[i * 3 * RATE : (i + 1) * 3 * RATE] for i in range(5)]
    assert [rms(part) for part in parts[:2]] == pytest.approx([0.1, 0.1], rel=1e-3)
    assert np.abs(parts[2]).max() == pytest.approx(0.6, abs=1e-4)
    assert rms(parts[2]) < 0.05
    # Gain is limited to 18 dB, so near-silence is not amplified further. 16 bits add noise of 1e-5.
    assert rms(parts[3]) == pytest.approx(8e-3, rel=0.01)
    assert np.abs(parts[4]).max() == 0


def test_power_is_constant_during_crossfade(store, mixable, tmp_path):
    songs = mixable(noise(1, 6), noise(2, 6))
    y = written(render_mix(store, songs, tmp_path / "mix.wav", MixRequest(seconds=6, crossfade_s=3)))
    # The rms of 0.2 s of noise (17,640 samples) is off by 1 / sqrt(2 n) = 0.5 %. 3 % is six times that.
    at = lambda t: rms(y[round((t - 0.1) * RATE) : round((t + 0.1) * RATE)])  # noqa: E731
    assert [at(t) for t in (3.0, 3.75, 4.5, 5.25, 6.0)] == pytest.approx([0.1] * 5, rel=0.03)
    # the mix begins and ends with the same fades from and to silence: half the power in the middle
    assert [at(1.5), at(7.5)] == pytest.approx([0.1 / np.sqrt(2)] * 2, rel=0.03)
    assert [at(0.1), at(8.9)] == pytest.approx([0.0, 0.0], abs=0.01)


def test_crossfade_midpoint_has_half_power_of_both(store, mixable, tmp_path):
    songs = mixable(tone(441, 6), tone(1323, 6))
    y = written(render_mix(store, songs, tmp_path / "mix.wav", MixRequest(seconds=4, crossfade_s=1)))[:, 0]

    def amplitude(around_s, frequency):  # the window suppresses the other tone
        part = y[round((around_s - 0.05) * RATE) :][:4410] * np.hanning(4410)
        return abs(np.sum(part * np.exp(-2j * np.pi * frequency * np.arange(4410) / RATE)))

    whole = amplitude(2, 441)
    assert amplitude(3.5, 441) / whole == pytest.approx(np.sqrt(0.5), abs=0.01)
    assert amplitude(3.5, 1323) / amplitude(5, 1323) == pytest.approx(np.sqrt(0.5), abs=0.01)
    assert amplitude(3.25, 1323) / amplitude(5, 1323) == pytest.approx(np.sin(np.pi / 8), abs=0.01)
    assert amplitude(2, 1323) < 1e-3 * whole


@pytest.mark.long
@pytest.mark.parametrize("ending", MIX_ENDINGS)
def test_worst_case_does_not_clip(store, mixable, tmp_path, ending):
    """Both songs have the same sparse clicks, aligned in the crossfade, so that all peaks add up."""
    clicks = np.zeros((6 * RATE, 2))
    clicks[:: RATE // 10] = 1.0
    mixable(clicks, -clicks + 2 * clicks)  # the same sound in two files would be one song
    songs = store.songs() * 2
    mix = render_mix(store, songs, tmp_path / f"mix{ending}", MixRequest(seconds=4, crossfade_s=2))
    with av.open(str(mix.path)) as container:
        peak = max(np.abs(_as_float(frame)).max() for frame in container.decode(audio=0))
    assert 0.4 < peak <= 1.0


def _as_float(frame):
    y = frame.to_ndarray()
    return y / 32768 if y.dtype == np.int16 else y


def test_short_songs_fade_over_half_their_length(store, mixable, tmp_path):
    songs = mixable(noise(1, 6), noise(2, 1.2), noise(3, 1.2), noise(4, 6))
    mix = render_mix(store, songs, tmp_path / "mix.wav", MixRequest(seconds=4, crossfade_s=2))
    # 4 s, then 1.2 s three times with 0.6 s overlap
    assert mix.starts == pytest.approx((0, 3.4, 4.0, 4.6), abs=EXACT_S)
    assert mix.duration_s == pytest.approx(8.6, abs=EXACT_S)
    y = written(mix)
    assert len(y) == pytest.approx(8.6 * RATE, abs=1)
    middle = [rms(y[round((t - 0.1) * RATE) : round((t + 0.1) * RATE)]) for t in (3.7, 4.3, 4.9)]
    assert middle == pytest.approx([0.1] * 3, rel=0.03)


def test_mix_of_one_song_is_that_song(store, mixable, tmp_path):
    mix = render_mix(store, mixable(noise(1, 2)), tmp_path / "mix.flac", MixRequest(seconds=30, crossfade_s=4))
    assert (mix.starts, mix.duration_s) == ((0.0,), 2.0)
    assert rms(written(mix)[RATE - 2000 : RATE + 2000]) == pytest.approx(0.1, rel=0.05)  # fades of 1 s meet


# Unusable songs


def test_unavailable_songs_are_skipped_and_named(store, mixable, tmp_path):
    songs = mixable(*(tone(f, 3) for f in (300, 500, 700, 900, 1100)))
    songs[1].path.write_bytes(b"no sound at all" * 100)
    songs[2].path.unlink()
    store.files.mark(missing=[songs[3].path], back=[])
    with store.write() as connection:
        connection.execute(schema.songs.delete().where(schema.songs.c.id == songs[4].id))
    mix = render_mix(store, songs, tmp_path / "mix.wav", MixRequest(seconds=2, crossfade_s=0.5))
    assert mix.songs == (songs[0],)
    assert [song.id for song, _ in mix.left_out] == [song.id for song in songs[1:]]
    reasons = [reason for _, reason in mix.left_out]
    for reason, said in zip(reasons, ("has no audio at 0 s", "does not exist", "missing", "no longer"), strict=True):
        assert said in reason
    assert len(written(mix)) == 2 * RATE


def test_truncated_song_gives_remaining_part(store, mixable, tmp_path):
    songs = mixable(tone(300, 6), tone(500, 6))
    for song, kept in zip(songs, (0.5, 0.1), strict=True):
        data = song.path.read_bytes()
        song.path.write_bytes(data[: int(kept * len(data))])
    with store.write() as connection:
        connection.execute(schema.songs.update().values(typical_s=2.0))
    mix = render_mix(store, songs, tmp_path / "mix.wav", MixRequest(seconds=4, crossfade_s=0))
    assert mix.songs[0].id == songs[0].id
    assert mix.duration_s == pytest.approx(1.0, abs=0.05)  # the remaining 3 s begin at 2 s
    ((song, reason),) = mix.left_out
    assert (song.id, "has no audio at 2 s" in reason) == (songs[1].id, True)


def test_moved_songs_are_found(store, mixable, tmp_path):
    (song,) = mixable(tone(300, 3))
    old = replace(song, path=tmp_path / "elsewhere.wav")
    assert render_mix(store, [old], tmp_path / "mix.wav", MixRequest(seconds=2, crossfade_s=0)).songs == (song,)


def test_failed_mix_keeps_old_file(store, mixable, tmp_path):
    songs = mixable(tone(300, 3), tone(500, 3))
    for song in songs:
        song.path.unlink()
    target = tmp_path / "mix.wav"
    target.write_text("old")
    with pytest.raises(AudioDecodeError, match=r"none of the 2 songs can be read.*does not exist"):
        render_mix(store, songs, target, MixRequest(seconds=2, crossfade_s=0))
    assert target.read_text() == "old"
    assert list(tmp_path.glob(".*")) == []


def test_canceled_mix_keeps_old_file(store, mixable, tmp_path):
    songs = mixable(tone(300, 3), tone(500, 3), tone(700, 3))
    target = tmp_path / "mix.m4a"
    target.write_text("old")
    told = []

    def stop(message, done, total):
        told.append((done, total))
        return done == 2

    with pytest.raises(Canceled):
        render_mix(store, songs, target, MixRequest(seconds=2, crossfade_s=0.5), progress=cancel_when(stop))
    assert told == [(0, 3), (1, 3), (2, 3)]
    assert target.read_text() == "old"
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"seconds": 0.5}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"seconds": 1e4}, "seconds"),
        ({"crossfade_s": -1}, "crossfade_s"),
        ({"seconds": 4, "crossfade_s": 2.1}, "crossfade_s"),
        ({"crossfade_s": float("nan")}, "crossfade_s"),
        ({"target": "mix.ogv"}, "target"),
        ({"songs": []}, "songs"),
    ],
)
def test_rejects_invalid_arguments(tiny_library, tmp_path, options, name):
    songs = options.pop("songs", tiny_library.songs())
    target = tmp_path / options.pop("target", "mix.wav")
    with pytest.raises(ValueError, match=name):
        render_mix(tiny_library, songs, target, MixRequest(**options))
    assert list(tmp_path.glob("mix*")) == []


@pytest.mark.long
def test_memory_is_independent_of_song_count(store, mixable, tmp_path):
    songs = mixable(noise(1, 12), noise(2, 12))

    def peak(n):
        tracemalloc.start()
        try:
            render_mix(store, songs * (n // 2), tmp_path / "mix.wav", MixRequest(seconds=10, crossfade_s=2))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(2)  # imports and caches do not count
    excerpt = 10 * RATE * 2 * 4
    few, many = peak(4), peak(16)
    # 12 more excerpts are 42 MB; half of one is the tolerance
    assert many < few + excerpt / 2
    assert many < 5 * excerpt
