"""The part of a library that a scan uses; avoids an import cycle."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from musicsim.library.db.database import Write
from musicsim.library.processes.pools import Pool
from musicsim.library.processes.workers import Limits
from musicsim.library.stores.files import FileStore
from musicsim.library.stores.frames import FrameStore
from musicsim.library.stores.tag_edits import TagEdits


class ScanTarget(Protocol):
    """The interface of :class:`musicsim.library.Library` for scans."""

    folder: Path
    files: FileStore
    frame_files: FrameStore
    edits: TagEdits
    pool: Pool | None

    @property
    def settings(self) -> dict[str, Any]: ...

    @property
    def file_limits(self) -> Limits: ...

    def content_hashes(self) -> list[str]: ...

    def exclusive(self, doing: str = ...) -> AbstractContextManager[None]: ...

    @property
    def write(self) -> Write: ...
