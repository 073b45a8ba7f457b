"""Rows of an experiment's finished parts, kept in a folder: one that was stopped goes on where it was."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from musicsim.library.disk.arrays import atomic_path

__all__ = ["KeptParts", "Rows"]

Rows = list[dict[str, Any]]


class KeptParts:
    """The rows of parts by their name.

    Parameters
    ----------
    folder : Path
        Of whatever the rows depend on. It does not know of changes to the program: delete it after them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def rows(self, name: str, measure: Callable[[], Rows]) -> Rows:
        """The rows of a part: those that are kept, or measured now and kept."""
        path = self._folder / f"{name}.json"
        if not path.is_file():
            measured = measure()
            with atomic_path(path) as target:
                target.write_text(json.dumps(measured, ensure_ascii=False, default=float), encoding="utf-8")
        rows: Rows = json.loads(path.read_text(encoding="utf-8"))
        return rows
