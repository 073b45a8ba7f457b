"""Finished parts of a long run, stored on disk, so that an interrupted run can resume (``--resume``)."""

from pathlib import Path

from joblib import Memory

from benchmarks.support.durations import PARTS
from benchmarks.support.report import Settings

__all__ = ["kept_parts"]


def kept_parts(name: str, settings: Settings, folder: Path = PARTS) -> Memory:
    """Return a memory whose ``cache(function)`` stores results with ``--resume``, and does nothing without.

    A result is identified by the function's source and its arguments, including the seed and the protocol. The
    functions that it calls are not checked: after changing one of them, delete the folder.

    Parameters
    ----------
    name : str
        Name of the experiment or benchmark: a folder below data/experiments/parts.
    """
    return Memory(folder / name if settings.resume else None, verbose=0)
