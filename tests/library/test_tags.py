"""Tags of every format; and no tag, however wrong, costs a song."""

import mutagen
import pytest

from musicsim.library.tags import read_tags
from tests.sounds import write_song

TAGS = {
    "title": "A Title",
    "artist": "An Artist",
    "albumartist": "Various",
    "album": "An Album",
    "tracknumber": "3/12",
    "date": "1987-05-01",
    "genre": "Dub",
}


@pytest.mark.parametrize("ending", ["flac", "ogg", "mp3"])
def test_tags_come_back_from_every_easy_format(tmp_path, ending):
    tags = read_tags(write_song(tmp_path / f"x.{ending}", **TAGS))
    assert (tags.title, tags.artist, tags.album_artist, tags.album) == (
        "A Title", "An Artist", "Various", "An Album",
    )  # fmt: skip
    assert (tags.track, tags.year, tags.genre) == (3, 1987, "Dub")


@pytest.mark.parametrize("ending", ["wav", "aiff"])
def test_id3_frames_of_wav_and_aiff_are_read(tmp_path, ending):
    from mutagen.id3 import TALB, TCON, TDRC, TIT2, TPE1, TRCK

    path = write_song(tmp_path / f"x.{ending}")
    audio = mutagen.File(path)
    audio.add_tags()
    for frame in (TIT2, TPE1, TALB, TCON, TDRC, TRCK):
        name = {"TIT2": "title", "TPE1": "artist", "TALB": "album", "TCON": "genre", "TDRC": "date"}
        audio.tags.add(frame(encoding=3, text=TAGS[name.get(frame.__name__, "tracknumber")]))
    audio.save()
    tags = read_tags(path)
    assert (tags.title, tags.artist, tags.year, tags.track) == ("A Title", "An Artist", 1987, 3)


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("07 - So It Goes.flac", "So It Goes"),
        ("1999.flac", "1999"),
        ("03.flac", "03"),
        ("plain.flac", "plain"),
    ],
)
def test_without_a_title_the_files_name_stands_in(tmp_path, name, title):
    tags = read_tags(write_song(tmp_path / name))
    assert tags.title == title
    assert tags.artist is None


def test_monstrous_tags_are_cut_and_control_characters_go(tmp_path):
    path = write_song(
        tmp_path / "x.flac", title="a\x00b\nc" + "x" * 100_000, artist="\x07", date="the year 12"
    )
    tags = read_tags(path)
    assert len(tags.title) <= 300
    assert tags.title.isprintable()
    assert tags.title.startswith("a b c")
    assert tags.artist is None
    assert tags.year is None


def test_a_file_whose_tags_are_garbage_keeps_its_name(tmp_path):
    path = tmp_path / "broken.mp3"
    path.write_bytes(b"ID3\x04\x00\xff\x7f\x7f\x7f\x7f" + bytes(range(256)) * 20)
    assert read_tags(path).title == "broken"
