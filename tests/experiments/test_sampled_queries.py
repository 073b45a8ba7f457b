"""The experiment on sampled queries, on a few songs."""

from benchmarks._report import Settings
from experiments import sampled_queries


def test_no_fit_is_below_the_optimum_and_full_cuts_are_in_the_table(monkeypatch):
    monkeypatch.setattr(sampled_queries, "SIZES", (40,))
    monkeypatch.setattr(sampled_queries, "N_SEEDS", 2)
    rows, claims = sampled_queries.run(Settings(), lambda line: None)
    assert [row["queries a cut"] for row in rows] == [40, 20, 8, 2]
    assert [row["cuts"] for row in rows] == [10, 20, 50, 200]
    for row in rows:
        assert 0.0 <= row["least"] <= row["above the optimum, %, median"] <= row["most"]
    assert claims[0].value == max(row["most"] for row in rows[1:])
