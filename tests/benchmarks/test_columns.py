"""Tables of declared columns: formats, absent values, and the rows that are shown."""

import pytest

from benchmarks.support.columns import (
    NUMBER_1,
    SHARE_2,
    SIGNIFICANT_2,
    Column,
    find_row,
    list_columns,
    shorten_lead,
    with_paper,
)

ROWS = [{"part": "a", "n": 1234, "P@1": 0.125}, {"part": "b", "n": 1}, {"part": "a", "n": 7, "P@1": None}]


def test_lines_have_cells_of_declared_columns():
    table = list_columns(
        Column("", lambda row: row["part"] * 2), Column("songs", "n", "{:,}"), Column("P@1", "P@1", SHARE_2),
        Column("again", "P@1", NUMBER_1, absent="–"), where=lambda row: row["part"] == "a",
    )  # fmt: skip
    assert list(table(ROWS)) == [
        ["", "songs", "P@1", "again"], ["aa", "1,234", ".13", "0.1"], ["aa", "7", "", "–"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "value", "text"),
    [
        (NUMBER_1, -0.04, "0.0"), (SHARE_2, 0.005, ".01"), (SHARE_2, -0.5, "-.50"),
        (SIGNIFICANT_2, 0.0123, ".012"), (SIGNIFICANT_2, 1234.5, "1,235"), (SIGNIFICANT_2, 0, "0"),
        (shorten_lead, "+0.120 (+0.010 to +10.200), sd 0.1", "+.120 (+.010 to +10.200)"),
    ],
)  # fmt: skip
def test_numbers_are_rounded_half_up_without_leading_zero(form, value, text):
    assert form(value) == text


def test_rows_are_found_by_columns_with_any_letters():
    assert find_row(ROWS, P_1=0.125)["n"] == 1234
    assert find_row(ROWS, part="c") == {}
    assert (with_paper("1", None), with_paper("1", 0.9)) == ("1", "1 (0.9)")
