"""Tests of songs as columns: equal to the song objects after any change."""

import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from musicsim.audio import Descriptors
from musicsim.library import Library
from musicsim.library.db import cache as kept
from musicsim.library.db import schema
from musicsim.library.db.columns import Labels, SongColumns, SongTable, read_table
from musicsim.library.db.packed_texts import PackedTexts
from musicsim.library.stores import models as model_store
from musicsim.library.stores import song_tables
from musicsim.library.stores.duplicates import SamePair
from musicsim.library.stores.models import NATIVE_KIND, ModelRecord
from tests.waiting import PATIENCE_S

# Id, title, artist, genre, year, folders of the files. The root of the library is /music.
SONGS = [
    (1, "Blue", "Ann Bell", "Jazz", 1959, ["/music/Ann Bell/Blue"]),
    (2, "Straße", None, None, None, ["/music/Unbekannt/Somebody's Tape/CD 2"]),
    (3, "blue\nagain", "ANN  BELL", "jazz", 2001, ["/music/z", "/music/a"]),
    (4, "No folder", None, "Folk", 1990, ["/music/mp3"]),
    (5, "Alone", None, None, None, ["/music"]),
    (6, "Zoë", "Unknown Artist", "Folk", 1975, ["/music/Zoë Ünal"]),
    (7, "Gone", "Nobody Here", "Polka", 1960, []),
    (9, "BLUE again", "Ünal", "Jazz", 2010, ["/music/odd \udce9 name"]),
]


def enter(library, rows):
    """Insert songs and files directly into the tables."""
    with library.write() as connection:
        for song_id, title, artist, genre, year, folders in rows:
            connection.execute(
                schema.songs.insert().values(
                    id=song_id, content_hash=f"{song_id:064x}", title=title, artist=artist, genre=genre, year=year,
                    duration_s=100.1 + song_id / 3, feature_version=2, added_at=1.7e9 + song_id / 7,
                    last_path=Path("/music/gone") / f"{song_id}.mp3",
                )
            )  # fmt: skip
            for folder in folders:
                path = Path(folder) / f"{song_id}.mp3"
                connection.execute(
                    schema.files.insert().values(path=path, song_id=song_id, folder=Path(folder), size=1, mtime_ns=1)
                )


@pytest.fixture
def library(tmp_path):
    with Library.open(tmp_path / "library") as opened:
        opened.files.add_roots([Path("/music")])
        enter(opened, SONGS)
        yield opened


def texts(labels):
    return [labels.names[code] if code >= 0 else None for code in labels.codes.tolist()]


def assert_is_of(table, library):
    """Assert that the table agrees exactly with the song objects."""
    songs = library.songs()
    assert table.ids.tolist() == [song.id for song in songs]
    for name in ("artist", "genre", "folder", "group", "key", "mode"):
        labels = getattr(table.columns, name)
        assert texts(labels) == [getattr(song, name) for song in songs], name
        assert sorted(set(labels.names)) == sorted(labels.names)
        assert set(labels.codes.tolist()) - {-1} == set(range(len(labels.names))), f"{name}: unused names"
    assert table.columns.year.tolist() == [song.year or 0 for song in songs]
    assert table.columns.duration_s.tolist() == [song.duration_s for song in songs]
    with library.engine.connect() as connection:
        added = dict(connection.execute(sa.select(schema.songs.c.id, schema.songs.c.added_at)).all())
    assert table.columns.added_at.tolist() == [added[song.id] for song in songs]
    for name in ("tempo", "loudness", "brightness", "energy"):
        values = [np.nan if getattr(song, name) is None else getattr(song, name) for song in songs]
        np.testing.assert_array_equal(getattr(table.columns, name), np.array(values, np.float32), name)
    places = np.arange(len(songs))
    assert table.names_at(places) == [(song.title, song.by) for song in songs]
    assert table.matched.lines(places) == [f"{s.title} {s.artist or ''}".casefold() for s in songs]


def test_columns_match_songs(library):
    assert_is_of(library.table(), library)
    groups = dict(zip(library.table().ids.tolist(), texts(library.table().columns.group), strict=True))
    assert groups[1] == groups[3] == "ann bell"
    assert groups[2] == "folder:/music/Unbekannt/Somebody's Tape"
    assert (groups[4], groups[5]) == ("song:4", "song:5")


def test_empty_library_has_empty_table(store):
    table = store.table()
    assert len(table.ids) == 0
    assert table.names_at(np.empty(0, dtype=np.int64)) == []
    assert (table.ids_with("a", 5).tolist(), table.artists_with("", 5)) == ([], [])
    assert table.places_of([3]).tolist() == [-1]
    assert store.counts()["songs"] == 0


def test_counts_match_songs(library):
    songs, counts = library.songs(), library.counts()
    assert (counts["songs"], counts["missing"]) == (7, 1)
    assert counts["artists"] == len({song.artist for song in songs} - {None})
    assert counts["hours"] == pytest.approx(sum(song.duration_s for song in songs) / 3600, rel=1e-12)


def move(library, song_id, folder):
    with library.write() as connection:
        f = schema.files.c
        path = Path(folder) / f"{song_id}.mp3"
        connection.execute(schema.files.update().where(f.song_id == song_id).values(path=path, folder=Path(folder)))


def take_the_file_of(library, song_id, other_id):
    """Replace the row of a file, as a scan does when another song is found at its path."""
    path = Path(f"/music/Ann Bell/Blue/{other_id}.mp3")
    row = {"path": path, "song_id": song_id, "folder": path.parent, "size": 2, "mtime_ns": 2}
    with library.write() as connection:
        connection.execute(schema.files.insert().prefix_with("OR REPLACE").values(**row, missing_since=None))


def forget(library, *song_ids):
    with library.write() as connection:
        connection.execute(schema.songs.delete().where(schema.songs.c.id.in_(song_ids)))


CHANGES = {
    "a title": lambda lib: lib.edits.edit([1], {"title": "Ärger", "year": 1999}),
    "a title taken back": lambda lib: (lib.edits.edit([1], {"title": "x"}), lib.edits.undo([1])),
    "a genre that nobody else has": lambda lib: lib.edits.edit([9], {"genre": "Musette"}),
    "the only one of its genre": lambda lib: lib.edits.edit([3], {"genre": "Jazz"}),
    "an artist found": lambda lib: lib.edits.edit([2, 5], {"artist": "Carla"}),
    "an artist lost": lambda lib: lib.edits.edit([1, 9], {"artist": ""}),
    "two spellings made one": lambda lib: lib.edits.merge(["ANN  BELL", "Ünal"], "Ann Bell"),
    "a merge taken back": lambda lib: (lib.edits.merge(["Ünal"], "Ann Bell"), lib.edits.part("Ann Bell")),
    "a new song at the end": lambda lib: enter(lib, [(12, "New", "New", "New", 2024, ["/music/New"])]),
    "a new song in between": lambda lib: enter(lib, [(8, "blue", None, None, 2024, ["/music/New"])]),
    "songs at both ends forgotten": lambda lib: forget(lib, 1, 9),
    "all but one forgotten": lambda lib: forget(lib, 1, 2, 3, 4, 6, 9),
    "every song forgotten": lambda lib: forget(lib, *range(1, 10)),
    "an id used again": lambda lib: (forget(lib, 9), enter(lib, [(9, "Other", "Who", None, 1, ["/music/x"])])),
    "a file moved": lambda lib: move(lib, 2, "/music/Other Tape"),
    "a file of another song": lambda lib: take_the_file_of(lib, 5, 1),
    "a file gone": lambda lib: lib.files.mark(missing=[Path("/music/a/3.mp3")], back=[]),
    "a song's only file gone": lambda lib: lib.files.mark(missing=[Path("/music/5.mp3")], back=[]),
    "a song back": lambda lib: (
        lib.files.mark(missing=[Path("/music/5.mp3")], back=[]),
        lib.files.mark(missing=[], back=[Path("/music/5.mp3")]),
    ),
    "a missing song found": lambda lib: enter_file(lib, 7),
    "a root more": lambda lib: lib.files.add_roots([Path("/tapes")]),
    "another root": lambda lib: root_at(lib, Path("/music/Unbekannt/Somebody's Tape")),
    "a root forgotten": lambda lib: lib.files.forget_root(Path("/music")),
    "many at once": lambda lib: enter(lib, [(i, f"t{i}", f"a{i % 7}", None, 2, [f"/m/{i}"]) for i in range(20, 1200)]),
    "many forgotten": lambda lib: (CHANGES["many at once"](lib), lib.table(), forget(lib, *range(20, 1100))),
    "what can be heard": lambda lib: lib.descriptors.save(
        {1: Descriptors(120.5, "A", "minor", -14.2, 1800.0, 90.0), 4: Descriptors(loudness=-9.0)}
    ),
    "nothing": lambda lib: lib.note_change(),
}


def enter_file(library, song_id):
    folder = Path("/music/back")
    row = {"path": folder / "7.mp3", "song_id": song_id, "folder": folder, "size": 1, "mtime_ns": 1}
    with library.write() as connection:
        connection.execute(schema.files.insert().values(**row))


def root_at(library, path):
    with library.write() as connection:
        connection.execute(schema.roots.update().values(path=path))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_table_matches_fresh_table(library, change):
    library.table()
    change(library)
    assert_is_of(library.table(), library)
    library.edits.edit([2], {"title": "and one more"})
    assert_is_of(library.table(), library)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_change_by_other_process_is_seen(library, change):
    library.table()
    with Library.open(library.folder) as other:
        change(other)
    assert_is_of(library.table(), library)


@pytest.mark.parametrize(
    "change",
    [
        lambda lib: lib.set_feedback(1, 1),
        lambda lib: lib.add_tags([{"song_id": 1, "tag": "calm", "weight": 1.0}]),
        lambda lib: lib.add_plays([{"listener": "me", "song_id": 1, "count": 3}]),
        lambda lib: lib.add_playlists([("mine", None, [1, 3])], "saved"),
        lambda lib: lib.set_setting("hub_reduction", False),
        lambda lib: lib.duplicates.enter([], [1, 2, 3]),
        lambda lib: lib.note_change(),
    ],
    ids=["thumb", "tag", "play", "playlist", "setting", "compared", "no change"],
)
def test_unrelated_changes_keep_same_table(library, change):
    before = library.table()
    change(library)
    assert library.table() is before


def test_new_title_keeps_same_id_array(library):
    before = library.table()
    library.edits.edit([1], {"title": "x"})
    after = library.table()
    assert after is not before
    assert after.ids is before.ids
    assert before.names_at(np.array([0])) == [("Blue", "Ann Bell")], "an older reader keeps what it has"


def test_change_without_log_entry_is_noticed(library):
    """An older version of the program increments the revision without writing to the log."""
    library.table()
    with sqlite3.connect(library.folder / "library.sqlite") as other:
        other.execute("UPDATE songs SET title = 'quietly' WHERE id = 1")
        other.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")
    assert_is_of(library.table(), library)
    library.edits.edit([3], {"title": "again"})
    assert_is_of(library.table(), library)


def test_failed_write_changes_nothing(library):
    before = library.table()

    def fails():
        with library.write() as connection:
            connection.execute(schema.songs.delete())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    library.note_change()
    assert library.table() is before
    library.edits.edit([1], {"title": "x"})
    assert_is_of(library.table(), library)


def test_old_log_entries_are_deleted_and_table_reloaded(library, monkeypatch):
    monkeypatch.setattr("musicsim.library.db.changes.MAX_ENTRIES", 5)
    monkeypatch.setattr("musicsim.library.db.changes.TIDY_INTERVAL", 1)
    library.table()
    library.edits.edit([1], {"title": "early"})
    for _ in range(9):
        library.note_change()
    with library.engine.connect() as connection:
        entries = connection.exec_driver_sql("SELECT count(*) FROM meta WHERE key LIKE 'change %'").scalar()
    assert entries == 5
    assert_is_of(library.table(), library)


# --- between processes -----------------------------------------------------------------


@pytest.fixture
def n_read(monkeypatch):
    """Count how often all songs are read. Even small libraries write the file."""
    counted = []

    def count(connection, roots, ids=None):
        counted.extend([1] if ids is None else [])
        return read_table(connection, roots, ids)

    monkeypatch.setattr(song_tables, "MIN_ARCHIVED", 1)
    monkeypatch.setattr(model_store, "MIN_ARCHIVED", 1)
    monkeypatch.setattr(song_tables, "read_table", count)
    return counted


def reopened_table(library):
    with Library.open(library.folder) as other:
        table = other.table()
        assert_is_of(table, other)
        return table


def test_next_process_loads_table_from_cache(library, n_read):
    library.table()
    reopened_table(library)
    assert len(n_read) == 1
    library.edits.edit([2], {"title": "Späte Änderung", "artist": "Någon"})
    reopened_table(library)
    assert len(n_read) == 1, "what has changed since was read alone"


def test_table_of_older_version_is_cached(library, n_read):
    with sqlite3.connect(library.folder / "library.sqlite") as other:
        other.execute("DELETE FROM meta WHERE key LIKE 'change %'")
    for _ in range(2):
        reopened_table(library)
    assert len(n_read) == 1


def test_diverged_backup_ignores_cached_table(library, n_read, tmp_path):
    shutil.copytree(library.folder, tmp_path / "backup")
    library.edits.edit([1], {"title": "one way"})
    library.table()
    database = "library.sqlite"
    with Library.open(tmp_path / "backup") as back:
        back.edits.edit([1], {"title": "another way"})
        assert back.revision == library.revision
        (back.folder / "cache").mkdir()
        shutil.copy(library.folder / "cache/songs.npz", back.folder / "cache/songs.npz")
        assert (back.folder / database).exists()
        assert_is_of(back.table(), back)


def test_older_backup_ignores_newer_cached_table(library, n_read, tmp_path):
    shutil.copytree(library.folder, tmp_path / "backup")
    library.edits.edit([1], {"title": "too new"})
    library.table()
    shutil.copytree(library.folder / "cache", tmp_path / "backup/cache")
    with Library.open(tmp_path / "backup") as back:
        assert_is_of(back.table(), back)


@pytest.mark.parametrize("content", [b"", b"no archive", None], ids=["empty", "not one", "of another format"])
def test_unreadable_cache_file_is_rewritten(library, n_read, content):
    library.table()
    file = library.folder / "cache/songs.npz"
    if content is None:
        kept.save_arrays(file, about=np.array("[99, 1, null]"))
    else:
        file.write_bytes(content)
    reopened_table(library)
    reopened_table(library)
    assert len(n_read) == 2


def test_unwritable_cache_folder_is_no_error(library, n_read, monkeypatch):
    def refuse(*_args, **_arrays):
        raise PermissionError("read-only")

    monkeypatch.setattr(kept, "save_arrays", refuse)
    assert_is_of(library.table(), library)


def test_outdated_cache_file_is_rewritten(library, n_read, monkeypatch):
    monkeypatch.setattr(kept, "SAVE_INTERVAL", 3)
    library.table()
    file = library.folder / "cache/songs.npz"
    before = file.stat().st_mtime_ns
    for title in "abc":
        library.edits.edit([1], {"title": title})
        library.table()
    assert file.stat().st_mtime_ns > before
    assert len(n_read) == 1


# --- rows of a model ------------------------------------------------------------------------------


def model_with_rows(library, ids):
    record = ModelRecord("m", "m", 0.0, 1, 3, 2, kind=NATIVE_KIND)
    library.models.register(record)
    append(library, ids)
    library.models.finish("m", activate=True)


def append(library, ids):
    X = np.array([[i, i] for i in ids], dtype=np.float32)
    library.models.append("m", ids, np.array([[i, i, i] for i in ids], dtype=np.float32), X)


def assert_rows(library, ids):
    known = library.models.song_rows("m")
    assert known.song_ids.tolist() == ids
    assert library.vectors("m").X[:, 0].tolist() == ids, "each song has its own vector"
    assert library.models.features("m").X[:, 2].tolist() == ids
    return known


def test_rows_follow_added_and_deleted_songs(library):
    model_with_rows(library, [3, 1, 2])
    before = assert_rows(library, [3, 1, 2])
    library.edits.edit([1], {"title": "x"})
    assert library.models.song_rows("m") is before
    append(library, [9, 4])
    assert_rows(library, [3, 1, 2, 9, 4])
    forget(library, 1, 4)
    assert_rows(library, [3, 2, 9])
    append(library, [5])
    assert_rows(library, [3, 2, 9, 5])


def test_reused_row_and_id_belong_to_new_song(library):
    model_with_rows(library, [1, 2, 9])
    before = assert_rows(library, [1, 2, 9])
    forget(library, 9)
    enter(library, [(9, "Other", None, None, None, ["/music/x"])])
    library.models.append("m", [9], np.full((1, 3), 7.0, np.float32), np.full((1, 2), 7.0, np.float32))
    after = library.models.song_rows("m")
    assert after is not before, "the last row of the file and the id are those of another song"
    assert library.vectors("m").X[-1].tolist() == [7.0, 7.0]


def test_rows_are_cached_for_next_process(library, n_read):
    model_with_rows(library, [3, 1])
    library.models.song_rows("m")
    assert (library.models.path("m") / "rows.npz").exists()
    append(library, [2])
    with Library.open(library.folder) as other:
        assert_rows(other, [3, 1, 2])
    forget(library, 3)
    with Library.open(library.folder) as other:
        assert_rows(other, [1, 2])


def test_rows_added_by_older_version_are_seen(library, n_read):
    """The older version writes nothing to the log. The next process to open the library logs the state."""
    model_with_rows(library, [3, 1])
    library.models.song_rows("m")
    features, vectors = (library.models.path("m") / f"{name}.f32" for name in ("histograms", "vectors"))
    with features.open("ab") as stream:
        np.full(3, 2, np.float32).tofile(stream)
    with vectors.open("ab") as stream:
        np.full(2, 2, np.float32).tofile(stream)
    with sqlite3.connect(library.folder / "library.sqlite") as other:
        other.execute("INSERT INTO vectors VALUES ('m', 2, 2)")
        other.execute("UPDATE meta SET value = value + 1 WHERE key = 'revision'")
    with Library.open(library.folder) as other:
        assert_rows(other, [3, 1, 2])
    assert_rows(library, [3, 1, 2])


def test_duplicate_pairs_are_cached_until_song_changes(library):
    library.duplicates.enter([SamePair(1, 3, 1.0, 0.0)], [1, 3])
    before = library.same_pairs()
    library.edits.edit([9], {"title": "x"})
    assert library.same_pairs() is before
    for change in (
        lambda: library.edits.edit([3], {"artist": ""}),
        lambda: library.files.mark(missing=[Path("/music/a/3.mp3")], back=[]),
        lambda: library.duplicates.enter([SamePair(4, 5, 1.0, 0.0)], []),
        lambda: library.duplicates.judge([1, 3], is_same=False),
        lambda: forget(library, 1),
    ):
        change()
        after = library.same_pairs()
        assert after is not before
        assert after == library.duplicates.pairs()
        before = after


# --- reading some songs ---------------------------------------------------------------------------


def test_any_number_of_songs_is_read_by_id(library):
    wanted = [*range(5, 60_000), 1, 1]
    assert [song.id for song in library.songs(wanted)] == [1, 5, 6, 9]
    assert [song.id for song in library.songs(wanted, missing=True)] == [1, 5, 6, 7, 9]
    assert library.songs([]) == []
    everything = {song.id: song for song in library.songs(missing=True)}
    assert all(library.song(i) == song for i, song in everything.items())


def test_tags_of_some_songs_match_all_tags(library):
    rows = [("calm", 1, 2.0, "a"), ("calm", 1, 5.0, "b"), ("loud", 1, 5.0, "a"), ("odd", 3, 1.0, "a")]
    for tag, song_id, weight, source in rows:
        row = {"song_id": song_id, "tag": tag, "weight": weight}
        library.listening.add_tags([row], source)
    tags = library.tags()
    assert library.tags([1, 2]) == {1: tags[1]}
    assert library.tags([3, 1]) == tags


# --- parts ----------------------------------------------------------------------------------------

lines = st.lists(st.text(alphabet="abAéßİ \n日\U0010ffff", max_size=6), max_size=12)


@given(lines, st.text(alphabet="abé日 \n", max_size=3), st.integers(1, 6))
def test_text_search_returns_prefix_matches_first(texts, part, limit):
    right = [i for i, text in enumerate(texts) if text.startswith(part)]
    right += [i for i, text in enumerate(texts) if part in text and not text.startswith(part)]
    assert PackedTexts.pack(texts).holding(part, limit) == right[:limit]


def test_typo_search_returns_closest_matches():
    texts = ["suspense", "a suspicious past", "in suspense again", "the battle for wesnoth", "", "return to wesnoth"]
    lines = PackedTexts.pack(texts)
    for typed in ("suspence", "suspnse", "usspense", "suspensee"):  # another letter, one less, two changed, one more
        assert lines.nearly_holding(typed, 5) == [0, 2]
    assert lines.nearly_holding("batle for wesnoth", 5) == [3]
    assert lines.nearly_holding("wesnoht", 1) == [3]
    assert lines.nearly_holding("past", 5) == [], "too short for a typo"
    assert lines.nearly_holding("susxxxnse", 5) == []


def test_text_search_in_many_lines(rng):
    texts = ["".join(rng.choice(list("abc"), size=rng.integers(0, 5))) for _ in range(3000)]
    for part in ("a", "ab", "abc", "cccc", "ba"):
        right = [i for i, text in enumerate(texts) if text.startswith(part)]
        right += [i for i, text in enumerate(texts) if part in text and not text.startswith(part)]
        assert PackedTexts.pack(texts).holding(part, 20) == right[:20]


@given(lines, st.data())
def test_replaced_lines_equal_new_texts(texts, data):
    gone = sorted(data.draw(st.sets(st.integers(0, max(0, len(texts) - 1)), max_size=len(texts))))
    left = [text for i, text in enumerate(texts) if i not in gone]
    new = data.draw(lines)
    at = sorted(data.draw(st.lists(st.integers(0, len(left)), min_size=len(new), max_size=len(new))))
    right = left.copy()
    for shift, (place, text) in enumerate(zip(at, new, strict=True)):
        right.insert(place + shift, text)
    replaced = PackedTexts.pack(texts).replace_lines(
        np.array(gone, dtype=np.int64), PackedTexts.pack(new), np.array(at, dtype=np.int64)
    )
    whole = PackedTexts.pack(right)
    assert replaced.text == whole.text
    np.testing.assert_array_equal(replaced.starts, whole.starts)


def test_labels_among_names():
    labels = Labels(np.array([0, -1, 2, 0], dtype=np.int32), ["a", "b", "c"])
    assert labels.is_in({"a", "x"}).tolist() == [True, False, False, True]
    assert labels.is_in(set()).tolist() == [False] * 4
    assert Labels(np.array([-1], dtype=np.int32), []).is_in({"a"}).tolist() == [False]


def test_table_round_trips_through_arrays(library):
    table = library.table()
    assert_is_of(SongTable.from_arrays(table.to_arrays()), library)


def test_columns_are_computed_lazily_and_once():
    asked = []

    def genre():
        asked.append("genre")
        return Labels(np.array([0, 1], dtype=np.int32), ["a", "b"])

    columns = SongColumns(genre=genre, year=np.array([1990, 2000], dtype=np.int16))
    second = columns.take(np.array([1])).replace_genre(lambda: Labels(np.array([0], dtype=np.int32), ["c"]))
    assert second.year.tolist() == [2000]
    assert second.genre.names == ["c"]
    assert asked == []
    assert columns.genre is columns.genre
    assert asked == ["genre"]
    assert columns.take(np.array([1])).genre.texts() == ["b"]


def test_concurrent_threads_get_same_column():
    together = Barrier(2)

    def genre():
        together.wait(PATIENCE_S)
        return Labels(np.array([0], dtype=np.int32), ["a"])

    columns = SongColumns(genre=genre)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: columns.genre, range(2))
    assert first is second
