"""Imports: matched rows are stored, wrong lines stop the import with nothing written."""

import pytest

from musicsim.errors import LibraryError
from musicsim.library.importers import import_playlists, import_plays, import_tags


def test_plays_are_matched_without_regard_to_case_and_summed(tiny_library, tmp_path):
    path = tmp_path / "plays.csv"
    path.write_text(
        "listener,artist,title,plays\nann,ARTIST TONES,song  tones 0,3\nann,Artist tones,Song tones 0,4\n"
        "bob,Nobody,Nothing,9\n"
    )
    report = import_plays(tiny_library, path)
    assert (report.n_rows, report.n_matched, report.unmatched) == (3, 2, (("Nobody", "Nothing"),))
    assert tiny_library.counts()["plays"] == 7
    import_plays(tiny_library, path)
    assert tiny_library.counts()["plays"] == 7, "the same file twice changes nothing"


def test_tags_and_columns_in_any_order(tiny_library, tmp_path):
    path = tmp_path / "tags.csv"
    path.write_text("weight,tag,title,artist\n80,Calm ,Song noise 1,Artist noise\n")
    import_tags(tiny_library, path)
    assert list(tiny_library.tags().values()) == [[("calm", 80.0)]]


def test_playlists_keep_their_order_and_category(tiny_library, tmp_path):
    path = tmp_path / "lists.csv"
    path.write_text(
        "playlist,category,position,artist,title\none,late night,2,Artist tones,Song tones 1\n"
        "one,late night,1,Artist noise,Song noise 1\n"
    )
    import_playlists(tiny_library, path)
    (playlist,) = tiny_library.playlists()
    titles = [tiny_library.song(i).title for i in playlist.song_ids]
    assert (playlist.category, titles) == ("late night", ["Song noise 1", "Song tones 1"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("artist,title,plays\n", "line 1 lacks the column 'listener'"),
        ("", "line 1 lacks the column"),
        ("listener,artist,title,plays\nann,Artist tones,Song tones 0,many\n", "line 2: plays is 'many'"),
        ("listener,artist,title,plays\nann,Artist tones,Song tones 0,3\nann,x,y\n", "line 3 has 3 values"),
        ("listener,artist,title,plays\nann,a,b,-1\n", "line 2: plays is '-1'"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_imported(tiny_library, tmp_path, text, message):
    path = tmp_path / "plays.csv"
    path.write_text(text)
    with pytest.raises(LibraryError, match=message):
        import_plays(tiny_library, path)
    assert tiny_library.counts()["plays"] == 0


def test_a_file_that_is_not_utf8_is_named(tiny_library, tmp_path):
    path = tmp_path / "plays.csv"
    path.write_bytes(b"listener,artist,title,plays\nann,caf\xe9,x,1\n")
    with pytest.raises(LibraryError, match="not UTF-8"):
        import_plays(tiny_library, path)
