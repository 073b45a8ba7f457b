"""Tests of rendering: the right notes for the right time from modules and MIDI files, and clear errors without it."""

import io

import numpy as np
import pytest

from musicsim.audio import decode, note_tags, rendering
from musicsim.errors import AudioDecodeError, NoSoundError
from tests.audio.signals import pitch
from tests.notes import MOD_S, midi, mod, needs_fluidsynth, needs_openmpt

HEADS = {
    "MIDI": b"MThd\0\0\0\6\0\0\0\1\0\x60MTrk\0\0\0\4\0\xff\x2f",
    "XM": b"Extended Module: a song" + bytes(300),
    "IT": b"IMPMa song" + bytes(300),
    "S3M": b"a song".ljust(28, b"\0") + b"\x1a\x10".ljust(16, b"\0") + b"SCRM" + bytes(300),
    "MOD": b"a song".ljust(1080, b"\0") + b"16CH" + bytes(100),
}


def cents(hz, expected_hz):
    return 1200 * np.log2(hz / expected_hz)


@needs_openmpt
def test_module_plays_its_notes_for_its_time():
    sound = decode(mod())
    assert sound.notes == ()
    assert sound.duration_s == pytest.approx(MOD_S, abs=0.02)
    assert cents(pitch(sound.samples), 440) == pytest.approx(0, abs=2)
    # half the period, an octave higher, in the second half
    octave = decode(mod(periods=(254, 127))).samples
    low, high = octave[: 3 * 22050], octave[4 * 22050 : 7 * 22050]
    assert cents(pitch(low), 440) == pytest.approx(0, abs=2)
    assert cents(pitch(high), 880) == pytest.approx(0, abs=2)


@needs_openmpt
def test_module_without_end_plays_once():
    assert decode(mod(repeats=True)).duration_s == pytest.approx(MOD_S, abs=0.02)


@needs_fluidsynth
def test_midi_file_plays_its_notes_for_its_time():
    sound = decode(midi(seconds=4))
    assert sound.notes == ()
    assert 4 <= sound.duration_s < 10  # the player waits until the note has faded
    assert np.abs(sound.samples[5 * 22050 :]).max(initial=0) < 0.1 * np.abs(sound.samples).max()
    held = sound.samples[22050 : 4 * 22050]
    assert cents(pitch(held), 440) == pytest.approx(0, abs=10)  # soundfonts are not exact
    octave = decode(midi(note=57)).samples[22050 : 4 * 22050]
    assert cents(pitch(octave), 220) == pytest.approx(0, abs=10)


@needs_fluidsynth
def test_midi_file_in_riff_equals_plain_one():
    plain = midi()
    riff = b"RIFF" + (len(plain) + 12).to_bytes(4, "little") + b"RMIDdata" + len(plain).to_bytes(4, "little") + plain
    np.testing.assert_array_equal(decode(riff).samples, decode(plain).samples)


@pytest.mark.parametrize(
    "content", [pytest.param(mod(), marks=needs_openmpt), pytest.param(midi(), marks=needs_fluidsynth)]
)
def test_long_rendering_is_cut(monkeypatch, content):
    monkeypatch.setattr(rendering, "_MAX_S", 2)
    assert decode(content).duration_s == pytest.approx(2, abs=0.1)


def test_large_file_is_refused(monkeypatch):
    monkeypatch.setattr(rendering, "_MAX_BYTES", 1 << 20)
    with pytest.raises(NoSoundError, match=r"^song\.mod is a tracker module \(MOD\) larger than 1 MB\. Render it"):
        decode(mod() + bytes(1 << 20), name="song.mod")


@pytest.mark.parametrize("kind", HEADS)
def test_error_names_missing_library(monkeypatch, kind):
    monkeypatch.setattr(rendering, "_openmpt", lambda: None)
    monkeypatch.setattr(rendering, "_fluidsynth", lambda: None)
    what, library, package = (
        ("MIDI file", "FluidSynth", "libfluidsynth3")
        if kind == "MIDI"
        else (rf"tracker module \({kind}\)", "libopenmpt", "libopenmpt0")
    )
    words = f"^song.mp3 is a {what}, but {library} is not installed. Install it, on Debian as {package}. Then retry"
    with pytest.raises(NoSoundError, match=words):
        decode(HEADS[kind], name="song.mp3")


@needs_fluidsynth
def test_error_names_wrong_soundfont(monkeypatch, tmp_path):
    (tmp_path / "words.sf2").write_text("no instruments")
    for name in ("words.sf2", "missing.sf2"):
        monkeypatch.setenv("MUSICSIM_SOUNDFONT", str(tmp_path / name))
        with pytest.raises(NoSoundError, match=rf"{name} is not a soundfont. Set MUSICSIM_SOUNDFONT to"):
            decode(midi())
    monkeypatch.delenv("MUSICSIM_SOUNDFONT")
    monkeypatch.setattr(rendering, "_SOUNDFONT_FOLDERS", (str(tmp_path / "no folder"),))
    with pytest.raises(NoSoundError, match=r"there is no soundfont\. Install one"):
        decode(midi())


@needs_openmpt
@needs_fluidsynth
@pytest.mark.parametrize("kind", ["MIDI", "XM", "S3M"])  # an IT or MOD file with nothing in it is silent
def test_damaged_file_has_no_sound(kind):
    content = HEADS[kind][:22] if kind == "MIDI" else HEADS[kind]
    with pytest.raises(AudioDecodeError, match="nothing in it can be decoded"):
        decode(content)


@needs_openmpt
def test_module_has_title():
    assert ("title", "Größe") in note_tags(io.BytesIO(mod("Größe")))
    assert note_tags(io.BytesIO(HEADS["XM"])) == []


@pytest.mark.parametrize(
    ("content", "titles"),
    [
        (midi("A song"), ["A song"]),
        (midi("Track 1"), []),
        (midi("untitled"), []),
        (midi("A song")[:25], []),
        (midi("Größe"), ["Größe"]),
        (midi("A song").replace(b"MTrk", b"????"), []),
        (b"fLaC" + bytes(2000), []),
        (b"", []),
    ],
)
def test_midi_title_is_read_without_library(monkeypatch, content, titles):
    monkeypatch.setattr(rendering, "_openmpt", lambda: None)
    monkeypatch.setattr(rendering, "_fluidsynth", lambda: None)
    assert note_tags(io.BytesIO(content)) == [("title", title) for title in titles]
