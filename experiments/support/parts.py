"""Saved rows of an experiment's finished parts, with which an interrupted run resumes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from musicsim.library.disk.arrays import atomic_path

__all__ = ["KeptParts", "Rows"]

Rows = list[dict[str, Any]]


class KeptParts:
    """Rows of parts by name.

    Parameters
    ----------
    folder : Path
        Must be specific to whatever the rows depend on. Changes of the program are not detected: delete the folder
        after them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def rows(self, name: str, measure: Callable[[], Rows]) -> Rows:
        """Return the saved rows of a part, or measure and save them."""
        path = self._folder / f"{name}.json"
        if not path.is_file():
            measured = measure()
            with atomic_path(path) as target:
                target.write_text(json.dumps(measured, ensure_ascii=False, default=float), encoding="utf-8")
        rows: Rows = json.loads(path.read_text(encoding="utf-8"))
        return rows
