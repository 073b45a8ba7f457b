"""Tables of extensions in the database of a library."""

import pytest
import sqlalchemy as sa

from musicsim.errors import LibraryError
from musicsim.library import Library
from musicsim.library.db import schema, schema_version, tables


@pytest.fixture
def all_tables(monkeypatch):
    """All tables, with one of an extension that was installed later."""
    later = sa.Table("later", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True))
    monkeypatch.setattr(schema_version, "all_tables", lambda: (*tables.all_tables(), later))


def test_a_library_gets_the_tables_of_extensions_that_come_later(tiny_library, request):
    request.getfixturevalue("all_tables")
    with Library.open(tiny_library.folder) as library:
        assert "later" in sa.inspect(library.engine).get_table_names()


def test_a_library_that_cannot_be_changed_names_the_table_that_it_lacks(tiny_library, request, monkeypatch):
    request.getfixturevalue("all_tables")
    monkeypatch.setattr("musicsim.library.library.is_writable", lambda path: False)
    with pytest.raises(LibraryError, match=r"no table 'later' yet"):
        Library.open(tiny_library.folder)


def test_a_lost_table_of_the_core_is_not_made_again(tiny_library):
    with tiny_library.write() as connection:
        connection.exec_driver_sql("DROP TABLE feedback")
    with Library.open(tiny_library.folder) as library:
        assert "feedback" not in sa.inspect(library.engine).get_table_names()


def test_a_table_of_the_small_copy_follows_those_that_its_rows_refer_to():
    copied = tables.small_copy_tables()
    assert {schema.plays, schema.tags, schema.playlists, schema.judgments, schema.feedback} <= set(copied)
    assert schema.songs not in copied
    assert schema.jobs not in copied
    for place, table in enumerate(copied):
        needed = {key.column.table for key in table.foreign_keys}
        assert needed.isdisjoint(copied[place + 1 :])
