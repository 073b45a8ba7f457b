"""Tests of reading and writing tags in every format, of patches, and of the measured loudness."""

import mutagen
import numpy as np
import pytest
import soundfile
import soxr
from hypothesis import given
from hypothesis import strategies as st
from mutagen.apev2 import APEv2
from mutagen.id3 import ID3

from experiments.audible import loudness_of_samples
from musicsim.errors import LibraryError
from musicsim.extensions.tag_writing.formats import TAGS, TaggedFile
from musicsim.extensions.tag_writing.loudness import measure_loudness
from musicsim.extensions.tag_writing.patches import make_patch
from musicsim.extensions.tag_writing.replacing import hash_sound
from musicsim.extensions.tag_writing.values import is_same
from tests.extensions.tag_writing.sounds import FORMATS, PICTURE, give_old_id3, write_format
from tests.sounds import SAMPLE_RATE, sound

VALUES = {
    "tempo": ("128",),
    "key": ("F#m",),
    "gain": ("-7.31 dB",),
    "peak": ("0.987654",),
    "region": ("slow, dark",),
    "mood": ("bright", "calm"),
}
# as mutagen names them in each format
NAMES = {
    "id3": ("TBPM", "TKEY", "TXXX:REPLAYGAIN_TRACK_GAIN", "TXXX:MUSICSIM_REGION", "TMOO"),
    "vorbis": ("bpm", "initialkey", "replaygain_track_gain", "musicsim_region", "mood"),
    "opus": ("bpm", "initialkey", "r128_track_gain", "musicsim_region", "mood"),
    "ape": ("BPM", "INITIALKEY", "REPLAYGAIN_TRACK_GAIN", "MUSICSIM_REGION", "MOOD"),
    "mp4": ("tmpo", *(f"----:com.apple.iTunes:{n}" for n in ("initialkey", "replaygain_track_gain"))),
    "asf": ("WM/BeatsPerMinute", "WM/InitialKey", "replaygain_track_gain", "MUSICSIM_REGION", "WM/Mood"),
}
FAMILY = {".flac": "vorbis", ".ogg": "vorbis", ".opus": "opus", ".m4a": "mp4", ".wma": "asf", ".wv": "ape"}


@pytest.mark.parametrize("ending", FORMATS)
def test_values_are_written_in_every_format(tmp_path, ending):
    path = write_format(tmp_path / f"song{ending}")
    heard, before = hash_sound(path), path.read_bytes()
    file = TaggedFile(path)
    assert file.read() == {}
    others = file.others()
    values = {tag: VALUES[tag] for tag in file.tags}
    assert set(values) == set(TAGS) - ({"peak"} if ending == ".opus" else set())
    file.write(values)
    written = TaggedFile(path)
    found = written.read()
    assert all(is_same(tag, found[tag], values[tag]) for tag in values), found
    assert written.others() == others
    assert hash_sound(path) == heard
    assert path.read_bytes() != before
    assert set(NAMES[FAMILY.get(ending, "id3")]) <= set(mutagen.File(path).keys())


def test_opus_gain_has_the_reference_of_its_standard(tmp_path):
    path = write_format(tmp_path / "song.opus")
    TaggedFile(path).write({"gain": ("-7.00 dB",)})
    assert mutagen.File(path)["r128_track_gain"] == [str(-12 * 256)]


def test_old_kinds_of_tags_stay_in_mp3(tmp_path):
    path = give_old_id3(write_format(tmp_path / "old.mp3"))
    assert path.read_bytes()[3] == 3
    tail = path.read_bytes()[-128:]
    file = TaggedFile(path)
    assert file.read() == {"gain": ("-3.00 dB",)}
    file.write(VALUES)
    assert path.read_bytes()[3] == 3, "still version 2.3"
    assert path.read_bytes()[-128:] == tail
    assert APEv2(path)["Album"] == "Of the APE tag"
    tags = ID3(path, translate=False, load_v1=False)
    assert (tags["TYER"].text, tags["TIT2"].text) == (["1999"], ["Old title"])
    gains = [frame.text for key, frame in tags.items() if key.casefold() == "txxx:replaygain_track_gain"]
    assert gains == [["-7.31 dB"]], "the name in other letters is replaced"
    assert TaggedFile(path).read() == VALUES


def test_pictures_stay(tmp_path):
    path = write_format(tmp_path / "song.wav")
    TaggedFile(path).write(VALUES)
    assert mutagen.File(path).tags["APIC:"].data == PICTURE


def test_formats_without_tags_give_a_reason(tmp_path):
    path = tmp_path / "song.au"
    soundfile.write(path, sound("tones", 0, 1.0), SAMPLE_RATE)
    with pytest.raises(LibraryError, match=r"song\.au: this format has no tags that can be written"):
        TaggedFile(path)


# --- patches ----------------------------------------------------------------------------------------------------------

_CHUNKS = st.lists(st.binary(max_size=60), max_size=6).map(b"".join)


@given(old=_CHUNKS, new=_CHUNKS, common=st.binary(max_size=200))
def test_patches_restore_any_file(tmp_path_factory, old, new, common):
    folder = tmp_path_factory.mktemp("patch")
    for name, data in (("old", old + common + new), ("new", new + common)):
        (folder / name).write_bytes(data)
    for before, after in (("old", "new"), ("new", "old")):
        make_patch(folder / before, folder / after).restore(folder / after, folder / "restored")
        assert (folder / "restored").read_bytes() == (folder / before).read_bytes()


@pytest.mark.parametrize("ending", [*FORMATS, "old.mp3"])
def test_patches_are_small(tmp_path, ending):
    path = write_format(tmp_path / f"song{ending.removeprefix('old')}", seconds=10)
    if ending == "old.mp3":
        give_old_id3(path)
    original = path.read_bytes()
    TaggedFile(path).write({tag: VALUES[tag] for tag in TaggedFile(path).tags})
    (tmp_path / "old").write_bytes(original)
    patch = make_patch(tmp_path / "old", path)
    patch.restore(path, tmp_path / "restored")
    assert (tmp_path / "restored").read_bytes() == original
    assert len(patch.runs) < 5_000


# --- loudness ---------------------------------------------------------------------------------------------------------


def test_loudness_of_a_full_scale_sine_is_that_of_the_standard(tmp_path):
    for n_channels, expected in ((1, -3.01), (2, 0.0)):
        t = np.arange(48_000 * 3) / 48_000
        y = np.repeat(np.sin(2 * np.pi * 997 * t)[:, None], n_channels, axis=1)
        soundfile.write(tmp_path / "sine.wav", y, 48_000, subtype="FLOAT")
        measured = measure_loudness(tmp_path / "sine.wav")
        assert measured.lufs == pytest.approx(expected, abs=0.01)  # the standard gives two decimals
        assert measured.peak == pytest.approx(1.0, abs=1e-3)


def test_quiet_parts_do_not_count(tmp_path):
    loud = 0.5 * sound("noise", 1, 6.0)
    soundfile.write(tmp_path / "loud.wav", loud, SAMPLE_RATE, subtype="FLOAT")
    soundfile.write(tmp_path / "both.wav", np.concatenate([loud, 1e-3 * loud]), SAMPLE_RATE, subtype="FLOAT")
    alone, both = (measure_loudness(tmp_path / name).lufs for name in ("loud.wav", "both.wav"))
    assert both == pytest.approx(alone, abs=0.2)  # the blocks at the border are partly loud


@pytest.mark.parametrize("rate", [SAMPLE_RATE, 48_000])
def test_loudness_equals_formula_of_standard(tmp_path, rng, rate):
    y = 0.3 * sound("clicks", 3, 8.0) + 0.2 * sound("tones", 4, 8.0)
    y *= np.repeat(rng.uniform(0.005, 1.0, 16), len(y) // 16 + 1)[: len(y)]
    y = soxr.resample(y, SAMPLE_RATE, rate)
    soundfile.write(tmp_path / "song.wav", y, rate, subtype="FLOAT")
    # the formula is for 48 kHz, so that other rates are resampled
    expected = loudness_of_samples(y, rate)
    assert measure_loudness(tmp_path / "song.wav").lufs == pytest.approx(expected, abs=0.02 if rate == 48_000 else 0.05)


def test_silence_has_no_loudness(tmp_path):
    for seconds, y in ((2.0, np.zeros(2 * SAMPLE_RATE)), (0.3, sound("tones", 0, 0.3))):
        soundfile.write(tmp_path / "song.wav", y, SAMPLE_RATE)
        assert measure_loudness(tmp_path / "song.wav") is None, seconds
