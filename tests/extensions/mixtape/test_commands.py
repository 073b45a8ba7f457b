"""Tests of the option `--mix` of `musicsim playlist`."""

import json

import pytest
import soundfile

from tests.command import run


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
