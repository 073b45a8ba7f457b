"""Tests of tables of extensions in the database of a library."""

import sqlite3

import numpy as np
import pytest
import sqlalchemy as sa

from musicsim import LIBRARY_FILE
from musicsim.errors import LibraryError
from musicsim.explorer.refresh.add_music import bring_up_to_date
from musicsim.library import Library
from musicsim.library.db import schema
from musicsim.progress import no_progress


@pytest.fixture
def all_tables(monkeypatch):
    """Return all tables, including one of an extension that was installed later."""
    later = sa.Table("later", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True))
    tables = schema.all_tables()
    monkeypatch.setattr(schema, "all_tables", lambda: (*tables, later))


def test_tables_of_new_extensions_are_added(tiny_library, request):
    request.getfixturevalue("all_tables")
    with Library.open(tiny_library.folder) as library:
        assert "later" in sa.inspect(library.engine).get_table_names()


def test_read_only_library_names_missing_table(tiny_library, request, monkeypatch):
    request.getfixturevalue("all_tables")
    monkeypatch.setattr("musicsim.library.library.is_writable", lambda path: False)
    with pytest.raises(LibraryError, match=r"not have the table 'later' yet"):
        Library.open(tiny_library.folder)


@pytest.fixture
def before_steadiness(tiny_library):
    """Return the folder of a library from before songs had a steadiness."""
    with sqlite3.connect(tiny_library.folder / LIBRARY_FILE) as connection:
        connection.execute("ALTER TABLE songs DROP COLUMN steadiness")
        connection.execute("UPDATE songs SET descriptor_version = 1")
    return tiny_library.folder


def test_columns_of_new_descriptors_are_added_and_filled(before_steadiness):
    with Library.open(before_steadiness) as library:
        assert [song.steadiness for song in library.songs()] == [None] * 12
        assert bring_up_to_date(library, progress=no_progress)
        assert all(0 < song.steadiness <= 100 for song in library.songs())
        column = library.table().columns.steadiness
        np.testing.assert_allclose(column, [song.steadiness for song in library.songs()], rtol=1e-6)  # float32


def test_read_only_library_names_missing_descriptor(before_steadiness, monkeypatch):
    monkeypatch.setattr("musicsim.library.library.is_writable", lambda path: False)
    with pytest.raises(LibraryError, match=r"not have the descriptor steadiness yet, and is read-only"):
        Library.open(before_steadiness)


def test_lost_core_table_is_not_recreated(tiny_library):
    with tiny_library.write() as connection:
        connection.exec_driver_sql("DROP TABLE feedback")
    with Library.open(tiny_library.folder) as library:
        assert "feedback" not in sa.inspect(library.engine).get_table_names()


def test_small_copy_tables_follow_foreign_keys():
    copied = schema.small_copy_tables()
    assert {schema.plays, schema.tags, schema.playlists, schema.judgments, schema.feedback} <= set(copied)
    assert schema.songs not in copied
    assert schema.jobs not in copied
    for place, table in enumerate(copied):
        needed = {key.column.table for key in table.foreign_keys}
        assert needed.isdisjoint(copied[place + 1 :])
