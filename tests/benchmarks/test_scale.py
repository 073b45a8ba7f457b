"""The table of docs/host/large_libraries.md is what the unit costs say."""

from pathlib import Path

import pytest

pytest.importorskip("psutil", reason="the extra bench is not installed")

from benchmarks.scale import ANALYSING, COSTS, Cost, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "host" / "large_libraries.md"


def test_document_contains_unit_cost_table():
    assert table() in DOCUMENT.read_text(encoding="utf-8")


def test_cost_adds_fixed_song_and_hour_parts():
    assert Cost("x", "MB", once=5.0, song=0.5, hour=2.0).of(10, 3.0) == 5.0 + 5.0 + 6.0


def test_million_song_analysis_cost_scales_with_hours():
    hours = 1_000_000 * 3.5 / 60
    assert f"{COSTS[ANALYSING].hour * hours / 3600:,.0f} core hours" in table()
