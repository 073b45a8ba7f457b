"""The optional folder of public data sets: ``MUSICSIM_SHARED_DATA``, else looked for next to the checkout."""

import os
from pathlib import Path

import pytest

__all__ = ["FORMATS", "RECORDINGS", "SHARED", "needs_data", "needs_formats", "needs_recordings"]

SHARED = Path(os.environ.get("MUSICSIM_SHARED_DATA") or Path(__file__).parents[1] / "../shared/data").resolve()
RECORDINGS = sorted(p for p in (SHARED / "audio").glob("*/*.*") if p.suffix != ".md")
FORMATS = sorted((SHARED / "audio/formats").glob("plum_*"))

if SHARED.is_dir():
    os.environ.setdefault("MUSICSIM_SHARED_DATA", str(SHARED))  # read by musicsim.datasets

_WHERE = "set MUSICSIM_SHARED_DATA to the folder of public data sets"
needs_recordings = pytest.mark.skipif(not RECORDINGS, reason=f"no recordings: {_WHERE}")
needs_formats = pytest.mark.skipif(not FORMATS, reason=f"no recordings: {_WHERE}")


def needs_data(name: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test if this part of the public data sets is not there."""
    return pytest.mark.skipif(not (SHARED / name).is_dir(), reason=f"no {name}: {_WHERE}")
