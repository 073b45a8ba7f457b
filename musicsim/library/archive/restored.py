"""Changes to an unpacked backup so that it cannot act on this machine without its owner's consent.

A backup may come from an untrusted person, and it was made for another machine. Its settings could name workers that
run code here. Its jobs could be restarted with their paths. Its author knows its tokens.
"""

import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from musicsim import LIBRARY_FILE
from musicsim.addresses import is_address, strip_user
from musicsim.library.db.schema import path_of
from musicsim.library.db.settings import merge_restored
from musicsim.library.db.tables import renew_tokens

_OF_MACHINE = "key = 'settings' OR key LIKE 'machine.%'"
_PATHS = (("roots", "path"), ("files", "folder"), ("files", "path"), ("failures", "path"), ("songs", "last_path"))
_MAX_LISTED = 10


def read_own_texts(folder: Path) -> dict[str, str]:
    """Return the texts of a library that belong to the machine; empty if it does not exist or is damaged."""
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

    `own`, from :func:`read_own_texts`, are kept. Jobs are removed. Links for other people get new tokens unless
    `with_tokens`. Raises ValueError if its settings are damaged.
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
    """Return the addresses that a scan or player would connect to, without user names; a folder covers its content."""
    addresses: dict[str, None] = {}
    with closing(sqlite3.connect(folder / LIBRARY_FILE)) as database:
        for table, column in _PATHS:
            query = f"SELECT DISTINCT {column} FROM {table} WHERE {column} LIKE '%:/%' ORDER BY {column}"
            for (stored,) in database.execute(query):
                path = path_of(stored)  # as readers do, so that "./s3:/bucket" is recognized, too
                if is_address(path) and not any(os.fspath(p) in addresses for p in (path, *path.parents)):
                    addresses[os.fspath(path)] = None
    return [strip_user(address) for address in addresses]


def name_some(addresses: Sequence[str]) -> str:
    """List the first addresses, and count the others."""
    more = len(addresses) - _MAX_LISTED
    return ", ".join(addresses[:_MAX_LISTED]) + (f" and {more:,} more" if more > 0 else "")
