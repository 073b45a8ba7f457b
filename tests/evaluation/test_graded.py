"""Tests of NDCG and average precision against loops, and against scikit-learn if the definitions agree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from musicsim.evaluation.graded import score_groups

queries = st.lists(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3)), min_size=1, max_size=8), min_size=1, max_size=5
)


def looped(labels, scores, k):
    """Compute the measure from the definition, with the less relevant of equal scores first."""
    order = sorted(range(len(labels)), key=lambda i: (-scores[i], labels[i]))
    gain = [(2 ** labels[i] - 1) / np.log2(place + 2) for place, i in enumerate(order)]
    best = [(2**label - 1) / np.log2(place + 2) for place, label in enumerate(sorted(labels, reverse=True))]
    precisions, found = [], 0
    for place, i in enumerate(order, 1):
        if labels[i] > 0:
            found += 1
            precisions.append(found / place)
    return (sum(gain[:k]) / sum(best[:k]), np.mean(precisions)) if found else (0.0, 0.0)


@given(queries, st.integers(1, 10))
def test_scores_match_loop(asked, k):
    y = [label for query in asked for label, _ in query]
    f = [score for query in asked for _, score in query]
    found = score_groups(f, y, [len(query) for query in asked], (k,))
    expected = [looped(*zip(*query, strict=True), k) for query in asked]
    np.testing.assert_allclose(found[f"ndcg@{k}"], [e[0] for e in expected], atol=1e-12)
    np.testing.assert_allclose(found["map"], [e[1] for e in expected], atol=1e-12)


def test_scores_match_scikit_learn_without_ties(rng):
    y, f = rng.integers(0, 5, 40), rng.normal(size=40)
    found = score_groups(f, y, [40], (5, 40))
    assert found["ndcg@5"][0] == pytest.approx(ndcg_score([2.0**y - 1], [f], k=5))
    assert found["ndcg@40"][0] == pytest.approx(ndcg_score([2.0**y - 1], [f]))
    assert found["map"][0] == pytest.approx(average_precision_score(y > 0, f))


def test_query_without_relevant_documents_is_zero():
    scores = score_groups([1.0, 2.0], [0, 0], [2])
    assert scores["ndcg@1"].tolist() == scores["map"].tolist() == [0.0]


def test_accepts_large_labels_and_array_of_ks():
    found = score_groups([1.0, 2.0, 0.0], [1000, 999, 0], [3], np.array([1, 3]))
    assert found["ndcg@1"][0] == pytest.approx(0.5)
    assert found["ndcg@3"][0] == pytest.approx((1 / 2 + 1 / np.log2(3)) / (1 + 0.5 / np.log2(3)))


def test_constant_ranker_gets_worst_score():
    found = score_groups(np.zeros(4), [2, 0, 1, 0], [4], (1, 2, 4))
    assert found["ndcg@2"][0] == 0.0
    assert found["map"][0] == pytest.approx((1 / 3 + 2 / 4) / 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1, 2], [1]), "scores has shape"),
        ((1.0, 1, [1]), r"scores has shape \(\)"),
        (([np.nan, 1.0], [1, 2], [2]), "scores: row 0 is not finite"),
        (([1.0, 1.0], [1, -2], [2]), "the label of row 1"),
        (([1.0, 1.0], [1, 2], [3]), "group sums to 3, but there are 2 rows"),
        (([1.0, 1.0], [1, 2], [2, 0]), "integers of at least 1"),
        (([1.0, 1.0], [1, 1001], [2]), "the label of row 1 is 1001; labels must be from 0 to 1000"),
        (([1.0, 1.0], [np.inf, 1], [2]), "the label of row 0 is inf"),
        (([1.0, 1.0], [1, 2], [2], (0,)), "ks="),
        (([1.0, 1.0], [1, 2], [2], (1.5,)), "ks="),
        (([1.0, 1.0], [1, 2], [2], np.array([0, 1])), "ks="),
        (([1.0, 1.0], [1, 2], [2], ()), "ks="),
    ],
)
def test_rejects_mismatched_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        score_groups(*arguments)
