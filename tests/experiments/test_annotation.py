"""Tags from neighbors: the curve against loops, Gaussians against their definition."""

import numpy as np
import pytest
from scipy import stats

from experiments.annotation import THRESHOLDS, annotation_curve, from_neighbors, gaussian_divergences, similar_by_tags


def test_precision_and_recall_are_means_over_tags():
    rng = np.random.default_rng(0)
    said, truth = rng.integers(11, size=(20, 6)) / 10, (rng.random((20, 6)) < 0.3).astype(float)
    said[:, 0], truth[:, 1] = 0.0, 0.0  # nowhere predicted; nowhere true
    precision, recall = annotation_curve(said, truth)
    for place, threshold in enumerate(THRESHOLDS):
        precisions, recalls = [], []
        for tag in range(6):
            found = {i for i in range(20) if said[i, tag] >= threshold - 1e-9}
            true = set(np.flatnonzero(truth[:, tag]))
            precisions.append(len(found & true) / len(found) if found else len(true) / 20)
            if true:
                recalls.append(len(found & true) / len(true))
        assert precision[place] == pytest.approx(np.mean(precisions))
        assert recall[place] == pytest.approx(np.mean(recalls))


def test_prediction_is_mean_of_neighbor_tags():
    D = np.array([[3.0, 1.0, 2.0]])
    tags = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert from_neighbors(D, tags, 2).tolist() == [[0.5, 1.0]]


def test_gaussian_divergence_matches_mean_log_ratio():
    rng = np.random.default_rng(1)
    songs = [rng.normal(size=(400, 3)) @ rng.normal(size=(3, 3)) + i for i in range(2)]
    D = gaussian_divergences(songs, songs)
    np.testing.assert_allclose(np.diag(D), 0, atol=1e-9)
    p, q = (stats.multivariate_normal(s.mean(axis=0), np.cov(s, rowvar=False) + 1e-3 * np.eye(3)) for s in songs)
    drawn = p.rvs(200_000, random_state=0)
    ratios = p.logpdf(drawn) - q.logpdf(drawn)
    assert D[0, 1] == pytest.approx(ratios.mean(), abs=5 * ratios.std() / np.sqrt(len(ratios)))


def test_songs_with_same_tags_are_similar():
    tags = np.repeat(np.eye(3), 12, axis=0)
    relevance = similar_by_tags(tags)
    assert all(set(relevance.relevant(i) // 12) == {i // 12} for i in range(36))
