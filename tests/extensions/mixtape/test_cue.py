"""Tests of cue sheets, read by a parser that follows the format's description."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from musicsim.extensions.mixtape.cue import write_cue
from musicsim.extensions.mixtape.mixtape import Mix


def read_cue(text):
    """Return file name, type, and (number, title, performer, seconds) of each track."""
    assert re.search("\r(?!\n)|(?<!\r)\n", text) is None
    head, *tracks = re.split(r"^  TRACK ", text.replace("\r\n", "\n"), flags=re.MULTILINE)
    name, kind = re.search(r'^FILE "([^"]*)" (\w+)$', head, re.MULTILINE).groups()
    found = []
    for track in tracks:
        number, *_ = re.match(r"(\d\d) AUDIO\n", track).groups()
        title = re.search(r'^    TITLE "([^"\n]*)"$', track, re.MULTILINE)[1]
        performer = re.search(r'^    PERFORMER "([^"\n]*)"$', track, re.MULTILINE)
        minutes, seconds, frames = map(
            int, re.search(r"^    INDEX 01 (\d+):(\d\d):(\d\d)$", track, re.MULTILINE).groups()
        )
        assert seconds < 60
        assert frames < 75
        found.append((int(number), title, performer and performer[1], 60 * minutes + seconds + frames / 75))
    return name, kind, found


@pytest.mark.parametrize(("ending", "kind"), [(".mp3", "MP3"), (".flac", "WAVE"), (".opus", "WAVE")])
def test_cue_sheet_lists_songs_with_times_of_75_frames_per_second(tiny_library, ending, kind):
    songs = tuple(tiny_library.songs()[:4])
    starts = (0.0, 59.999, 61.51, 6012.34)
    mix = Mix(Path(f"evening{ending}"), 7000.0, starts, (), (), songs)
    name, kind_read, tracks = read_cue(write_cue(mix, f"evening{ending}", "Evening"))
    assert (name, kind_read) == (f"evening{ending}", kind)
    assert [track[:3] for track in tracks] == [(n, song.title, song.artist) for n, song in enumerate(songs, 1)]
    for track, start_s in zip(tracks, starts, strict=True):
        assert 0 <= start_s - track[3] < 1 / 75


def test_quotation_marks_and_line_breaks_stay_inside_a_title(tiny_library):
    song = replace(tiny_library.songs()[0], title='The "Late"\r\nSong', artist=None, stand_in=None)
    mix = Mix(Path("mix.wav"), 5.0, (0.0,), (), (), (song,))
    _, _, tracks = read_cue(write_cue(mix, "mix.wav", 'a "title"'))
    assert tracks == [(1, "The 'Late' Song", None, 0.0)]
