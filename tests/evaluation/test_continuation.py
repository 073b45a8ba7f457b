"""Tests of measures of continued lists, on lists with scores computed by hand."""

import numpy as np
import pytest

from musicsim.evaluation import continuation_scores


def test_scores_match_hand_computed_example():
    found = continuation_scores([[7, 1, 8, 2, 9]], [{1, 2, 3}], ks=(1, 2, 10))
    ideal = 1 + 1 / np.log2(3) + 1 / np.log2(4)
    assert found["ndcg"][0] == pytest.approx((1 / np.log2(3) + 1 / np.log2(5)) / ideal)
    assert found["r_precision"][0] == pytest.approx(1 / 3)
    assert found["clicks"][0] == 0
    assert [found[f"hit@{k}"][0] for k in (1, 2, 10)] == [0, 1, 1]


def test_scores_match_definitions():
    rng = np.random.default_rng(0)
    songs = [rng.permutation(700)[:500].tolist() for _ in range(40)]
    wanted = [set(rng.permutation(700)[: rng.integers(1, 30)].tolist()) for _ in range(40)]
    found = continuation_scores(songs, wanted, ks=(10,))
    for at, (given, taken) in enumerate(zip(songs, wanted, strict=True)):
        ranks = [rank for rank, song in enumerate(given, start=1) if song in taken]
        ideal = sum(1 / np.log2(rank + 1) for rank in range(1, len(taken) + 1))
        assert found["r_precision"][at] == len(taken & set(given[: len(taken)])) / len(taken)
        assert found["ndcg"][at] == pytest.approx(sum(1 / np.log2(rank + 1) for rank in ranks) / ideal)
        assert found["clicks"][at] == ((min(ranks) - 1) // 10 if ranks else 51)
        assert found["hit@10"][at] == bool(taken & set(given[:10]))


@pytest.mark.parametrize(("first_hit", "clicks"), [(0, 0), (9, 0), (10, 1), (499, 49), (500, 51), (None, 51)])
def test_clicks_count_pages_of_ten_songs(first_hit, clicks):
    songs = np.arange(1, 600)
    wanted = 0 if first_hit is None else songs[first_hit]
    assert continuation_scores([songs], [[wanted]])["clicks"][0] == clicks


def test_perfect_and_empty_recommendations():
    found = continuation_scores([[3, 1, 2, 8], []], [[1, 2, 3], [1]], ks=(3,))
    assert {name: values.tolist() for name, values in found.items()} == {
        "r_precision": [1, 0], "ndcg": [1, 0], "clicks": [0, 51], "hit@3": [1, 0],
    }  # fmt: skip


def test_rejects_bad_input():
    for recommended, held_out, ks, words in (
        ([[1]], [], (1,), "one per playlist"),
        ([[1]], [[]], (1,), "has no songs"),
        ([[1, 1]], [[1]], (1,), "twice"),
        ([[1]], [[1]], (0,), "ks"),
    ):
        with pytest.raises(ValueError, match=words):
            continuation_scores(recommended, held_out, ks)
