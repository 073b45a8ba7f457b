"""Seconds that all runs of a long script have taken, stored next to its finished parts."""

import time
from pathlib import Path

from musicsim.library.disk.arrays import atomic_path

__all__ = ["PARTS", "Stopwatch"]

PARTS = Path(__file__).parents[2] / "data" / "experiments" / "parts"
"""Finished parts of long runs; results of parts and the seconds are deleted together."""


class Stopwatch:
    """Seconds of this run, and of all runs since the parts were last deleted.

    Parameters
    ----------
    file : Path or None
        File with the seconds; None for runs that do not resume.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file, self._started = file, time.perf_counter()
        self._before = float(file.read_text(encoding="ascii")) if file and file.is_file() else 0.0

    @property
    def seconds(self) -> float:
        """Seconds since this run started."""
        return time.perf_counter() - self._started

    @property
    def total(self) -> float:
        """Seconds of this run and of earlier ones."""
        return self._before + self.seconds

    def save(self) -> None:
        """Store the total; call it often, because a run may be interrupted at any time."""
        if self._file:
            with atomic_path(self._file) as target:
                target.write_text(f"{self.total:.1f}", encoding="ascii")
