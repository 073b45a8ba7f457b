"""Tests of tables of extensions in the database of a library."""

import pytest
import sqlalchemy as sa

from musicsim.errors import LibraryError
from musicsim.library import Library
from musicsim.library.db import schema


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
