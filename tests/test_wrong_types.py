"""Tests that arrays in place of musicsim's own types, and other wrong types, give a message."""

import numpy as np
import pytest
from scipy import sparse

from musicsim import evaluation, gaussians, kernels, metric, mixtures, relevance, search

ROWS = np.random.default_rng(0).normal(size=(8, 3))
SPARSE = sparse.csr_array(np.eye(4))
NO_LABELS = "y is None; pass one label per"
CASES = {
    "distances": (lambda: evaluation.distance_scores(ROWS, np.arange(8)), "relevance is a ndarray; pass Relevance"),
    "continuation": (lambda: evaluation.continuation_scores([1, 2], [[1], [2]]), "must contain a list of songs"),
    "grades": (lambda: evaluation.score_groups(ROWS[:, 0], list("abcdefgh"), [8]), "could not convert"),
    "listening": (lambda: evaluation.scores_by_query(ROWS, [0, 1], ROWS), "pass one int in query per pair"),
    "hubness": (lambda: evaluation.hubness(ROWS), "neighbors has type float64"),
    "labels": (lambda: evaluation.share_of_same([[1], [0]], ["a"]), "there are 1 labels"),
    "embedding": (lambda: gaussians.fit_embedding(ROWS), r"songs\[0\] is a ndarray; pass SongGaussians"),
    "frames": (lambda: gaussians.fit_parts(ROWS[0]), "frames has shape"),
    "covariance": (lambda: gaussians.pool_covariance(ROWS[0], [0, 1, 2]), "vectors has shape"),
    "mixture kernel": (lambda: kernels.gmm_kernel(ROWS), "a set of songs is a ndarray; pass SongMixtures"),
    "tags": (lambda: kernels.human_tag_vectors([1, 2], ["a"]), "pass a list of tags for each song"),
    "vocabulary": (lambda: kernels.human_tag_vectors([["a"]], ROWS), "vocabulary must contain the tags"),
    "histograms": (lambda: kernels.chi2_rbf_kernel(SPARSE), "A is sparse"),
    "kernels": (lambda: metric.MultipleKernelMLR().fit(SPARSE, range(4)), "kernels is sparse"),
    "metric": (lambda: metric.MLR().fit(ROWS, None), NO_LABELS),
    "documents": (lambda: metric.LGMML().fit(ROWS, None), NO_LABELS),
    "within": (lambda: metric.compute_within_covariance(ROWS[0], [0, 0, 1]), "X has shape"),
    "entropy": (lambda: mixtures.cross_entropy(ROWS, ROWS), "mixtures is a ndarray; pass SongMixtures"),
    "divergence": (lambda: mixtures.kl_divergences(ROWS, ROWS), "queries is a ndarray; pass SongMixtures"),
    "codes": (lambda: relevance.label_codes(None), "labels is None; pass one label per song"),
    "calibration": (lambda: search.calibrate(ROWS, ROWS), "index is a ndarray; pass ProbedIndex"),
    "pairs": (lambda: search.group_pairs([[0, 1]], 2), "n="),
    "rows": (lambda: search.SpillTree().fit(SPARSE), "X is sparse"),
}


@pytest.mark.parametrize("name", CASES)
def test_wrong_types_give_a_message(name):
    act, message = CASES[name]
    with pytest.raises((TypeError, ValueError), match=message):
        act()


def test_measures_of_neighbors_accept_lists_and_any_labels():
    neighbors = [[1, 2], [0, 2], [0, -1]]
    assert evaluation.k_occurrence(neighbors).tolist() == [2, 1, 2]
    mean, shares = evaluation.share_of_same(neighbors, ["a", "a", None])
    assert (mean, shares[:2].tolist()) == (0.5, [0.5, 0.5])
