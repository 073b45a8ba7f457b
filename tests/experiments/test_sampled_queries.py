"""The experiment on sampled queries, on a few songs."""

import pytest

from benchmarks.support.report import Settings
from experiments import sampled_queries


@pytest.mark.long
def test_sampled_fits_never_beat_optimum(monkeypatch):
    monkeypatch.setattr(sampled_queries, "SIZES", (40,))
    monkeypatch.setattr(sampled_queries, "N_SEEDS", 2)
    rows, claims = sampled_queries.run(Settings(), lambda line: None)
    assert [row["queries a cut"] for row in rows] == [40, 20, 8, 2]
    assert [row["cuts"] for row in rows] == [10, 20, 50, 200]
    for row in rows:
        assert 0.0 <= row["least"] <= row["above the optimum, %, median"] <= row["most"]
    assert claims[0].value == max(row["most"] for row in rows[1:])
