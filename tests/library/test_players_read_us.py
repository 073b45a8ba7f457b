"""Tests that VLC reads our playlists as written: paths, titles and their order."""

from dataclasses import replace
from pathlib import Path

import pytest

from musicsim.library.media.playlist_files import PLAYLIST_FORMATS, location
from tests.waiting import PATIENCE_S, until

vlc = pytest.importorskip("vlc", reason="python-vlc is not installed")

TITLES = ["Ti & <tle>", "q\"uo'te", "100% 50%25", "Ünï 日本 ☃", "a # b ? c", "; semi", "= is", "last"]
NAMES = [
    *("a b.mp3", "100%.mp3", "50%41.mp3", "a#b.mp3", "q?x.mp3", "é ü 日本.mp3", 'it\'s "q" & <x>.mp3'),
    *(" lead.mp3", "trail .mp3", "a:b.mp3", "#1.mp3", ";x.mp3", "back\\slash.mp3", "a;b=c.mp3", "http:x.mp3"),
]
RAW = [name for name in NAMES if not set("#?%") & set(name)]  # the forms in which VLC reads relative M3U and PLS


@pytest.fixture(scope="module")
def player():
    try:
        instance = vlc.Instance("--quiet")
    except Exception as error:
        pytest.skip(f"libvlc does not start: {error}")
    if instance is None:
        pytest.skip("libvlc is not installed (apt: libvlc5 vlc-plugin-base)")
    return instance


def entries(player, path):
    """Return MRL, title and artist of each entry that VLC finds in a playlist."""
    media = player.media_new(str(path))
    media.parse_with_options(vlc.MediaParseFlag.local, int(1000 * PATIENCE_S))
    until(lambda: media.get_parsed_status().value)
    found = media.subitems()
    items = [found.item_at_index(i) for i in range(found.count())]
    return [(m.get_mrl(), m.get_meta(vlc.Meta.Title), m.get_meta(vlc.Meta.Artist)) for m in items]


def same_file(mrl):
    """Normalize the quoting of an address."""
    from urllib.parse import quote, unquote_to_bytes

    return quote(unquote_to_bytes(mrl))


def songs_at(tiny_library, folder, names):
    some = tiny_library.songs()
    return [
        replace(some[i % len(some)], path=folder / name, title=TITLES[i % len(TITLES)], artist=f"Ärtist {i}")
        for i, name in enumerate(names)
    ]


@pytest.mark.parametrize("kind", ["m3u8", "xspf", "pls"])
@pytest.mark.parametrize("is_relative", [False, True])
def test_vlc_reads_exported_playlists(player, tiny_library, tmp_path, kind, is_relative):
    folder = tmp_path / "mus ic"
    names = RAW if is_relative and kind != "xspf" else NAMES
    songs = songs_at(tiny_library, folder, names) + songs_at(tiny_library, tmp_path, names[:3])
    songs.append(songs[0])  # a song may occur twice
    path = tmp_path / f"list.{kind}"
    path.write_bytes(PLAYLIST_FORMATS[kind]("My list", songs, relative_to=tmp_path if is_relative else None))
    read = entries(player, path)
    assert [same_file(mrl) for mrl, _, _ in read] == [same_file(location(s.path)) for s in songs]
    if kind == "pls":  # its only line for names contains both
        assert [title for _, title, _ in read] == [f"{s.artist} - {s.title}" for s in songs]
    else:
        assert [(title, artist) for _, title, artist in read] == [(s.title, s.artist) for s in songs]


@pytest.mark.parametrize("kind", ["m3u8", "xspf", "pls"])
def test_vlc_plays_nothing_for_missing_song(player, tiny_library, tmp_path, kind):
    songs = songs_at(tiny_library, Path("/music"), NAMES[:3])
    songs[1] = replace(songs[1], is_missing=True)
    path = tmp_path / f"list.{kind}"
    path.write_bytes(PLAYLIST_FORMATS[kind]("My list", songs))
    mrls = [mrl for mrl, _, _ in entries(player, path)]
    here = [location(s.path) for s in songs if not s.is_missing]
    assert [mrl for mrl in mrls if mrl.startswith("file:")] == here
    assert all(mrl == "vlc://nop" for mrl in mrls if not mrl.startswith("file:"))
