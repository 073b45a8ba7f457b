"""The background job that evaluates how lists are continued."""

from typing import Any

from musicsim.extensions.continuation.continuation import continue_lists
from musicsim.library import Library


def run(library: Library, *, lists: str, progress: Any) -> bool:
    """Evaluate `lists`, one of LISTS, and keep the result as the trace of the job."""
    found = continue_lists(library, lists, progress)
    progress.trace(found.as_json())
    progress.outcome = found.words
    return True
