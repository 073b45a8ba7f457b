"""Playlists for other programs parse again, whatever the titles hold."""

import json
import os
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlparse
from xml.etree import ElementTree

import pytest

from musicsim.library.exporters import jspf, m3u8, xspf

HOSTILE = 'Line\nbreak <&"\x07 ☃'


@pytest.fixture
def songs(tiny_library):
    first, second, *_ = tiny_library.songs()
    return [replace(first, title=HOSTILE), replace(second, artist=None)]


def test_m3u8_has_a_line_a_song_and_the_files_exist(songs):
    lines = m3u8("My list", songs).decode().splitlines()
    assert lines[0] == "#EXTM3U"
    assert [Path(line).exists() for line in lines if not line.startswith("#")] == [True, True]
    assert sum(line.startswith("#EXTINF:4,") for line in lines) == 2


def test_m3u8_relative_paths_lead_there_from_the_folder(songs, tmp_path):
    lines = m3u8("x", songs, relative_to=tmp_path).decode().splitlines()
    paths = [line for line in lines if not line.startswith("#")]
    assert all(not os.path.isabs(p) and (tmp_path / p).resolve().exists() for p in paths)


def test_m3u8_keeps_the_bytes_of_a_name_that_is_not_utf8(songs):
    odd = replace(songs[0], path=Path("/music") / os.fsdecode(b"caf\xe9.mp3"))
    assert b"/music/caf\xe9.mp3\n" in m3u8("x", [odd])


def test_m3u8_refuses_a_line_break_in_a_path(songs):
    with pytest.raises(ValueError, match="line break"):
        m3u8("x", [replace(songs[0], path=Path("/music/a\nb.mp3"))])


def test_m3u8_a_path_like_a_comment_is_still_a_path(songs):
    odd = replace(songs[0], path=Path("/music/#1.mp3"))
    assert m3u8("x", [odd], relative_to=Path("/music")).endswith(b"\n./#1.mp3\n")


def test_xspf_parses_and_its_locations_exist(songs):
    root = ElementTree.fromstring(xspf("My list", songs))
    space = {"x": "http://xspf.org/ns/0/"}
    locations = [e.text for e in root.findall("x:trackList/x:track/x:location", space)]
    assert [Path(unquote(urlparse(location).path)).exists() for location in locations] == [True, True]
    assert root.find("x:trackList/x:track/x:title", space).text == HOSTILE.replace("\x07", "")


def test_jspf_parses_and_omits_what_is_unknown(songs):
    tracks = json.loads(jspf("My list", songs))["playlist"]["track"]
    assert [t["title"] for t in tracks] == [HOSTILE, songs[1].title]
    assert "creator" not in tracks[1]
    assert tracks[0]["duration"] == 4000
