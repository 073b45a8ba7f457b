"""The ``musicsim answers reasons`` command."""

from dataclasses import asdict

import typer

from musicsim.cli import JsonOption, LibraryOption, emit, open_library, show
from musicsim.extensions.blind_reasons.question import KIND, describe, summarize


def show_reasons(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """The questions are in *Research > Listening tests > Which reason is true?*.

    Examples:
        musicsim answers reasons
        musicsim answers reasons --json
    """
    with open_library(library) as lib:
        answers = lib.judgments.all(KIND)
    results = summarize(answers)
    if as_json:
        emit({
            "found": asdict(results.found), "unsure": results.n_unsure,
            "by_family": {family: asdict(rate) for family, rate in results.by_family.items()},
            "answers": [{"chosen": answer.chosen, **answer.context} for answer in answers],
        })  # fmt: skip
        return
    if results.by_family:
        rows = [(family, rate.n, f"{rate.share:.0%}", rate.interval) for family, rate in results.by_family.items()]
        show(("reason about", "questions", "found", "95% interval"), rows)
    typer.echo(describe(results))
