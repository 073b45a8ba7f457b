"""Tests of the option `--mix` of `musicsim playlist`."""

import json

import pytest
import soundfile

from musicsim.explorer.refresh.refresh import refresh
from tests.command import run
from tests.extensions.mixtape.loops import LEFT, RATE, loop


def test_playlist_is_rendered_as_mix(tiny_library, tmp_path):
    asked = ("playlist", "-n", 12, "--seed", 1, "--json")
    told = json.loads(run(*asked, "--mix", tmp_path / "mix.wav", library=tiny_library.folder)[0])
    assert told["mix"] == str(tmp_path / "mix.wav")
    assert told["file"] is None
    assert soundfile.info(tmp_path / "mix.wav").duration > 4
    assert json.loads(run(*asked, library=tiny_library.folder)[0])["mix"] is None


def test_rejects_unknown_mix_format(tiny_library, tmp_path):
    with pytest.raises(ValueError, match="must end in one of"):
        run("playlist", "-n", 2, "--mix", tmp_path / "mix.pdf", library=tiny_library.folder)


@pytest.mark.parametrize("option", [("--whole",), ("--beats", 8), ("--mix-order",), ("--cue",)])
def test_options_of_mix_need_mix(tiny_library, option):
    _, err = run("playlist", "-n", 2, *option, library=tiny_library.folder, expect=2)
    assert "add --mix FILE" in err


@pytest.mark.parametrize("options", [("--beats", 7), ("--mix-seconds", 0)])
def test_rejects_invalid_options_of_mix(tiny_library, tmp_path, options):
    run("playlist", "--mix", tmp_path / "mix.wav", *options, library=tiny_library.folder, expect=2)
    assert list(tmp_path.glob("mix*")) == []


def test_mix_with_fades_on_beat_and_cue_sheet(store, tmp_path):
    (tmp_path / "music").mkdir()
    for i, tempo in enumerate((118, 122, 120)):
        soundfile.write(tmp_path / "music" / f"{i}.flac", loop(tempo, 21, channel=LEFT, seed=i), RATE)
    store.add(tmp_path / "music", n_workers=1)
    refresh(store)
    asked = ("playlist", "-n", 3, "--seed", 1, "--json", "--mix", tmp_path / "mix.flac", "--cue")
    asked = (*asked, "--beats", 16, "--mix-order", "--whole")
    told = json.loads(run(*asked, library=store.folder)[0])
    assert (told["mix"], told["cue"]) == (str(tmp_path / "mix.flac"), str(tmp_path / "mix.cue"))
    lines = [note for note in told["notes"] if note.startswith("mix ")]
    assert len(lines) == 3
    assert "(start)" in lines[0]
    assert all("(16 beats, 1" in line for line in lines[1:])
    cue = (tmp_path / "mix.cue").read_text(encoding="utf-8")
    assert 'FILE "mix.flac" WAVE' in cue
    assert cue.count("INDEX 01") == 3
    # three songs of up to 21 s, with two fades of about 8 s
    assert 40 < soundfile.info(tmp_path / "mix.flac").duration < 48
