"""Commands that find no song: the message, the exit code and the JSON output."""

import json

import pytest

from tests.command import run, run_to_end


@pytest.fixture
def library(tiny_library):
    """The folder of a library with four songs each by three artists; song 1 is by the artist of "Genre clicks"."""
    assert tiny_library.song(1).genre == "Genre clicks"
    return tiny_library.folder


NOTHING = [
    (("similar", 1, "--genre", "Genre clicks", "--tempo", 1, 2), "no song matches; without --tempo there are 3."),
    (("similar", 1, "--artist", "Nobody"), "no song matches; without --artist there are 11."),
    (("similar", 1, "--artist", "Nobody", "--tempo", 1, 2), "no song matches: use fewer filters."),
    (("similar", "--words", "noise clicks"), "no song matches; without “noise” there are 4."),
    (("similar", "--like", 1, "--words", "noise clicks"), "no song matches; without “clicks” there are 4."),
    (("playlist", "--seed", 1, "--genre", "Genre noise", "--seconds", 1, 2), "without --seconds there are 4."),
    (("list", "title:xyzzy"), "no song matches 'title:xyzzy'."),
]


@pytest.mark.parametrize(("arguments", "message"), NOTHING)
def test_nothing_found_is_an_error_that_names_the_filter(library, arguments, message):
    out, err = run(*arguments, library=library, expect=1)
    assert message in err
    assert out == ""
    out, err = run(*arguments, "--json", library=library, expect=1)
    assert message in err
    told = json.loads(out)
    assert (told["songs"] if isinstance(told, dict) else told) == []


def test_unreadable_term_is_printed_as_it_is(library):
    _, err = run("list", "tempo:x", library=library, expect=1)
    assert "“tempo:x”: “tempo =” must be followed by a number." in err
    assert ":x:" in run("list", "title:':x:'", library=library, expect=1)[1], "not an emoji"


def test_empty_playlist_is_not_saved(tiny_library, tmp_path):
    target = tmp_path / "mine.m3u8"
    asked = ("playlist", "--seconds", 1, 2, "--save", "Mine", "-o", target)
    _, err = run(*asked, library=tiny_library.folder, expect=1)
    assert "without --seconds there are 12." in err
    assert not target.exists()
    assert "Mine" not in {saved.name for saved in tiny_library.playlists()}


def test_songs_left_out_are_not_counted(library):
    _, err = run("similar", "--like", 1, "--unlike", 2, "--artist", "Nobody", library=library, expect=1)
    assert "without --artist there are 10." in err
    excluded = (part for song in range(1, 13) for part in ("--exclude", song))
    _, err = run("playlist", *excluded, library=library, expect=1)
    assert "no song is left" in err


def test_text_about_sound_needs_networks(library):
    out, err, code = run_to_end("similar", "--words", "sounds like noise", "--per-artist", 0, library=library)
    assert code == 0
    assert out.count("Artist noise") == 4
    assert "`musicsim models add-text`" in err
    _, err = run("similar", "--words", "noise", library=library)
    assert err == ""
