"""The background job that runs an experiment."""

from typing import Any

from musicsim.extensions.paper_tables.paper_tables import run_experiment
from musicsim.library import Library


def run(_library: Library, *, name: str, progress: Any) -> bool:
    """Run the experiment of a name."""
    return run_experiment(name, progress)
