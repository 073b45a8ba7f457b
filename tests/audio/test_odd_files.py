"""Tests of empty, truncated, damaged, mislabeled and endless files.

The intact part of each is read, or the file is refused in one sentence that names it.
"""

import base64
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mutagen.flac import Picture
from mutagen.id3 import APIC, ID3
from mutagen.oggvorbis import OggVorbis

from musicsim.audio import AudioDecodeError, AudioError, analyze_sound, decode, load
from musicsim.audio.analysis import IN_MEMORY
from tests.audio.signals import as_bytes, encoded, music, pitch, png, tone
from tests.waiting import PATIENCE_S


def read(path):
    """Analyze a file. Return None if it is refused, which must be with its name."""
    try:
        return analyze_sound(path)
    except AudioError as error:
        assert path.name in str(error)  # noqa: PT017 (both ends are legal, the message must be right)
        return None


def refused(path, words):
    with pytest.raises(AudioDecodeError, match=words) as caught:
        analyze_sound(path)
    assert path.name in str(caught.value)


def mp3(samples, rate=44100, **options):
    return as_bytes(samples, rate, format="MP3", subtype="MPEG_LAYER_III", **options)


def mp3_frames(data):
    """Return the frames of an MPEG-1 layer 3 stream, without tags."""
    rates = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
    at = data.index(b"\xff\xfb")
    frames = []
    while data[at : at + 2] == b"\xff\xfb" and at + 4 <= len(data):
        hertz = (44100, 48000, 32000)[data[at + 2] >> 2 & 3]
        size = 144000 * rates[data[at + 2] >> 4] // hertz + (data[at + 2] >> 1 & 1)
        frames.append(data[at : at + size])
        at += size
    return frames


# --- no sound ---


def test_empty_file_is_refused(tmp_path):
    path = tmp_path / "empty.mp3"
    path.touch()
    refused(path, r"empty \(0 bytes\)")


def test_text_file_named_mp3_is_refused(tmp_path):
    path = tmp_path / "letter.mp3"
    path.write_text("Dear Sir or Madam,\n" * 2000)
    refused(path, "is a text file")


def test_folder_named_mp3_is_refused(tmp_path):
    path = tmp_path / "x.mp3"
    path.mkdir()
    refused(path, "is a folder")


def test_pipe_named_wav_is_refused(tmp_path):
    path = tmp_path / "pipe.wav"
    os.mkfifo(path)
    refused(path, "pipe or a device")


def test_dangling_and_circular_links_are_refused(tmp_path):
    (tmp_path / "gone.mp3").symlink_to(tmp_path / "nowhere.mp3")
    refused(tmp_path / "gone.mp3", "does not exist")
    (tmp_path / "loop.mp3").symlink_to(tmp_path / "loop.mp3")
    refused(tmp_path / "loop.mp3", "cannot be opened")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file_is_refused(tmp_path):
    path = tmp_path / "secret.wav"
    path.write_bytes(as_bytes(tone()))
    path.chmod(0)
    refused(path, "cannot be opened")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.mp3", b"These are only words. " * 300),
        ("cover.mp3", png()),
        ("noise.ogg", np.random.default_rng(0).bytes(5000)),
        ("half.ogg", b"OggS\x00\x02"),
        ("ogg.ogg", b"OggS"),
        ("header.wav", as_bytes(np.zeros(0))[:44]),
        ("riff.wav", b"RIFF"),
        ("tag.mp3", b"ID3"),
    ],
)
def test_error_contains_file_name(tmp_path, capfd, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(AudioDecodeError, match=name):
        load(path)
    with pytest.raises(AudioDecodeError, match="upload 7"):
        decode(content, name="upload 7")
    assert capfd.readouterr().err == ""  # decoders must not write to the terminal


PLAYLIST = "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nsound.aac\n#EXT-X-ENDLIST\n"


@pytest.mark.parametrize(
    "text", [PLAYLIST, "ffconcat version 1.0\nfile 'sound.aac'\n"], ids=["HLS playlist", "concat list"]
)
def test_text_file_cannot_open_other_files(tmp_path, text):
    (tmp_path / "sound.aac").write_bytes(encoded(tone(), "aac", "adts"))
    (tmp_path / "song.mp3").write_text(text)
    with pytest.raises(AudioDecodeError, match=r"song\.mp3"):
        load(tmp_path / "song.mp3")


def test_empty_missing_and_folder_have_different_errors(tmp_path):
    (tmp_path / "empty.wav").touch()
    with pytest.raises(AudioDecodeError, match=r"empty\.wav is empty"):
        load(tmp_path / "empty.wav")
    with pytest.raises(AudioDecodeError, match=r"gone\.wav does not exist"):
        load(tmp_path / "gone.wav")
    with pytest.raises(AudioDecodeError, match="is a folder"):
        load(tmp_path)
    with pytest.raises(AudioDecodeError, match="audio data is empty"):
        load(b"")


def test_absurd_sample_rate_is_refused_without_using_memory():
    with pytest.raises(AudioDecodeError, match="nothing in it can be decoded"):
        load(as_bytes(tone(), rate=1))


# --- cut off and damaged ---

_WHOLE = {
    "wav": as_bytes(music(2), subtype="PCM_16"),
    "flac": as_bytes(music(2), format="FLAC", subtype="PCM_16"),
    "ogg": as_bytes(music(2), format="OGG", subtype="VORBIS"),
    "mp3": encoded(music(2), "libmp3lame", "mp3"),
    "m4a": encoded(music(2), "aac", "ipod"),
}


@pytest.mark.parametrize("kind", _WHOLE)
@given(share=st.floats(0, 1))
@example(share=0.0)
@settings(max_examples=60)
def test_truncation_at_any_byte_is_handled(kind, share, tmp_path_factory):
    data = _WHOLE[kind]
    path = tmp_path_factory.getbasetemp() / f"cut.{kind}"
    # half of the cuts are within the first 1,000 bytes, which hold the headers
    n_bytes = int(2000 * share) if share < 0.5 else int(len(data) * (2 * share - 1))
    path.write_bytes(data[:n_bytes])
    sound = read(path)
    if sound is not None:
        assert sound.duration_s <= 2.1  # encoder delay
        # no loss of 0.1 s or more goes unreported
        assert sound.notes or sound.duration_s > 1.85
    elif kind != "m4a":  # its table of contents is at the end
        assert n_bytes < 10_000


@pytest.mark.parametrize("kind", _WHOLE)
def test_truncation_in_header_is_handled(kind, tmp_path):
    path = tmp_path / f"head.{kind}"
    for n_bytes in range(1, 100, 3):
        path.write_bytes(_WHOLE[kind][:n_bytes])
        sound = read(path)
        assert sound is None or sound.notes


@pytest.mark.long
@pytest.mark.parametrize("kind", _WHOLE)
@given(at=st.floats(0, 1), junk=st.binary(min_size=1, max_size=300))
@settings(max_examples=40)
def test_overwritten_bytes_are_handled(kind, at, junk, tmp_path_factory):
    data = bytearray(_WHOLE[kind])
    start = int(at * (len(data) - len(junk)))
    data[start : start + len(junk)] = junk
    path = tmp_path_factory.getbasetemp() / f"hit.{kind}"
    path.write_bytes(data)
    sound = read(path)
    if sound is not None:
        assert np.isfinite(sound.mfcc).all()
        assert 0 <= sound.outline.min() <= sound.outline.max() <= 1


@pytest.mark.parametrize("kind", ["wav", "flac"])
def test_analyzes_two_samples(kind, tmp_path):
    path = tmp_path / f"two.{kind}"
    soundfile.write(path, np.array([0.5, -0.5]), 22050)
    sound = analyze_sound(path)
    assert (sound.n_frames, sound.duration_s) == (1, 2 / 22050)
    assert sound.loudest == 0.5


@pytest.mark.parametrize(("codec", "container"), [("libmp3lame", "mp3"), ("aac", "ipod"), ("libopus", "ogg")])
def test_decodes_two_packets(codec, container, tmp_path):
    path = tmp_path / "two.bin"
    path.write_bytes(encoded(tone(seconds=0.04, rate=48000), codec, container, 48000))
    sound = read(path)
    assert sound is None or sound.duration_s < 0.2


def test_garbage_inside_mp3_is_skipped(tmp_path):
    frames = mp3_frames(encoded(tone(440, 6), "libmp3lame", "mp3"))
    path = tmp_path / "hit.mp3"
    middle = len(frames) // 2
    for n_bytes in (1, 1000, 100_000):
        junk = np.random.default_rng(n_bytes).bytes(n_bytes)
        path.write_bytes(b"".join(frames[:middle]) + junk + b"".join(frames[middle:]))
        d = decode(path)
        # 100 kB of noise contain some false frames of 26 ms each
        assert 5.8 < d.duration_s < 8
        assert pitch(d.samples[: 22050 * 2]) == pytest.approx(440, abs=1)
        assert pitch(d.samples[-22050 * 2 :]) == pytest.approx(440, abs=1)


def test_ogg_cut_between_pages_is_reported():
    data = as_bytes(music(3), format="OGG", subtype="VORBIS")
    assert decode(data).notes == ()
    assert decode(data[: data.rindex(b"OggS")]).notes == ("the end of the file is missing",)


# --- unusual, but legal ---


def test_decodes_vbr_mp3_without_xing_header(tmp_path):
    y = np.concatenate([tone(440, 4), np.zeros(4 * 44100, np.float32), music(4)])
    whole = mp3(y, bitrate_mode="VARIABLE", compression_level=0.3)
    frames = mp3_frames(whole)
    assert len({len(frame) for frame in frames}) > 3  # it is VBR
    assert any(mark in frames[0] for mark in (b"Xing", b"Info"))
    path = tmp_path / "vbr.mp3"
    path.write_bytes(b"".join(frames[1:]))
    sound = analyze_sound(path)
    assert sound.expected_s is None  # the size divided by the first rate would be far off
    assert sound.duration_s == pytest.approx(12, abs=0.15)  # delay and padding remain
    assert not sound.notes


def test_mp3_without_length_header_has_no_expected_length():
    # without the first frame (Xing/Info), FFmpeg can only guess the length from the size
    data = encoded(music(3), "libmp3lame", "mp3")
    mark = data.index(b"Xing") if b"Xing" in data else data.index(b"Info")
    second = data.index(b"\xff\xfb", mark)
    d = decode(data[second:])
    assert d.expected_s is None
    assert d.duration_s == pytest.approx(3, abs=0.1)


def test_decodes_free_format_mp3():
    # At 32 kHz, all frames of 128 kb/s have 576 bytes. Without the rate in their headers they are free-format.
    data = bytearray(encoded(tone(seconds=2, rate=32000), "libmp3lame", "mp3", 32000))
    first = data.index(b"\xff\xfb", data.index(b"Info") if b"Info" in data else data.index(b"Xing"))
    frames = data[first : first + (len(data) - first) // 576 * 576]
    assert all(frames[at : at + 2] == b"\xff\xfb" for at in range(0, len(frames), 576))
    frames[2::576] = bytes(byte & 0x0F for byte in frames[2::576])
    d = decode(bytes(frames))
    assert pitch(d.samples) == pytest.approx(440, abs=1)
    assert d.duration_s == pytest.approx(2, abs=0.15)  # delay and padding remain without a header


@pytest.mark.parametrize(
    ("codec", "container", "rates"),
    [
        ("libopus", "ogg", (48000, 48000)),
        ("flac", "ogg", (44100, 44100)),
        ("flac", "ogg", (44100, 22050)),
        ("vorbis", "ogg", (44100, 44100)),
        ("vorbis", "ogg", (44100, 22050)),
        ("vorbis", "ogg", (22050, 48000)),
    ],
)
def test_chained_ogg_is_decoded_completely(codec, container, rates):
    parts = []
    for hz, seconds, rate in zip((440, 880), (2, 3), rates, strict=True):
        y = tone(hz, seconds, rate)
        parts.append(
            as_bytes(y, rate, format="OGG", subtype="VORBIS")
            if codec == "vorbis"
            else encoded(y, codec, container, rate)
        )
    d = decode(b"".join(parts))
    # FFmpeg drops half a block of Vorbis at the end of a link: 12 ms at 22,050 Hz
    assert d.duration_s == pytest.approx(5, abs=0.03)
    assert d.expected_s == pytest.approx(5, abs=0.03)
    assert pitch(d.samples[: 22050 * 3 // 2]) == pytest.approx(440, abs=1)
    assert pitch(d.samples[22050 * 5 // 2 :]) == pytest.approx(880, abs=1)
    told = any("sampling rate changes" in note for note in d.notes)
    assert told == (rates[0] != rates[1])


def test_chained_ogg_from_path_equals_bytes(tmp_path):
    data = b"".join(as_bytes(music(2, seed=s), format="OGG", subtype="VORBIS") for s in range(3))
    path = tmp_path / "radio.ogg"
    path.write_bytes(data)
    np.testing.assert_array_equal(load(path), load(data))
    assert decode(path).duration_s == pytest.approx(6, abs=0.05)


def test_decodes_flac_of_unknown_length(tmp_path):
    data = bytearray(as_bytes(music(3), format="FLAC", subtype="PCM_16"))
    assert data[:5] == b"fLaC\0"
    data[21] &= 0xF0  # the 36 bits of the number of samples
    data[22:26] = bytes(4)
    path = tmp_path / "stream.flac"
    path.write_bytes(data)
    sound = analyze_sound(path)
    assert sound.duration_s == 3.0
    assert not sound.notes


def test_wav_of_unknown_length_has_no_notes():
    data = bytearray(as_bytes(tone(), subtype="PCM_16"))
    at = data.index(b"data") + 4
    data[4:8] = data[at : at + 4] = b"\xff\xff\xff\xff"
    d = decode(bytes(data))
    assert (d.duration_s, d.notes) == (1.0, ())


@pytest.mark.parametrize("subtype", ["PCM_16", "FLOAT"])
def test_opposite_channels_do_not_cancel(subtype):
    y = tone(rate=22050)
    d = decode(as_bytes(np.stack([y, -y], axis=1), 22050, subtype=subtype))
    np.testing.assert_allclose(d.samples, y, atol=1 / 32768)
    assert d.notes == ("the channels cancel each other out: only the left channel was used",)


def test_opposite_channels_do_not_cancel_after_lossy_codec():
    y = tone()
    d = decode(as_bytes(np.stack([y, -y], axis=1), format="OGG", subtype="VORBIS"))
    assert np.abs(d.samples).max() == pytest.approx(0.5, abs=0.05)  # a lossy codec may change a peak by this much
    assert any("cancel" in note for note in d.notes)


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_24", "FLOAT"])
def test_analyzes_8_bit_24_bit_and_float_wav(subtype, tmp_path):
    path = tmp_path / "a.wav"
    y = tone(rate=22050)
    soundfile.write(path, y, 22050, subtype=subtype)
    sound = analyze_sound(path)
    assert sound.loudest == pytest.approx(0.5, abs=1 / 128)
    assert sound.rms == pytest.approx(0.5 / np.sqrt(2), rel=0.01)  # 8 bits: steps of 1/128


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("n_channels", [1, 2])
def test_nan_and_infinite_samples_are_zeroed(bad, n_channels):
    y = np.stack([tone(rate=22050)] * n_channels, axis=1)
    y[1000] = [bad] + [0.25] * (n_channels - 1)
    d = decode(as_bytes(y, 22050, subtype="FLOAT"))
    expected = y.copy()
    expected[1000, 0] = 0
    np.testing.assert_allclose(d.samples, expected.mean(axis=1), atol=1e-7)
    assert d.notes == ("NaN, infinite or huge samples zeroed",)


def test_wav_of_only_nan_is_silent(tmp_path):
    path = tmp_path / "nan.wav"
    soundfile.write(path, np.full(22050, np.nan, np.float32), 22050, subtype="FLOAT")
    sound = analyze_sound(path)
    assert (sound.loudest, sound.notes) == (0.0, ("NaN, infinite or huge samples zeroed",))
    assert np.isfinite(sound.mfcc).all()


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT"])
def test_decodes_big_endian_wav(subtype):
    y = tone(rate=22050)
    data = as_bytes(y, 22050, subtype=subtype, endian="BIG")
    assert data[:4] == b"RIFX"
    np.testing.assert_allclose(load(data), y, atol=1 / 32768)


def test_six_channels_are_averaged(tmp_path):
    path = tmp_path / "surround.wav"
    y = np.stack([tone(440, level=0.1 * i) for i in range(1, 7)], axis=1)
    soundfile.write(path, y, 44100)
    sound = analyze_sound(path)
    assert sound.loudest == pytest.approx(0.35, abs=0.01)  # the mean of 0.1 to 0.6
    assert not sound.notes


@pytest.mark.parametrize("n_channels", [7, 8, 9, 16])
@pytest.mark.parametrize("kind", ["WAV", "OGG"])
def test_many_channels_are_averaged(kind, n_channels, tmp_path):
    path = tmp_path / "many.bin"
    y = np.stack([tone(440, level=0.02 * i) for i in range(1, n_channels + 1)], axis=1)
    soundfile.write(path, y, 44100, format=kind)
    # the mean of the levels; a lossy codec may change each of them slightly
    assert analyze_sound(path).loudest == pytest.approx(0.01 * (n_channels + 1), rel=0.05)


@pytest.mark.parametrize(("codec", "container"), [("ac3", "ac3"), ("aac", "adts"), ("libmp3lame", "mp3")])
def test_channel_count_change_inside_file_is_handled(codec, container, tmp_path):
    layouts = ("stereo", "mono") if container == "mp3" else ("mono", "5.1", "stereo")
    path = tmp_path / "broadcast.bin"
    path.write_bytes(
        b"".join(encoded(tone(seconds=2, rate=48000), codec, container, 48000, layout) for layout in layouts)
    )
    d = decode(path)
    assert d.duration_s == pytest.approx(2 * len(layouts), abs=0.3)  # delay and padding of the encoders
    assert pitch(d.samples) == pytest.approx(440, abs=1)


@pytest.mark.parametrize("rate", [8000, 192_000])
def test_analyzes_8_khz_and_192_khz(rate, tmp_path):
    path = tmp_path / "rate.flac"
    soundfile.write(path, tone(1000, 2, rate), rate)
    sound = analyze_sound(path)
    assert sound.duration_s == 2.0
    assert sound.loudest == pytest.approx(0.5, abs=0.02)  # the filter rings at the start of the tone
    assert pitch(load(path)) == pytest.approx(1000, abs=1)


@pytest.mark.parametrize(("kind", "suffix"), [("mp3", "flac"), ("flac", "mp3"), ("ogg", "wav"), ("m4a", "ogg")])
def test_wrong_extension_does_not_change_sound(kind, suffix, tmp_path):
    honest, lying = tmp_path / f"a.{kind}", tmp_path / f"a.{suffix}"
    for path in (honest, lying):
        path.write_bytes(_WHOLE[kind])
    assert analyze_sound(lying).sound_hash == analyze_sound(honest).sound_hash


@pytest.mark.parametrize(
    "name",
    [
        b"new\nline.wav",
        b"100%d %s %.wav",
        "\N{GUITAR}\N{HEAVY BLACK HEART}.wav".encode(),
        b"not utf-8 \xe9\xff.wav",
        b"-x.wav",
        b"a:b.wav",
        b"concat:a|b.wav",
        b" .wav",
        b"no_suffix",
    ],
)
def test_unusual_file_names_are_handled(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path(os.fsdecode(name))
    try:
        path.write_bytes(_WHOLE["m4a"])
    except OSError:
        pytest.skip("this file system does not allow the name")
    assert analyze_sound(path).duration_s == pytest.approx(2, abs=0.1)
    path.write_text("only words " * 500)
    with pytest.raises(AudioDecodeError) as caught:
        analyze_sound(path)
    # the message can be printed and stored
    assert name.decode(errors="replace") in str(caught.value).encode().decode()


# --- tags ---


def test_ogg_with_cover_has_same_sound(tmp_path):
    path = tmp_path / "cover.ogg"
    path.write_bytes(_WHOLE["ogg"])
    expected = analyze_sound(path).sound_hash
    picture = Picture()
    picture.data, picture.mime, picture.type = png(), "image/png", 3
    tags = OggVorbis(path)
    tags["metadata_block_picture"] = [base64.b64encode(picture.write()).decode()]
    tags.save()
    sound = analyze_sound(path)
    assert (sound.sound_hash, sound.notes) == (expected, ())


@pytest.mark.long
@pytest.mark.parametrize("magic", [png(), b"", b"\xff\xd8\xff\xe0"], ids=["PNG", "noise", "JPEG"])
def test_50_mb_cover_uses_little_memory(magic, tmp_path):
    path = tmp_path / "large.mp3"
    path.write_bytes(_WHOLE["mp3"])
    expected = analyze_sound(path)
    tags = ID3()
    noise = np.random.default_rng(0).bytes(50_000_000)
    tags.add(APIC(encoding=0, mime="image/png", type=3, desc="", data=magic + noise))
    tags.save(path)
    report = analyzed_alone(path)
    assert report["sound_hash"] == expected.sound_hash
    assert report["peak_mb"] < 300


@pytest.mark.parametrize("claim", [0, 1, 500, 3000, 1 << 20, (1 << 28) - 1])
def test_id3_tag_with_wrong_size_is_handled(claim, tmp_path):
    title = b"TIT2" + (6).to_bytes(4, "big") + b"\0\0" + b"\x03hello"
    size = bytes((claim >> shift) & 127 for shift in (21, 14, 7, 0))
    path = tmp_path / "lie.mp3"
    path.write_bytes(b"ID3\x03\0\0" + size + title + _WHOLE["mp3"])
    sound = read(path)
    if claim < len(_WHOLE["mp3"]) - 10_000:
        assert sound is not None
        assert sound.duration_s > 1.5


@pytest.mark.parametrize("claim", [0, 100, 5000, 0xFFFFFFFF])
@pytest.mark.parametrize("field", ["vendor", "number of comments"])
def test_vorbis_comment_longer_than_page_keeps_sound(field, claim, tmp_path):
    data = bytearray(_WHOLE["ogg"])
    at = data.index(b"\x03vorbis") + 7
    if field == "number of comments":
        at += 4 + int.from_bytes(data[at : at + 4], "little")
    data[at : at + 4] = claim.to_bytes(4, "little")
    _sum_again(data, data.rindex(b"OggS", 0, at))
    path = tmp_path / "lie.ogg"
    path.write_bytes(data)
    sound = read(path)
    # broken tags must not lose the music
    assert sound is not None
    assert sound.duration_s == pytest.approx(2, abs=0.05)


def _sum_again(data, start):
    """Recompute the checksum of the Ogg page that begins at `start`."""
    end = start + 27 + data[start + 26]
    end += sum(data[start + 27 : end])
    data[start + 22 : start + 26] = bytes(4)
    crc = 0
    for byte in data[start:end]:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc >> 31 else 0)) & 0xFFFFFFFF
    data[start + 22 : start + 26] = crc.to_bytes(4, "little")


@pytest.mark.parametrize("claim", [0, 1, 7, 9, 100, 0x7FFFFFFF, 0xFFFFFFFF])
@pytest.mark.parametrize("atom", [b"ftyp", b"mdat", b"moov", b"trak", b"stbl", b"stsz", b"stsc", b"stco"])
def test_mp4_atom_with_wrong_size_is_handled(atom, claim, tmp_path):
    data = bytearray(_WHOLE["m4a"])
    at = data.index(atom) - 4
    data[at : at + 4] = claim.to_bytes(4, "big")
    path = tmp_path / "lie.m4a"
    path.write_bytes(data)
    sound = read(path)
    assert sound is None or sound.duration_s < 2.2


@pytest.mark.parametrize("count", [0, 1, 1000, 0x7FFFFFFF, 0xFFFFFFFF])
@pytest.mark.parametrize("atom", [b"stsz", b"stts", b"stsc", b"stco"])
def test_mp4_table_with_wrong_length_is_handled(atom, count, tmp_path):
    data = bytearray(_WHOLE["m4a"])
    at = data.index(atom) + (12 if atom == b"stsz" else 8)
    data[at : at + 4] = count.to_bytes(4, "big")
    path = tmp_path / "lie.m4a"
    path.write_bytes(data)
    sound = read(path)
    assert sound is None or sound.duration_s < 2.2
    if count == 0x7FFFFFFF:  # memory for that many entries must not be allocated
        assert analyzed_alone(path)["peak_mb"] < 300


def test_non_utf8_tags_do_not_change_sound():
    wav = as_bytes(tone(rate=22050), 22050, subtype="PCM_16")
    title = b"Bj\xf6rk \xff\xc3"
    info = b"INFOINAM" + len(title).to_bytes(4, "little") + title
    at = wav.index(b"data")
    data = bytearray(wav[:at] + b"LIST" + len(info).to_bytes(4, "little") + info + wav[at:])
    data[4:8] = (len(data) - 8).to_bytes(4, "little")
    np.testing.assert_array_equal(load(bytes(data)), load(wav))


def test_broken_id3_tags_and_cover_are_ignored():
    text = b"TIT2" + (12).to_bytes(4, "big") + b"\0\0" + b"\x03\xff\xfe\xff\xc3\x28abcdef"
    picture = b"\0image/png\0\x03\0" + png()
    tag = text + b"APIC" + len(picture).to_bytes(4, "big") + b"\0\0" + picture
    size = bytes((len(tag) >> shift) & 127 for shift in (21, 14, 7, 0))
    mp3 = encoded(tone(seconds=2), "libmp3lame", "mp3")
    d = decode(b"ID3\x03\0\0" + size + tag + mp3)
    assert pitch(d.samples) == pytest.approx(440, abs=1)
    assert d.duration_s == pytest.approx(2, abs=0.1)  # encoder delay


# --- endless ---

_ALONE = """
import json, resource, sys
from pathlib import Path
from musicsim.audio import AudioError, analyze_sound
frames_to = Path(sys.argv[2]) if len(sys.argv) > 2 else None
try:
    sound = analyze_sound(sys.argv[1], frames_to=frames_to)
    report = {"sound_hash": sound.sound_hash, "duration_s": sound.duration_s, "loudest": sound.loudest}
except AudioError as error:
    report = {"error": str(error)}
status = Path("/proc/self/status")
if status.exists():  # ru_maxrss starts with what the process that started this one had
    peak_mb = int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
else:
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
print(json.dumps(report | {"peak_mb": peak_mb}))
"""


def analyzed_alone(path, *frames_to):
    """Analyze a file in a process of its own. Return results and peak memory, imports included."""
    run = subprocess.run(
        [sys.executable, "-c", _ALONE, str(path), *map(str, frames_to)],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return json.loads(run.stdout)


def silent_wav(path, hours, rate=22050):
    """Write a sparse file of 16-bit silence."""
    n_bytes = 2 * round(hours * 3600 * rate)
    head = struct.pack("<4sI8sIHHIIHH4sI", b"RIFF", 36 + n_bytes, b"WAVEfmt ", 16, 1, 1, rate, 2 * rate, 2, 16,
                       b"data", n_bytes)  # fmt: skip
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + n_bytes)


@pytest.mark.long
def test_hour_of_silence_uses_little_memory(tmp_path):
    path = tmp_path / "silence.flac"
    with soundfile.SoundFile(path, "w", 22050, 1, subtype="PCM_16") as file:
        minute = np.zeros(60 * 22050, np.int16)
        for _ in range(60):
            file.write(minute)
    assert path.stat().st_size < 2_000_000
    report = analyzed_alone(path)
    assert (report["duration_s"], report["loudest"]) == (3600, 0)
    assert report["peak_mb"] < 300


@pytest.mark.long
def test_memory_does_not_grow_with_length_of_silence(tmp_path):
    peaks = {}
    for hours in (0.25, 2.25):
        silent_wav(tmp_path / "long.wav", hours)
        report = analyzed_alone(tmp_path / "long.wav", tmp_path / "frames.npy")
        assert report["duration_s"] == hours * 3600
        frames = np.load(tmp_path / "frames.npy", mmap_mode="r")
        assert frames.shape == (1 + int(hours * 3600) * 22050 // 256, 13)
        peaks[hours] = report["peak_mb"]
    assert peaks[2.25] < 300
    # Sums over seconds grow by at most 4 MB per hour while windows are compared, and runs differ by 2 MB. Levels (50 MB
    # per hour) of more than 4 MB move to a file; some runs copy them for that.
    assert peaks[2.25] < peaks[0.25] + 10 + IN_MEMORY / (1 << 20)


@pytest.mark.long
def test_memory_does_not_grow_with_length_of_music(tmp_path):
    song = as_bytes(music(60, 22050), 22050, format="OGG", subtype="VORBIS")
    peaks = {}
    for minutes in (10, 40):
        path = tmp_path / "radio.ogg"  # a chain of links, as recorders of radio write it
        path.write_bytes(song * minutes)
        report = analyzed_alone(path, tmp_path / "frames.npy")
        assert report["duration_s"] == pytest.approx(minutes * 60, rel=1e-3)
        peaks[minutes] = report["peak_mb"]
    assert peaks[40] < peaks[10] + 15
