"""Parts of an unpacked backup that must not act on this machine before its owner agrees.

A backup may come from anybody. Its settings, jobs and links were made for another machine. The settings could name
workers that run code here. Jobs could be started again with their paths. The maker of the backup knows its tokens.
"""

import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from musicsim import LIBRARY_FILE
from musicsim.addresses import is_address, without_user
from musicsim.library.db.schema import path_of
from musicsim.library.db.settings import merge_restored
from musicsim.library.db.tables import renew_tokens

_OF_MACHINE = "key = 'settings' OR key LIKE 'machine.%'"
_PATHS = (("roots", "path"), ("files", "folder"), ("files", "path"), ("failures", "path"), ("songs", "last_path"))
_MAX_NAMED = 10


def read_own_texts(folder: Path) -> dict[str, str]:
    """Texts about a library that belong to the machine; none if it does not exist or is damaged."""
    file = folder / LIBRARY_FILE
    if not file.exists():
        return {}
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            query = f"SELECT key, value FROM meta WHERE ({_OF_MACHINE}) AND typeof(value) = 'text'"
            return dict(database.execute(query))
    except (sqlite3.Error, UnicodeDecodeError):
        return {}


def adapt_to_machine(folder: Path, own: Mapping[str, str], *, with_tokens: bool) -> None:
    """Change an unpacked library so that it fits this machine.

    The machine keeps its own settings and texts, as of :func:`read_own_texts`. Jobs are removed. Links for other people
    get new tokens, unless `with_tokens`.

    Raises ValueError if its settings are damaged.
    """
    with closing(sqlite3.connect(folder / LIBRARY_FILE)) as database, database:
        row = database.execute("SELECT value FROM meta WHERE key = 'settings'").fetchone()
        merged = {**own, "settings": merge_restored(row[0] if row else None, own.get("settings"))}
        database.execute(f"DELETE FROM meta WHERE {_OF_MACHINE}")
        texts = ((key, value) for key, value in merged.items() if value is not None)
        database.executemany("INSERT INTO meta (key, value) VALUES (?, ?)", texts)
        database.execute("DELETE FROM jobs")
        if not with_tokens:
            renew_tokens(database)


def find_addresses(folder: Path) -> list[str]:
    """Return the addresses in an unpacked library that a scan or a player would connect to.

    A folder covers all addresses below it. User names and passwords are left out.
    """
    found: set[str] = set()
    named: list[str] = []
    with closing(sqlite3.connect(folder / LIBRARY_FILE)) as database:
        for table, column in _PATHS:
            rows = database.execute(
                f"SELECT DISTINCT {column} FROM {table} WHERE {column} LIKE '%:/%' ORDER BY {column}"
            )
            for (stored,) in rows:
                path = path_of(stored)  # readers do the same, so "./s3:/bucket" is an address, too
                if is_address(path) and not any(os.fspath(one) in found for one in (path, *path.parents)):
                    found.add(os.fspath(path))
                    named.append(without_user(os.fspath(path)))
    return named


def name_some(addresses: Sequence[str]) -> str:
    """The first addresses as text, and how many more there are."""
    more = len(addresses) - _MAX_NAMED
    return ", ".join(addresses[:_MAX_NAMED]) + (f" and {more:,} more" if more > 0 else "")
