"""Daily mixes over HTTP, for the owner only."""

from typing import Any

from fastapi import APIRouter

from musicsim.explorer.libraries import open_library
from musicsim.extensions.daily.jobs import start_mixes
from musicsim.extensions.daily.rendering import render_daily

router = APIRouter()


@router.get("/daily")
def read_mixes(library: str | None = None) -> dict[str, Any]:
    """Return the settings and the last daily mixes."""
    return render_daily(open_library(library))


@router.post("/daily", status_code=202)
def make_mixes(library: str | None = None) -> dict[str, int]:
    """Start the job that makes today's mixes. The response contains the job's id; see `/jobs/{job}` for progress."""
    return {"job": start_mixes(open_library(library))}
