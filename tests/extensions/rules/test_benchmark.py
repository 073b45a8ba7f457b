"""The benchmark of rules: its drawn library has what rules read, and every rule is measured."""

import pytest

from benchmarks.large_library import write_library
from benchmarks.rules import enrich, measure


@pytest.mark.long
def test_rules_are_measured_on_drawn_library(tmp_path):
    with write_library(tmp_path / "library", 3000) as library:
        enrich(library)
        rows = measure(library)
    assert len(rows) == 6
    assert all(row["songs"] < 3000 for row in rows)
    assert sum(row["songs"] > 0 for row in rows) >= 4
    assert all(row["typed CPU s"] > 0 for row in rows)
