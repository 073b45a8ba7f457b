"""Paths as a library keeps them."""

import os
from pathlib import Path


def absolute(source: str | Path) -> Path:
    """The path without ``~`` and ``..``; links are kept, so that a library follows what was named."""
    return Path(os.path.abspath(Path(source).expanduser()))


def is_below(path: Path, folder: Path) -> bool:
    """Whether an absolute path is the folder or lies in it, by its name alone: the disk is not asked."""
    inside, outside = os.fspath(path), os.fspath(folder)
    return inside == outside or inside.startswith(os.path.join(outside, ""))
