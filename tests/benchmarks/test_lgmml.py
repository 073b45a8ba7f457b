"""The benchmark of geometric mean metrics: its naive rival is right, its growth is of what it says, and a small run."""

import numpy as np
import pytest

from benchmarks import lgmml
from benchmarks.support.ranking_tasks import nearly_separable
from benchmarks.support.report import Settings
from musicsim.metric import geometric_mean


def test_naive_mean_matches_geometric_mean(rng):
    A, B = (F @ F.T + np.eye(5) for F in rng.standard_normal((2, 5, 5)))
    np.testing.assert_allclose(lgmml.naive_mean(A, B), geometric_mean(A, B), rtol=1e-8, atol=1e-10)


def test_documents_have_graded_labels_and_full_queries():
    X, y, group = lgmml.documents(400, 3, 0)
    assert X.shape == (400, 3)
    assert set(y) == {0, 1, 2}
    assert group.sum() == 400


def test_growth_row_times_each_stage():
    row = lgmml.growth_row(400, 3, 4, 0)
    assert (row["n"], row["d"], row["m"]) == (400, 3, 4)
    # a stage may take less than the clock can tell
    assert all(row[name] >= -1e-3 for name in ("metric_s", "table_s", "epoch_s"))
    assert row["fit_s"] >= row["epoch_s"]


class Crashing:
    """metric-learn whose process ends in a fit."""

    version = "0.7"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def fit(self, learner, X, y, **_):
        raise RuntimeError("metric-learn's process ended")


def absent():
    raise FileNotFoundError("make rivals")


@pytest.mark.parametrize(
    ("rival", "said", "failed"),
    [(absent, "not installed: make rivals", None), (Crashing, "0.7", "metric-learn's process ended")],
)
def test_claims_are_open_without_rivals(monkeypatch, rival, said, failed):
    monkeypatch.setattr(lgmml, "MetricLearn", rival)
    monkeypatch.setattr(
        lgmml, "nearly_separable", lambda seed: nearly_separable(seed, 120, 8, n_relevant=9, n_hidden=3, n_held_out=40)
    )
    settings = Settings()
    rows, claims = lgmml.rival_rows(settings, lambda line: None)
    by_method = {row["method"]: row for row in rows}
    assert by_method["GMML"]["AUC"] > by_method["no metric"]["AUC"]
    assert settings.facts["metric-learn"] == said
    assert [by_method[name].get("failed") for name in ("ITML", "LMNN")] == [failed, failed]
    assert [claim.value for claim in claims if "ITML" in claim.claim] == [None, None]
