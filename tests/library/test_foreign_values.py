"""Tests of invalid values in the database of a backup or snapshot: refused in a sentence, for each column."""

import sqlite3
from contextlib import closing

import pytest

from musicsim import LIBRARY_FILE
from musicsim.errors import LibraryError
from musicsim.library.archive.backups import back_up, restore
from musicsim.library.db import schema
from musicsim.library.db.changes import CHANGES_PREFIX
from musicsim.library.db.value_check import find_wrong_value
from musicsim.progress import no_progress

WRONG = {
    "songs.duration_s": ["'x'", "x'00'", "9e999", "-1", "1e300"],
    "songs.title": ["x'fffe00'", "CAST(x'41ff42' AS TEXT)", "5.5e0 || x'ff'"],
    "songs.artist": ["x'00'", "CAST(x'eda080' AS TEXT)"],
    "songs.year": ["'x'", "99999", "1.5"],
    "songs.added_at": ["'x'", "9e999", "1e17"],
    "songs.outline": ["'text'", "7"],
    "songs.is_compared": ["2", "'yes'"],
    "songs.file_tags": [
        "'nonsense'", "'[1]'", """'{"title": {}}'""", """'{"color": "red"}'""", "CAST(x'7bff7d' AS TEXT)",
    ],
    "songs.edits": ["""'{"year": "x"}'""", "'" + "[" * 100_000 + "'"],
    "songs.content_hash": ["'../../x'", "''", "'a/b'", "id || '/..'"],
    "songs.last_path": ["'a' || char(0)", "7.5 || x'ff'"],
    "files.path": ["x'2f61'", "song_id || char(0)"],
    "models.id": ["'../../x'", "'..'"],
    "models.base_id": ["'../x'", "x'61'"],
    "models.settings": ["'[]'", "'x'"],
    "models.created_at": ["1e308", "'x'"],
    "vectors.row": ["'x'", "1.5", "-1"],
}  # fmt: skip


def change(file, column, value):
    table, name = column.split(".")
    with closing(sqlite3.connect(file)) as database, database:
        first = f"SELECT min(rowid) FROM {table}"
        database.execute("PRAGMA ignore_check_constraints=ON")
        database.execute(f"UPDATE {table} SET {name} = {value} WHERE rowid = ({first})")


def test_valid_library_has_no_wrong_values(tiny_library):
    tiny_library.add_plays([{"listener": "ann", "song_id": 1, "count": 3}])
    tiny_library.add_playlists([("mine", None, [3, 1, 2], {"seed": 4})], "saved")
    tiny_library.edits.edit([1, 2], {"genre": "Pop", "year": 1999})
    tiny_library.jobs.create("scan", {})
    with closing(sqlite3.connect(tiny_library.folder / LIBRARY_FILE)) as database:
        assert find_wrong_value(database) is None
        tables = {table.name for table in schema.metadata.sorted_tables}
        filled = {name for name in tables if database.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone()}
    assert {"songs", "files", "models", "vectors", "plays", "playlists", "jobs"} <= filled


@pytest.mark.parametrize(("column", "value"), [(c, value) for c, values in WRONG.items() for value in values])
def test_wrong_value_is_found_in_its_column(tiny_library, tmp_path, column, value):
    tiny_library.close()
    try:
        change(tiny_library.folder / LIBRARY_FILE, column, value)
    except sqlite3.IntegrityError as error:
        pytest.fail(f"the database does not take it: {error}")
    with closing(sqlite3.connect(tiny_library.folder / LIBRARY_FILE)) as database:
        assert find_wrong_value(database) == column


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("revision", "x"), ("revision", "9" * 400), ("colours", "[]"), ("colours", '{"genre": {"Pop": "x"}}'),
        ("changes 000000000003", "{}"), ("changes 000000000003", '["a", "b", null, null]'),
    ],
)  # fmt: skip
def test_wrong_meta_value_is_found(tiny_library, key, value):
    key = key.replace("changes ", CHANGES_PREFIX)
    with closing(sqlite3.connect(tiny_library.folder / LIBRARY_FILE)) as database:
        database.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))
        assert find_wrong_value(database) == f"meta.value ({key[:20]})"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("songs.duration_s", "'x'"), ("songs.duration_s", "9e999"), ("songs.title", "x'fffe00'"),
        ("models.base_id", "'../x'"),
    ],
)  # fmt: skip
def test_backups_with_wrong_values_are_refused(tiny_library, tmp_path, column, value):
    change(tiny_library.folder / LIBRARY_FILE, column, value)
    back_up(tiny_library, tmp_path / "bad", no_progress)
    with pytest.raises(LibraryError, match=rf"bad: this is not a complete backup made by musicsim .*{column}"):
        restore(tmp_path / "bad", tmp_path / "there", no_progress)
    assert not (tmp_path / "there").exists()
