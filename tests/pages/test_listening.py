"""The section Listening of the Library page: preview, import, undo, and unmatched entries."""

import csv
import io

import pytest
from streamlit.testing.v1 import AppTest

from musicsim.library.importing import import_files
from tests.library.listening import played, write_zip
from tests.pages.actions import open_page, press_label, show_section


@pytest.fixture
def section(full) -> AppTest:
    return show_section(open_page("library"), "listening")


def look(app: AppTest, *files: tuple[str, str]) -> AppTest:
    """Drop files and preview them."""
    (uploader,) = [u for u in app.get("file_uploader") if u.label == "Listening history files"]
    uploader.set_value([(name, text.encode(), "text/csv") for name, text in files])
    return press_label(app, "Preview")


def texts(app: AppTest) -> str:
    """Return all texts of the page."""
    kinds = (app.markdown, app.caption, app.info, app.warning, app.error, app.success)
    return "\n".join(element.value.replace("\\", "") for kind in kinds for element in kind)


def tables(app: AppTest) -> list[list[list]]:
    return [frame.value.values.tolist() for frame in app.dataframe]


def plays_of(songs, *more: str) -> str:
    rows = [f"ann,{song.artist},{song.title},{n + 1}\n" for n, song in enumerate(songs)]
    return "listener,artist,title,plays\n" + "".join(rows) + "".join(f"{row}\n" for row in more)


def test_empty_state_has_message(section):
    assert "Nothing imported yet." in texts(section)
    press_label(section, "Preview")
    assert "Choose a file or enter its path." in texts(section)


def test_preview_shows_effects_and_writes_nothing(section, full):
    first, second, third = full.songs()[:3]
    before = full.revision
    app = look(
        section,
        (
            "plays.csv",
            plays_of((first, second), f"bob,{third.artist},{third.title} (Remastered),4", "bob,You,Other,9", ",,,1"),
        ),
    )
    assert {m.label: m.value for m in app.metric} == {
        "Rows": "4", "Plays": "16", "Listeners": "2", "Songs": "4", "In the library": "3 (75%)",
    }  # fmt: skip
    assert "artist and title: **2** (3 plays), plain spelling: **1** (4 plays)" in texts(app)
    loose, skipped, unmatched = tables(app)
    assert loose == [[f"{third.title} (Remastered) — {third.artist}", third.label]]
    assert skipped == [["no artist or title", 1, "plays.csv, line 6"]]
    assert unmatched == [["Other", "You", "", 9]]
    assert full.revision == before
    press_label(app, "Discard")
    assert not app.metric


def test_exported_tables_contain_no_formulas(section, full, monkeypatch):
    written = {}

    def write(label, make, name, *_, **__):
        written[name] = make()

    monkeypatch.setattr("musicsim.ui.components.downloads.download", write)
    song = full.songs()[0]
    full.edits.edit([song.id], {"title": "=1+1"})
    rows = f"bob,{song.artist},=1+1 (Remastered),4", "bob,@You,-Other,9", "bob,@You,,1"
    look(section, ("plays.csv", plays_of([], *rows)))
    assert set(written) >= {"plain spelling.csv", "left out.csv", "not in the library.csv"}
    assert b"'-Other,'@You" in written["not in the library.csv"]
    for content in written.values():
        for row in csv.reader(io.StringIO(content.decode(), newline="")):
            assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row)


def test_import_is_written_listed_and_undone(section, full):
    song = full.songs()[0]
    app = press_label(look(section, ("plays.csv", plays_of([song], "bob,You,Other,9"))), "Import")
    assert "Import 1: 2 rows; 1 of 2 songs are in the library; 1 is saved and matched later." in texts(app)
    assert not app.metric, "the fields are empty again"
    assert "Import 1: 2 rows" in texts(app.run()), "told until it is undone"
    assert played(full) == {("ann", song.id): 1}
    assert "1 imported song is not in the library." in texts(app)
    look(app, ("plays.csv", plays_of([song], "bob,You,Other,9")))
    assert "Replaces import 1 (plays.csv" in texts(app)
    press_label(app, "Undo import")
    assert "Takes the place" not in texts(app), "it is looked at again when imports have gone"
    assert "Import 1: 2 rows" not in texts(app)
    assert (played(full), full.listening.imports()) == ({}, [])


def test_history_uses_given_listener_and_format(section, full):
    song = full.songs()[0]
    section.text_input(key="listening_listener_0").set_value("Ann")
    section.selectbox(key="listening_format_0").set_value("lastfm")
    text = f"uts,artist,track\n1700000000,{song.artist},{song.title}\n"
    app = look(section, ("history.csv", text))
    assert "from 2023-11-14 to 2023-11-14 · listener: Ann" in texts(app)
    press_label(app, "Import")
    assert played(full) == {("Ann", song.id): 1}


def test_local_path_is_read_and_missing_path_is_reported(section, full, tmp_path):
    path = write_zip(tmp_path / "history.zip", **{"plays.csv": plays_of(full.songs()[:1])})
    section.text_input(key="listening_path_0").set_value(f'"{path}"')
    app = press_label(section, "Preview")
    assert app.metric[0].value == "1"
    app.text_input(key="listening_path_0").set_value(str(tmp_path / "gone.csv"))
    press_label(app, "Preview")
    assert f"{tmp_path / 'gone.csv'}: cannot be read" in texts(app)
    assert not app.metric


@pytest.mark.parametrize("is_typed", [True, False])
def test_text_file_is_not_shown_as_playlist(section, full, tmp_path, is_typed):
    path = tmp_path / "config.txt"
    path.write_text("api_key = SECRET-TOKEN-12345\n")
    section.selectbox(key="listening_format_0").set_value("m3u")
    if is_typed:
        section.text_input(key="listening_path_0").set_value(str(path))
        press_label(section, "Preview")
    else:
        look(section, (path.name, path.read_text()))
    (error,) = [e.value.replace("\\", "") for e in section.error]
    assert "config.txt: the file is not in m3u format" in error
    assert "SECRET" not in error + texts(section) + str(tables(section))


def test_upload_error_hides_folder(section, full):
    app = look(section, ("bad.csv", "listener,artist,title,plays\nann,Me,One,many\n"))
    (error,) = [e.value.replace("\\", "") for e in app.error]
    assert error.startswith("bad.csv: line 2: plays is 'many'")
    assert not app.metric
    assert full.listening.imports() == []


def test_same_files_are_not_read_again(section, full, monkeypatch):
    reads = []
    from musicsim.ui.library import listening_import

    real = listening_import.importing.read_listening
    monkeypatch.setattr(listening_import.importing, "read_listening", lambda *a, **k: reads.append(1) or real(*a, **k))
    app = look(section, ("plays.csv", plays_of(full.songs()[:1])))
    app.run()
    press_label(app, "Preview")
    assert (len(reads), len(app.metric)) == (1, 5)


def test_finds_close_spellings_of_unmatched_entries(section, full, tmp_path):
    song = full.songs()[0]
    full.edits.edit([song.id], {"artist": "Queen", "title": "Bohemian Rhapsody"})
    path = tmp_path / "plays.csv"
    path.write_text("listener,artist,title,plays\nann,Queen,Bohemian Rapsody,9\n")
    import_files(full, path)
    app = press_label(section.run(), "Look for similar spellings")
    assert [row[:2] + row[3:] for row in tables(app)[-1]] == [
        ["Bohemian Rapsody — Queen", "Bohemian Rhapsody — Queen", 9]
    ]
    assert [b.disabled for b in app.button if b.label in ("Same song", "Different song")] == [True, True]
    full.listening.judge([("Queen", "Bohemian Rapsody", song.id)], is_same=False)
    press_label(app, "Look for similar spellings")
    assert "No song in the library has a similar spelling." in texts(app)
    press_label(app, "Reset 1 spelling decision")
    assert full.listening.list_decisions() == []


def test_hub_reduction_is_a_setting(full):
    app = show_section(open_page("library"), "settings")
    (switch,) = [t for t in app.toggle if t.label == "Hub reduction"]
    switch.set_value(False).run()
    assert not app.exception
    assert full.settings["hub_reduction"] is False


@pytest.fixture
def jobs_started(monkeypatch):
    """Return names of the jobs that an import starts; none of them runs."""
    from musicsim.ui.library import listening_import, listening_review

    started = []
    for module in (listening_import, listening_review):
        monkeypatch.setattr(module, "start_job", lambda library, kind: started.append(kind))
    return started


def m3u(*songs: tuple[str, str]) -> str:
    entries = "".join(f"#EXTINF:100,{artist} - {title}\n{n}/{title}.mp3\n" for n, (artist, title) in enumerate(songs))
    return f"#EXTM3U\n{entries}"


def test_playlists_are_previewed_with_unmatched_entries(section, full, jobs_started):
    one, two, *_ = [(song.artist, song.title) for song in full.songs()]
    app = look(
        section,
        ("morning.m3u", m3u(one, ("Nobody", "Nothing"), two)),
        ("lost.m3u", m3u(("Nobody", "Else")) + "http://example.org/stream\n"),
    )
    assert {m.label: m.value for m in app.metric} == {
        "Rows": "5", "Playlists": "2", "Songs": "5", "In the library": "2 (40%)",
    }  # fmt: skip
    lists, absent = tables(app)
    assert sorted(lists) == [["lost", 2, 0, "left out: none of its songs are in the library"], ["morning", 3, 2, ""]]
    assert sorted(absent) == [
        ["lost", 1, "Else — Nobody", "not in the library"],
        ["lost", 2, "http://example.org/stream", "web address"],
        ["morning", 2, "Nothing — Nobody", "not in the library"],
    ]
    assert "Not in the library: 3 entries" in texts(app)
    assert "stay out of the playlists" in texts(app)
    assert jobs_started == []
    press_label(app, "Import")
    assert "Import 1: 1 of 2 playlists; 2 of 5 entries are in the library; 1 left out" in texts(app)
    assert "matched later" not in texts(app), "songs of playlists do not wait"
    assert sorted(tables(app)[0]) == sorted(lists)
    assert jobs_started == ["walk"]
    (kept,) = full.playlists()
    assert [song.title for song in full.songs(kept.song_ids)] == [one[1], two[1]]
    look(app, ("evening.m3u", m3u(two, one)))
    assert [len(table) for table in tables(app)] == [2, 3, 1], "what was told stays beside what is looked at"
    press_label(app, "Discard")
    press_label(app, "Undo import")
    assert full.playlists() == []
    assert jobs_started == ["walk", "walk"], "the walk forgets them, too"


def test_imported_playlists_show_category_and_accepted_spellings(section, full, jobs_started, monkeypatch):
    from musicsim.ui.library import listening_import

    first, second = full.songs()[:2]
    full.edits.edit([first.id], {"artist": "Queen", "title": "Bohemian Rhapsody"})
    text = (
        "playlist,category,position,artist,title\n"
        "a,rock,1,Queen,Bohemian Rapsody\n"
        f"a,rock,2,{second.artist},{second.title}\n"
    )
    tick = [False]
    monkeypatch.setattr(listening_import, "proposals_table", lambda proposals, key: list(proposals) if tick[0] else [])
    app = look(section, ("lists.csv", text))
    assert tables(app)[0] == [["a", "rock", 2, 1, "one song: too few to learn from"]]
    tick[0] = True
    app.run()
    assert tables(app)[0] == [["a", "rock", 2, 2]]
    press_label(app, "Import")
    (kept,) = full.playlists()
    assert list(kept.song_ids) == [first.id, second.id]
    assert "1 of 1 playlist; 2 of 2 entries" in texts(app)


def test_playlist_without_known_songs_starts_no_learning(section, full, jobs_started):
    app = look(section, ("lost.m3u", m3u(("Nobody", "Nothing"))))
    press_label(app, "Import")
    assert "Import 1: 0 of 1 playlist;" in texts(app)
    assert (jobs_started, full.playlists()) == ([], [])
