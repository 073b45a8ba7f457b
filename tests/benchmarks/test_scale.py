"""The table of docs/scale.md is what the unit costs say."""

from pathlib import Path

import pytest

pytest.importorskip("psutil", reason="the extra bench is not installed")

from benchmarks.scale import ANALYSING, COSTS, Cost, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "scale.md"


def test_the_document_has_the_table_of_the_unit_costs():
    assert table() in DOCUMENT.read_text(encoding="utf-8")


def test_a_cost_adds_what_it_costs_once_by_song_and_by_hour():
    assert Cost("x", "MB", once=5.0, song=0.5, hour=2.0).of(10, 3.0) == 5.0 + 5.0 + 6.0


def test_a_million_songs_of_three_minutes_and_a_half_are_analysed_at_what_their_hours_cost():
    hours = 1_000_000 * 3.5 / 60
    assert f"{COSTS[ANALYSING].hour * hours / 3600:,.0f} core hours" in table()
