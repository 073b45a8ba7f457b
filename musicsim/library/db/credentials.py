"""User names and passwords of addresses, which versions before this one kept in a library."""

import sqlalchemy as sa

from musicsim.addresses import text_without_users, without_user
from musicsim.library.db import schema

CLEANED_KEY = "addresses_without_users"
"""Key of the table `meta`, present if the library has been cleaned."""
_PATHS = (
    (schema.roots, "path"),
    (schema.files, "path"),
    (schema.files, "folder"),
    (schema.failures, "path"),
    (schema.songs, "last_path"),
)
_TEXTS = ((schema.failures, "reason"), (schema.jobs, "message"), (schema.jobs, "arguments"))


def drop_credentials(connection: sa.Connection) -> None:
    """Remove user names and passwords from the addresses of a library, once per library."""
    meta = schema.meta
    if connection.scalar(sa.select(meta.c.value).where(meta.c.key == CLEANED_KEY)) is not None:
        return
    for columns, bare in ((_PATHS, without_user), (_TEXTS, text_without_users)):
        for table, name in columns:
            # as plain text: the columns' own types hide what is to be removed
            column = sa.column(name, sa.Text)
            found = sa.select(column).select_from(table).where(column.like("%:/%@%")).distinct()
            for (text,) in connection.execute(found).all():
                if (clean := bare(text)) != text:
                    connection.exec_driver_sql(
                        f"UPDATE OR REPLACE {table.name} SET {name} = ? WHERE {name} = ?", (clean, text)
                    )
    connection.execute(meta.insert().values(key=CLEANED_KEY, value="1"))
