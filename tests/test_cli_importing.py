"""Imports on the command line."""

import json

import pytest

from tests.command import run


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "plays.csv"
    path.write_text(
        "listener,artist,title,plays\nann,artist tones,Song tones 0 - Remastered 2011,3\n"
        "ann,Artist tones,Song tonez 1,2\nbob,Nobody,Nothing,9\nbob,,,1\n"
    )
    return path


def test_import_dry_run_list_and_undo(tiny_library, history):
    library = tiny_library.folder
    tried = json.loads(run("import", history, "--dry-run", "--json", library=library)[0])
    assert (tried["import"], tried["dry_run"], tried["matched"], tried["plays"]) == (None, True, 1, 14)
    assert tried["matched_by"] == {"loose": 1}
    assert tried["skipped"] == [{"reason": "no artist or title", "count": 1, "places": ["plays.csv, line 5"]}]
    assert [close["title"] for close in tried["close"]] == ["Song tonez 1"]
    assert tiny_library.counts()["plays"] == 0
    made = json.loads(run("import", history, "--min-score", 0.9, "--json", library=library)[0])
    assert (made["matched"], tiny_library.counts()["plays"]) == (2, 5)
    listed = json.loads(run("imports", "--json", library=library)[0])
    assert [(e["id"], e["files"], e["matched"]) for e in listed["imports"]] == [(made["import"], "plays.csv", 2)]
    assert listed["unmatched"] == 1
    run("import", "--undo", made["import"], library=library)
    assert tiny_library.counts()["plays"] == 0
    _, problem = run("import", "--undo", made["import"], library=library, expect=1)
    assert "`musicsim imports` lists all imports" in problem


def test_prints_summary_without_json_option(tiny_library, history):
    out, _ = run("import", history, library=tiny_library.folder)
    assert "3 rows with 3 songs; 1 song is in the library" in out
    assert "not in the library: Nobody, Nothing (9)" in out
    assert "left out: 1 (no artist or title): plays.csv, line 5" in out
    assert "close (0.9" in out
    out, _ = run("imports", library=tiny_library.folder)
    assert "plays.csv" in out
    assert "2 imported songs are not in the library." in out


def test_listener_and_format_options(tiny_library, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('Artist tones,,Song tones 0,"31 Jan 2024 10:11"\n')
    done = json.loads(
        run("import", path, "--as", "lastfm", "--listener", "ann", "--json", library=tiny_library.folder)[0]
    )
    assert (done["listeners"], done["first"], done["last"]) == (["ann"], "2024-01-31", "2024-01-31")


def test_text_file_contents_are_never_printed(tiny_library, tmp_path):
    path = tmp_path / "config"
    path.write_text("# a config\napi_key = /SECRET-TOKEN-12345\n")
    for options in (["--as", "m3u"], []):
        out, problem = run("import", path, *options, "--dry-run", library=tiny_library.folder, expect=1)
        assert "SECRET" not in out + problem
        assert "config: " in problem.replace("\n", "")


def test_invalid_line_gives_one_line_error(tiny_library, history):
    history.write_text(history.read_text() + "ann,a,b,many\n")
    _, problem = run("import", history, library=tiny_library.folder, expect=1)
    assert "line 6: plays is 'many'" in problem
    assert "Traceback" not in problem
    assert tiny_library.counts()["plays"] == 0
    _, problem = run("import", history, "--as", "winamp", library=tiny_library.folder, expect=2)
    assert "choose from" in problem
    run("import", library=tiny_library.folder, expect=2)
