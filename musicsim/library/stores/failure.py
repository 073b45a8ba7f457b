"""Why a file was not added."""

from dataclasses import dataclass
from pathlib import Path

ERROR, NO_SOUND, SHORT, SILENT = "error", "no sound", "short", "silent"
SKIPPED = (SHORT, SILENT)
"""Kinds of files that could be added, were they asked for."""

BLAMED = ("the decoder crashed (exit code", "BrokenProcessPool", "cannot be read (")
"""What older versions said of files that a worker's death, a full disk or the network had kept from being added."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that was not added, and why.

    Attributes
    ----------
    reason : str
        One sentence that names the file.
    kind : {"error", "no sound", "short", "silent"}
        The last two can be added all the same when they are asked for.
    """

    path: Path
    reason: str
    kind: str = ERROR
