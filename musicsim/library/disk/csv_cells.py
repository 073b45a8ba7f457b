"""Cells of the tables that are written for people, so that no spreadsheet takes somebody's text for a formula.

A cell that would be one is written with an apostrophe before it, as spreadsheets themselves mark text, and is read
without.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence

_MAX_PROBLEMS = 20  # that are listed
# what spreadsheets begin a formula with, also after an apostrophe that we wrote ourselves
_FORMULA = re.compile(r"[\s']*[=+\-@＝＋－＠]|'*[\t\r\n]")


def harmless(cell: object) -> object:
    """What to write of a cell: text that a spreadsheet would take for a formula gets an apostrophe before it."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def restored(cell: str) -> str:
    """The text that :func:`harmless` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell, 1) else cell


def as_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """A table as CSV in UTF-8, its cells harmless; None is an empty cell, lone surrogates are question marks."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(map(harmless, header))
    writer.writerows(map(harmless, row) for row in rows)
    return text.getvalue().encode("utf-8", "replace")


def shortened(problems: list[str]) -> tuple[str, ...]:
    """The first 20 of what is wrong with the rows of a file, and how many more there are."""
    more = len(problems) - _MAX_PROBLEMS
    return (*problems[:_MAX_PROBLEMS], *([f"{more} more rows were left out."] if more > 0 else ()))
