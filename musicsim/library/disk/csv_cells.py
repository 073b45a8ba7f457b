"""Cells in CSV files for people: a leading apostrophe keeps spreadsheets from evaluating text as a formula."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

_MAX_PROBLEMS = 20
# the start of a formula, with or without apostrophes that protect_cell added
_FORMULA = re.compile(r"[\s']*[=+\-@＝＋－＠]|'*[\t\r\n]")


def protect_cell(cell: object) -> object:
    """Return a cell to write, with a leading apostrophe if a spreadsheet would read it as a formula."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def restore_cell(cell: str) -> str:
    """Return the original text of a cell written by :func:`protect_cell`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell, 1) else cell


def as_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Return a table as UTF-8 CSV with protected cells; None becomes an empty cell, and lone surrogates become "?"."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(map(protect_cell, header))
    writer.writerows(map(protect_cell, row) for row in rows)
    return text.getvalue().encode("utf-8", "replace")


def shorten_problems(problems: list[str]) -> tuple[str, ...]:
    """Return the first 20 problems with the rows of a file, and a line with the number of the others."""
    more = len(problems) - _MAX_PROBLEMS
    return (*problems[:_MAX_PROBLEMS], *([f"{more} more rows were left out."] if more > 0 else ()))
