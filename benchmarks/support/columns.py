"""Columns of the tables in the documents, which each experiment and benchmark declares next to its ``run``.

A script names its tables in ``TABLES``. A table is a function of the kept rows that yields the lines, headings first.
:func:`list_columns` makes it of declared columns, with a line per row. Other tables are written as functions.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from math import floor, log10
from typing import Any

__all__ = [
    "NUMBER_0",
    "NUMBER_1",
    "NUMBER_3",
    "SHARE_2",
    "SHARE_3",
    "SIGNIFICANT_2",
    "Column",
    "KeptRows",
    "Lines",
    "Table",
    "drop_zeros",
    "find_row",
    "format_number",
    "format_share",
    "format_significant",
    "group_rows",
    "list_columns",
    "list_values",
    "shorten_lead",
    "with_paper",
]

KeptRow = Mapping[str, Any]
KeptRows = list[KeptRow]
Lines = Iterator[Sequence[str]]
Table = Callable[[KeptRows], Lines]


def find_row(rows: KeptRows, **wanted: object) -> KeptRow:
    """Return the first row with these values, or an empty one. In column names _ matches any non-letter."""
    names = {re.sub(r"\W", "_", name): name for row in rows for name in row}
    return next((row for row in rows if all(row.get(names[k]) == v for k, v in wanted.items())), {})


def list_values(rows: KeptRows, column: str) -> list[Any]:
    """Return the distinct values of a column."""
    return list(dict.fromkeys(row[column] for row in rows if column in row))


def group_rows(rows: Iterable[KeptRow], *columns: str) -> Iterator[tuple[tuple[Any, ...], KeptRows]]:
    """Group rows by these columns, in the order of first occurrence."""
    found: dict[tuple[Any, ...], KeptRows] = {}
    for row in rows:
        found.setdefault(tuple(row[column] for column in columns), []).append(row)
    yield from found.items()


# --- formats ------------------------------------------------------------------------------------------------


def format_number(value: float | None, digits: int = 1) -> str:
    """Format a number, rounding halves up; None is a dash."""
    if value is None:
        return "–"
    rounded = Decimal(str(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded + 0:,}"  # + 0 avoids -0.00


def format_share(value: float | None, digits: int = 2) -> str:
    """Format a number without the 0 before its decimal point."""
    return drop_zeros(format_number(value, digits))


def format_significant(value: float, digits: int) -> str:
    """Format a number with significant digits; integers are unchanged."""
    places = digits - 1 - floor(log10(abs(value))) if value else 0
    return format_share(value, max(places, 0))


def drop_zeros(text: str) -> str:
    """Remove the 0 before decimal points in a text."""
    return re.sub(r"(?<!\d)0\.(?=\d)", ".", text)


def shorten_lead(text: str) -> str:
    """Format a lead and its interval, without the spread over splits."""
    return drop_zeros(text.partition(", sd")[0])


def with_paper(value: str, paper: float | str | None) -> str:
    """Format a score with the paper's in parentheses."""
    return value if paper is None else f"{value} ({paper})"


NUMBER_0, NUMBER_1, NUMBER_3 = (partial(format_number, digits=digits) for digits in (0, 1, 3))
SHARE_2, SHARE_3 = (partial(format_share, digits=digits) for digits in (2, 3))
SIGNIFICANT_2 = partial(format_significant, digits=2)


# --- columns ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table with a line per row.

    `value` is a column of the rows, or a function of a row. `form` is a function or a template for ``str.format``.
    `absent` is shown for None and for rows without the column.
    """

    heading: str
    value: str | Callable[[KeptRow], Any]
    form: str | Callable[[Any], str] = "{}"
    absent: str = ""

    def cell(self, row: KeptRow) -> str:
        """Return the text of this column for a row."""
        value = row.get(self.value) if isinstance(self.value, str) else self.value(row)
        if value is None:
            return self.absent
        return self.form.format(value) if isinstance(self.form, str) else self.form(value)


def list_columns(*columns: Column, where: Callable[[KeptRow], bool] = bool) -> Table:
    """Return a table of these columns, with a line for each row where `where` is true."""

    def tabulate(rows: KeptRows) -> Lines:
        yield [column.heading for column in columns]
        for row in filter(where, rows):
            yield [column.cell(row) for column in columns]

    return tabulate
