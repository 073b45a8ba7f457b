"""Tests that playlists for other programs can be parsed again for any title."""

import json
import os
from dataclasses import dataclass, fields, replace
from pathlib import Path, PureWindowsPath
from urllib.parse import unquote, urlparse
from xml.etree import ElementTree

import pytest

from musicsim.library.media.playlist_files import (
    PLAYLIST_FORMATS,
    PLAYLIST_MIME,
    jspf,
    location,
    m3u8,
    missing,
    pls,
    xspf,
)
from musicsim.library.stores.songs import Song

HOSTILE = 'Line\nbreak <&"\x07 ☃'


@pytest.fixture
def songs(tiny_library):
    first, second, *_ = tiny_library.songs()
    return [replace(first, title=HOSTILE), replace(second, artist=None)]


def test_m3u8_has_line_per_song_and_existing_files(songs):
    lines = m3u8("My list", songs).decode().splitlines()
    assert lines[0] == "#EXTM3U"
    assert [Path(line).exists() for line in lines if not line.startswith("#")] == [True, True]
    assert sum(line.startswith("#EXTINF:4,") for line in lines) == 2


def test_m3u8_relative_paths_resolve_from_folder(songs, tmp_path):
    lines = m3u8("x", songs, relative_to=tmp_path).decode().splitlines()
    paths = [line for line in lines if not line.startswith("#")]
    assert all(not os.path.isabs(p) and (tmp_path / p).resolve().exists() for p in paths)


def test_m3u8_keeps_bytes_of_non_utf8_name(songs):
    odd = replace(songs[0], path=Path("/music") / os.fsdecode(b"caf\xe9.mp3"))
    assert b"/music/caf\xe9.mp3\n" in m3u8("x", [odd])


def test_m3u8_rejects_line_break_in_path(songs):
    with pytest.raises(ValueError, match="line break"):
        m3u8("x", [replace(songs[0], path=Path("/music/a\nb.mp3"))])


def test_m3u8_path_like_comment_is_prefixed(songs):
    odd = replace(songs[0], path=Path("/music/#1.mp3"))
    assert m3u8("x", [odd], relative_to=Path("/music")).endswith(b"\n./#1.mp3\n")


def test_xspf_parses_and_locations_exist(songs):
    root = ElementTree.fromstring(xspf("My list", songs))
    space = {"x": "http://xspf.org/ns/0/"}
    locations = [e.text for e in root.findall("x:trackList/x:track/x:location", space)]
    assert [Path(unquote(urlparse(location).path)).exists() for location in locations] == [True, True]
    assert root.find("x:trackList/x:track/x:title", space).text == HOSTILE.replace("\x07", "")


def test_jspf_parses_and_omits_unknown_fields(songs):
    tracks = json.loads(jspf("My list", songs))["playlist"]["track"]
    assert [t["title"] for t in tracks] == [HOSTILE, songs[1].title]
    assert "creator" not in tracks[1]
    assert tracks[0]["duration"] == 4000


def test_pls_numbers_entries_and_files_exist(songs):
    lines = pls("My list", songs).decode().splitlines()
    assert lines[:2] == ["[playlist]", "X-GNOME-Title=My list"]
    values = dict(line.split("=", 1) for line in lines[1:])
    assert [Path(values[f"File{i}"]).exists() for i in (1, 2)] == [True, True]
    assert (values["Title2"], values["Length2"]) == (songs[1].title, "4"), "no artist, no dash"
    assert (values["NumberOfEntries"], values["Version"]) == ("2", "2")


def test_missing_songs_are_named_without_file(songs):
    gone = [replace(songs[0], is_missing=True), songs[1]]
    assert missing(gone) == gone[:1]
    for kind, writer in PLAYLIST_FORMATS.items():
        content = unquote(writer("x", gone).decode())
        assert songs[0].path.name not in content, kind
        assert songs[1].path.name in content, kind
        assert "Line" in content, "it is named"
    assert "# missing: " in m3u8("x", gone).decode()
    assert "NumberOfEntries=1" in pls("x", gone).decode()
    assert "location" not in json.loads(jspf("x", gone))["playlist"]["track"][0]


def test_windows_paths_become_file_addresses():
    assert location(PureWindowsPath(r"C:\My Music\a#b.mp3")) == "file:///C:/My%20Music/a%23b.mp3"
    assert location(PureWindowsPath(r"\\server\share\a.mp3")) == "file://server/share/a.mp3"


def test_paths_with_special_characters_become_addresses(songs):
    for name in ("a#b.mp3", "a?b.mp3", "a%41.mp3"):
        odd = [replace(songs[0], path=Path("/music") / name)]
        for writer in (m3u8, pls):
            assert f"file:///music/{name[0]}%" in writer("x", odd).decode()
            assert name in writer("x", odd, relative_to=Path("/music")).decode()
    assert b"/music/100%.mp3" in m3u8("x", [replace(songs[0], path=Path("/music/100%.mp3"))])


# xspf.org/spec (version 1, 4.1.1.2.14.1) and wiki.xiph.org/JSPF: the fields of a track and their JSON types
TRACK_FIELDS = {
    **dict.fromkeys(("title", "creator", "annotation", "info", "image", "album"), str),
    **dict.fromkeys(("location", "identifier", "link", "meta"), list),
    **dict.fromkeys(("trackNum", "duration"), int),
    "extension": dict,
}


def test_jspf_follows_specification_and_matches_xspf(songs):
    @dataclass(frozen=True)
    class Tagged(Song):
        mb_recording_id: str | None = None

    mbid = "c7d0bf6e-b2aa-4ffa-bded-2448415b39b0"
    known = Tagged(**{f.name: getattr(songs[0], f.name) for f in fields(Song)} | {"mb_recording_id": mbid})
    listed = [replace(known, title="One"), songs[1]]
    document = json.loads(jspf("My list", listed))
    assert set(document) == {"playlist"}
    assert set(document["playlist"]) == {"title", "track"}
    tracks = document["playlist"]["track"]
    for track in tracks:
        assert {name: type(value) for name, value in track.items()} == {name: TRACK_FIELDS[name] for name in track}
    assert tracks[0]["identifier"] == [f"https://musicbrainz.org/recording/{mbid}"]
    space = "{http://xspf.org/ns/0/}"
    for element, track in zip(
        ElementTree.fromstring(xspf("My list", listed)).iter(f"{space}track"), tracks, strict=True
    ):
        said = {child.tag.removeprefix(space): child.text for child in element}
        flat = {name: str(*value) if isinstance(value, list) else str(value) for name, value in track.items()}
        assert said == flat


def test_every_format_has_mime_type():
    assert set(PLAYLIST_MIME) == set(PLAYLIST_FORMATS)
