"""The ``musicsim run-job`` command."""

from pathlib import Path

import typer

from musicsim.cli.console import open_library
from musicsim.explorer.job_process import run


def run_job(library: Path, job_id: int) -> None:
    with open_library(library) as lib:
        state = run(lib, job_id)
    if state == "failed":
        raise typer.Exit(1)
