"""The library as users know it: the store, and adding music to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from musicsim.library.store import Store

if TYPE_CHECKING:
    from musicsim.library.scan.ingest import AddReport, ProgressCallback


class Library(Store):
    """Songs, their features and all that listeners said of them, in one folder; see :meth:`open`."""

    def add(
        self,
        sources: str | Path | Sequence[str | Path],
        progress: "ProgressCallback | None" = None,
        **options: Any,
    ) -> "AddReport":
        """Analyse the audio files below `sources` and add them; see :func:`musicsim.library.scan.ingest.add`."""
        # what decodes sound is loaded where there is some: most commands only look something up
        from musicsim.library.scan.ingest import add

        return add(self, sources, progress=progress, **options)
