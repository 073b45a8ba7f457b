"""The ``musicsim warm-up`` command."""

from typing import Annotated

import typer

from musicsim.cli.console import JsonOption, progress_bar, report
from musicsim.warm_up import warm_up as compile_loops


def warm_up(
    n_jobs: Annotated[int, typer.Option("--jobs", min=1, help="Number of processes.", metavar="N")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Examples:
    musicsim warm-up
    musicsim warm-up --jobs 4
    """
    with progress_bar(is_noted=False) as progress:
        compile_loops(n_jobs=n_jobs, progress=progress)
    report({"processes": n_jobs}, "The loops are compiled.", as_json=as_json)
