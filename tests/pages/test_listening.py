"""The section Listening of the Library page: look, import, undo, and what waits."""

import pytest
from streamlit.testing.v1 import AppTest

from musicsim.library.importing import import_files
from tests.library.listening import played, write_zip
from tests.pages.test_pages import full, labels, open_page, show_section  # noqa: F401  # full is a fixture


@pytest.fixture
def section(full) -> AppTest:  # noqa: F811
    return show_section(open_page("library"), "listening")


def press(app: AppTest, label: str) -> AppTest:
    app.button[labels(app).index(label)].click().run()
    assert not app.exception
    return app


def look(app: AppTest, *files: tuple[str, str]) -> AppTest:
    """Drop files and look at them."""
    (uploader,) = [u for u in app.get("file_uploader") if u.label == "Files of listening"]
    uploader.set_value([(name, text.encode(), "text/csv") for name, text in files])
    return press(app, "Look")


def texts(app: AppTest) -> str:
    """All that the page says."""
    kinds = (app.markdown, app.caption, app.info, app.warning, app.error, app.success)
    return "\n".join(element.value.replace("\\", "") for kind in kinds for element in kind)


def tables(app: AppTest) -> list[list[list]]:
    return [frame.value.values.tolist() for frame in app.dataframe]


def plays_of(songs, *more: str) -> str:
    rows = [f"ann,{song.artist},{song.title},{n + 1}\n" for n, song in enumerate(songs)]
    return "listener,artist,title,plays\n" + "".join(rows) + "".join(f"{row}\n" for row in more)


def test_nothing_imported_is_a_state_with_words(section):
    assert "Nothing was imported yet." in texts(section)
    press(section, "Look")
    assert "Drop a file, or type the path of one." in texts(section)


def test_a_look_shows_what_would_come_and_writes_nothing(section, full):  # noqa: F811
    first, second, third = full.songs()[:3]
    before = full.revision
    app = look(
        section,
        (
            "plays.csv",
            plays_of(
                (first, second), f"bob,{third.artist},{third.title} (Remastered),4", "bob,You,Other,9", ",,,1"
            ),
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
    press(app, "Leave it")
    assert not app.metric


def test_an_import_is_written_listed_and_undone(section, full):  # noqa: F811
    song = full.songs()[0]
    app = press(look(section, ("plays.csv", plays_of([song], "bob,You,Other,9"))), "Import")
    assert "Import 1: 2 rows; 1 of 2 songs are in the library; 1 wait for theirs." in texts(app)
    assert not app.metric, "the fields are empty again"
    assert "Import 1: 2 rows" in texts(app.run()), "told until it is undone"
    assert played(full) == {("ann", song.id): 1}
    assert "1 songs of the imports are not in the library." in texts(app)
    look(app, ("plays.csv", plays_of([song], "bob,You,Other,9")))
    assert "Takes the place of import 1 (plays.csv" in texts(app)
    press(app, "Undo it")
    assert "Takes the place" not in texts(app), "it is looked at again when imports have gone"
    assert "Import 1: 2 rows" not in texts(app)
    assert (played(full), full.listening.imports()) == ({}, [])


def test_a_history_of_one_person_takes_the_name_and_the_format_that_are_given(section, full):  # noqa: F811
    song = full.songs()[0]
    section.text_input(key="listening_listener_0").set_value("Ann")
    section.selectbox(key="listening_format_0").set_value("lastfm")
    text = f"uts,artist,track\n1700000000,{song.artist},{song.title}\n"
    app = look(section, ("history.csv", text))
    assert "from 2023-11-14 to 2023-11-14 · listener: Ann" in texts(app)
    press(app, "Import")
    assert played(full) == {("Ann", song.id): 1}


def test_a_file_on_this_machine_and_one_that_is_not_there(section, full, tmp_path):  # noqa: F811
    path = write_zip(tmp_path / "history.zip", **{"plays.csv": plays_of(full.songs()[:1])})
    section.text_input(key="listening_path_0").set_value(f'"{path}"')
    app = press(section, "Look")
    assert app.metric[0].value == "1"
    app.text_input(key="listening_path_0").set_value(str(tmp_path / "gone.csv"))
    press(app, "Look")
    assert f"{tmp_path / 'gone.csv'}: cannot be read" in texts(app)
    assert not app.metric


def test_what_is_wrong_with_an_upload_is_told_without_the_folder_it_lies_in(section, full):  # noqa: F811
    app = look(section, ("bad.csv", "listener,artist,title,plays\nann,Me,One,many\n"))
    (error,) = [e.value.replace("\\", "") for e in app.error]
    assert error.startswith("bad.csv: line 2: plays is 'many'")
    assert not app.metric
    assert full.listening.imports() == []


def test_the_same_files_are_not_read_again(section, full, monkeypatch):  # noqa: F811
    reads = []
    from musicsim.ui import listening_import

    real = listening_import.read_listening
    monkeypatch.setattr(listening_import, "read_listening", lambda *a, **k: reads.append(1) or real(*a, **k))
    app = look(section, ("plays.csv", plays_of(full.songs()[:1])))
    app.run()
    press(app, "Look")
    assert (len(reads), len(app.metric)) == (1, 5)


def test_close_spellings_of_what_waits_are_looked_for(section, full, tmp_path):  # noqa: F811
    song = full.songs()[0]
    full.edits.edit([song.id], {"artist": "Queen", "title": "Bohemian Rhapsody"})
    path = tmp_path / "plays.csv"
    path.write_text("listener,artist,title,plays\nann,Queen,Bohemian Rapsody,9\n")
    import_files(full, path)
    app = press(section.run(), "Look for close spellings")
    assert [row[:2] + row[3:] for row in tables(app)[-1]] == [
        ["Bohemian Rapsody — Queen", "Bohemian Rhapsody — Queen", 9]
    ]
    assert [b.disabled for b in app.button if b.label in ("Same song", "Another song")] == [True, True]
    full.listening.judge([("Queen", "Bohemian Rapsody", song.id)], is_same=False)
    press(app, "Look for close spellings")
    assert "No other song of the library is spelt like one of these." in texts(app)
    press(app, "Forget what was said of 1 spellings")
    assert full.listening.judged() == []


def test_hub_reduction_is_a_setting(full):  # noqa: F811
    app = show_section(open_page("library"), "settings")
    (switch,) = [t for t in app.toggle if t.label == "Hub reduction"]
    switch.set_value(False).run()
    assert not app.exception
    assert full.settings["hub_reduction"] is False
