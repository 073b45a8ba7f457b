"""What an unpacked library has to be before anybody works with it, wherever its archive came from."""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import sqlalchemy as sa

from musicsim import LIBRARY_FILE
from musicsim.library.db.integrity import check_database
from musicsim.library.db.tables import all_tables
from musicsim.library.db.value_check import find_wrong_value
from musicsim.library.store import Store

# of a model's folder what it cannot do without; rows.npz and the index are caches
_MODEL_FILE = r"(?!rows\.npz)[a-z_]+\.(json|npz|f32)"
MODEL_FILES = rf"models/[\w-]+/{_MODEL_FILE}"
"""Names of files of models in an archive, a regular expression."""


def model_files(folder: Path, grown: Mapping[Path, int]) -> dict[Path, int | None]:
    """The files of a model that go into an archive, with their lengths; None: as long as they are.

    `grown` are those that grow, as :meth:`ModelStore.row_bytes` gives them, there or not.
    """
    found = sorted({*folder.glob("*.*"), *grown})
    return {path: grown.get(path) for path in found if re.fullmatch(_MODEL_FILE, path.name)}


@contextmanager
def checked_library(folder: Path) -> Iterator[Store]:
    """Open an unpacked library.

    Raises ValueError if its database or arrays are not whole, or the database holds what none does.
    """
    try:
        with closing(sqlite3.connect(folder / LIBRARY_FILE)) as connection:
            check_database(connection)
    except sqlite3.DatabaseError as error:
        raise ValueError(str(error)) from error
    with Store.open(folder, create=False) as library:
        look = sa.inspect(library.engine)
        found = {name: {c["name"] for c in look.get_columns(name)} for name in look.get_table_names()}
        wanted = {table.name: {c.name for c in table.c} for table in all_tables()}
        if {name: found.get(name) for name in wanted} != wanted:
            raise ValueError("its tables are not those of a library")
        if look.get_view_names() or _has_triggers(library.engine):
            raise ValueError("its database holds what no library does")
        _check_values(folder, library)
        for record in library.models.all(retired=True):
            for path, n_bytes in library.models.row_bytes(record).items():
                if path.exists() and path.stat().st_size != n_bytes:
                    raise ValueError(f"the rows of the model {record.name!r} are not all there")
        yield library


def _check_values(folder: Path, library: Store) -> None:
    """Raises ValueError if a column holds values that no library does."""
    with closing(sqlite3.connect(folder / LIBRARY_FILE)) as connection:
        wrong = find_wrong_value(connection)
        known = {model_id for (model_id,) in connection.execute("SELECT id FROM models")}
    if wrong is not None:
        raise ValueError(f"its database has a value in the column {wrong} that no library has")
    if not {record.features_of for record in library.models.all(retired=True)} <= known:
        raise ValueError("it names a model that it does not hold")


def _has_triggers(engine: sa.Engine) -> bool:
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE type = 'trigger' LIMIT 1")
        return found.first() is not None
