"""The library as users know it: the store, and adding music to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from musicsim.library import scan
from musicsim.library.archive.small_copies import SmallCopies
from musicsim.library.store import Store


class Library(Store):
    """Songs, their features and all that listeners said of them, in one folder; see :meth:`open`."""

    def __init__(self, folder: Path, engine: sa.Engine) -> None:
        super().__init__(folder, engine)
        self.copies = SmallCopies(self)

    def _after_write(self) -> None:
        self.copies.keep_daily()

    def add(
        self,
        sources: str | Path | Sequence[str | Path],
        progress: "scan.ProgressCallback | None" = None,
        **options: Any,
    ) -> "scan.AddReport":
        """Analyse the audio files below `sources` and add them; see :func:`musicsim.library.scan.ingest.add`."""
        return scan.add(self, sources, progress=progress, **options)
