"""Finished parts of a long run, kept on disk, so that an interrupted run goes on where it was (``--resume``)."""

from pathlib import Path

from joblib import Memory

from benchmarks._report import Settings

__all__ = ["kept_parts"]

PARTS = Path(__file__).parents[1] / "data" / "experiments" / "parts"


def kept_parts(name: str, settings: Settings, folder: Path = PARTS) -> Memory:
    """A memory whose ``cache(function)`` keeps each result with ``--resume``, and nothing without.

    A result is found again by the function's source and its arguments, the seed and the protocol among them. What else
    the function calls is not looked at: after a change of that, remove the folder.

    Parameters
    ----------
    name : str
        Of the experiment or benchmark: a folder below data/experiments/parts.
    """
    return Memory(folder / name if settings.resume else None, verbose=0)
