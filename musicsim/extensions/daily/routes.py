"""Daily mixes over HTTP, for the owner only."""

from typing import Any

from fastapi import APIRouter

from musicsim.api.parameters import LibraryQuery
from musicsim.explorer.libraries import open_library
from musicsim.extensions.daily.jobs import start_mixes
from musicsim.extensions.daily.rendering import render_daily

router = APIRouter()


@router.get(
    "/daily",
    response_description=(
        "an object with `settings`, and `run` with `day` and `mixes`, each with `name`, `why` and `songs`; `run` is "
        "null before the first mixes"
    ),
)
def read_mixes(library: LibraryQuery = None) -> dict[str, Any]:
    """Return the settings and the last daily mixes."""
    return render_daily(open_library(library))


@router.post("/daily", response_description="an object with `job`, the id of the job", status_code=202)
def make_mixes(library: LibraryQuery = None) -> dict[str, int]:
    """Start the job that makes today's mixes. The response contains the job's id; see `/jobs/{job}` for progress."""
    return {"job": start_mixes(open_library(library))}
