"""Tests of decoding: the same sound from every format, reported damage, and a clear error without sound."""

import io

import librosa
import numpy as np
import pytest
import soundfile

from musicsim.audio import AUDIO_EXTENSIONS, AudioDecodeError, AudioError, decode, load
from tests.audio.signals import as_bytes, encoded, music, pitch, tone
from tests.shared import FORMATS, SHARED, needs_formats

NAMES = [p.name for p in FORMATS]
LOSSLESS = [p for p in FORMATS if p.suffix in {".wav", ".flac", ".aiff"}]


def best_correlation(a, b, reach=1500):
    """Return the highest correlation of two signals over shifts of up to `reach` samples."""
    n = min(len(a), len(b)) - 2 * reach
    window = a[reach : reach + n]
    size = 1 << (n + 2 * reach).bit_length()
    products = np.fft.irfft(np.fft.rfft(b[: n + 2 * reach], size) * np.conj(np.fft.rfft(window, size)), size)[
        : 2 * reach + 1
    ]
    power = np.concatenate([[0.0], np.cumsum(np.square(b[: n + 2 * reach], dtype=np.float64))])
    return float((products / np.sqrt((power[n:] - power[:-n])[: 2 * reach + 1] * np.sum(window**2))).max())


# --- real recordings in 18 encodings ---


@needs_formats
@pytest.mark.parametrize("path", FORMATS, ids=NAMES)
def test_all_encodings_give_nearly_the_same_signal(path):
    reference = load(SHARED / "audio/formats/plum_s16_44k_stereo.wav")
    d = decode(path)
    seconds = 5 if "_5s" in path.name else 4 if "_4s" in path.name else 10
    # codecs add or lose up to two of their frames of 1,024 to 2,048 samples
    assert d.duration_s == pytest.approx(seconds, abs=0.06)
    assert d.duration_s == len(d.samples) / 22050
    assert not d.notes
    # The six channels of the 5.1 file are an upmix. Lossy codecs, 8 bits and 8 kHz all stay above 0.9959.
    exact = path in LOSSLESS and not any(word in path.name for word in ("51", "u8", "mulaw"))
    assert best_correlation(reference[: len(d.samples)], d.samples) > (0.99999 if exact else 0.995)


@needs_formats
@pytest.mark.parametrize("path", LOSSLESS, ids=lambda p: p.name)
def test_lossless_files_equal_librosa(path):
    expected = librosa.load(path, sr=22050)[0]
    # one rounding of float32: the mean of six channels is summed in another order
    np.testing.assert_allclose(load(path), expected, rtol=0, atol=1e-6)


@needs_formats
@pytest.mark.parametrize("name", ["plum_vorbis.ogg", "plum_vbr_v2.mp3", "plum_cbr128.mp3", "plum_opus96.opus"])
def test_lossy_files_equal_librosa(name):
    path = SHARED / "audio/formats" / name
    expected = librosa.load(path, sr=22050)[0]
    # two decoders of one file differ by rounding
    np.testing.assert_allclose(load(path), expected, rtol=0, atol=1e-5)


@needs_formats
@pytest.mark.parametrize("path", FORMATS, ids=NAMES)
def test_bytes_and_file_objects_equal_path(path):
    expected = load(path)
    data = path.read_bytes()
    np.testing.assert_array_equal(load(data), expected)
    np.testing.assert_array_equal(load(str(path)), expected)
    with path.open("rb") as file:
        np.testing.assert_array_equal(load(file), expected)
        assert file.tell() == 0


@needs_formats
@pytest.mark.parametrize("path", FORMATS, ids=NAMES)
@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.97])
def test_truncated_file_is_reported_or_refused(path, share):
    data = path.read_bytes()
    try:
        d = decode(data[: int(len(data) * share)], name="cut.bin")
    except AudioError as error:
        assert "cut.bin" in str(error)  # noqa: PT017 (both ends are legal, the message must be right)
        # MP4 has its table of contents at the end; the others are cut before the first packet
        assert path.suffix == ".m4a" or share <= 0.1
        return
    assert len(d.samples) > 0
    assert d.duration_s <= 1.02 * share * 10 + 0.1
    assert d.notes


@needs_formats
@pytest.mark.parametrize("name", ["plum_cbr128.mp3", "plum_flac16.flac", "plum_adts.aac", "plum_aac.m4a"])
def test_decoding_continues_after_damage(name):
    data = bytearray((SHARED / "audio/formats" / name).read_bytes())
    whole = load(bytes(data))
    rng = np.random.default_rng(0)
    for at in range(int(len(data) * 0.4), int(len(data) * 0.5), 4000):
        data[at : at + 200] = rng.bytes(200)
    d = decode(bytes(data))
    # a tenth was damaged; FLAC loses whole frames of 0.1 s
    assert d.duration_s > 8.5
    assert any("damaged packet" in note for note in d.notes)
    assert best_correlation(whole[-22050 * 4 :], d.samples[-22050 * 4 :]) > 0.99


@needs_formats
def test_surround_is_mean_of_channels():
    path = SHARED / "audio/formats/plum_51_48k_5s.wav"
    channels, rate = soundfile.read(path, dtype="float32")
    expected = librosa.resample(channels.mean(axis=1), orig_sr=rate, target_sr=22050)
    np.testing.assert_allclose(load(path), expected, atol=1e-6)  # sums in another order


# --- generated files ---


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 32000, 44100, 48000, 96000])
@pytest.mark.parametrize("n_samples", [1, 100, 65536, 65537, 200_000])
def test_any_rate_and_length_equals_librosa(rate, n_samples):
    y = music(n_samples / rate, rate)[:n_samples]
    expected = librosa.resample(y, orig_sr=rate, target_sr=22050)
    decoded = load(as_bytes(y, rate, subtype="FLOAT"))
    assert len(decoded) == len(expected)
    # the same filter in blocks must agree to the bit
    np.testing.assert_array_equal(decoded, expected)


@pytest.mark.parametrize(
    ("subtype", "atol"),
    [
        ("PCM_U8", 1 / 128),
        ("PCM_16", 1 / 32768),
        ("PCM_24", 1e-6),
        ("PCM_32", 1e-6),
        ("FLOAT", 0),
        ("DOUBLE", 1e-7),
        ("ULAW", 0.02),  # 14 bits, logarithmic: at most 1/32 of the level
        ("ALAW", 0.02),
    ],
)
def test_decodes_wav_of_every_sample_format(subtype, atol):
    y = tone(rate=22050)
    np.testing.assert_allclose(load(as_bytes(y, 22050, subtype=subtype)), y, rtol=0, atol=atol)


@pytest.mark.parametrize("container", ["AIFF", "AU", "CAF", "W64", "RF64", "FLAC", "VOC", "SVX"])
def test_decodes_other_lossless_containers(container):
    y = tone(rate=22050)
    np.testing.assert_allclose(load(as_bytes(y, 22050, format=container, subtype="PCM_16")), y, atol=1 / 32768)


def test_offset_and_duration_cut_by_decoded_time():
    y = music(5)
    data = as_bytes(y, subtype="FLOAT")
    for offset, duration in [(0, 1), (1.5, None), (0.7, 2.1), (4.5, 10), (0.1, 0.2)]:
        expected = librosa.load(io.BytesIO(data), sr=22050, offset=offset, duration=duration)[0]
        np.testing.assert_array_equal(load(data, offset=offset, duration=duration), expected)


def test_offset_past_end_gives_clear_error():
    with pytest.raises(AudioDecodeError, match=r"song\.wav ends at 1\.0 s, before offset=3 s"):
        decode(as_bytes(tone()), offset=3, name="song.wav")


def test_file_object_is_read_from_current_position():
    data = as_bytes(tone())
    file = io.BytesIO(b"some other part" + data)
    file.seek(15)
    np.testing.assert_array_equal(load(file), load(data))
    assert file.tell() == 15


def test_decodes_silence():
    d = decode(as_bytes(np.zeros((44100, 2), np.float32)))
    np.testing.assert_array_equal(d.samples, np.zeros(22050, np.float32))
    assert d.notes == ()


def test_one_silent_channel_is_mixed_as_usual():
    y = tone(rate=22050)
    d = decode(as_bytes(np.stack([np.zeros_like(y), y], axis=1), 22050, subtype="FLOAT"))
    np.testing.assert_allclose(d.samples, y / 2, atol=1e-7)
    assert d.notes == ()


@pytest.mark.parametrize(("codec", "container"), [("aac", "adts"), ("libmp3lame", "mp3")])
def test_sample_rate_change_inside_file_is_handled(codec, container):
    data = encoded(tone(440, 2, 44100), codec, container, 44100) + encoded(tone(880, 3, 24000), codec, container, 24000)
    d = decode(data)
    # delay and padding of two encoders
    assert d.duration_s == pytest.approx(5, abs=0.2)
    assert pitch(d.samples[: 22050 * 3 // 2]) == pytest.approx(440, abs=1)
    assert pitch(d.samples[22050 * 3 :]) == pytest.approx(880, abs=1)
    assert any("44100, 24000 Hz" in note for note in d.notes)
    part = decode(data, offset=1, duration=2.5)
    np.testing.assert_allclose(len(part.samples), 2.5 * 22050, atol=2)  # each run rounds to whole samples


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sr": 0}, "sr=0"),
        ({"sr": float("nan")}, "sr=nan"),
        ({"offset": -1}, "offset=-1"),
        ({"offset": float("inf")}, "offset=inf"),
        ({"duration": 0}, "duration=0"),
        ({"duration": float("nan")}, "duration=nan"),
    ],
)
def test_rejects_bad_arguments(options, words):
    with pytest.raises(ValueError, match=words):
        load(as_bytes(tone()), **options)


def test_other_sources_raise_type_error():
    with pytest.raises(TypeError, match="source must be a path"):
        load(12)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="opened as text"):
        load(io.StringIO("text"))  # type: ignore[arg-type]


def test_extensions_are_lowercase_and_exclude_video():
    assert all(e.startswith(".") and e == e.lower() for e in AUDIO_EXTENSIONS)
    assert {".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a", ".wma", ".ape"} <= AUDIO_EXTENSIONS
    assert not {".mp4", ".mkv", ".webm", ".avi"} & AUDIO_EXTENSIONS
