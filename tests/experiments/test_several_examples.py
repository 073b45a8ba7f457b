"""The formulas of several examples: what is measured is what a search does, and judged by its definition."""

import numpy as np
import pytest

from experiments.several_examples import CHOSEN_LIKE, CHOSEN_UNLIKE, LIKE, UNLIKE, Case, Space, evaluate
from musicsim.explorer.search.query import Examples, find_similar

NONE = np.empty(0, np.int64)


@pytest.mark.parametrize(
    ("like", "unlike", "score"), [([0, 5, 9], [], LIKE[CHOSEN_LIKE]), ([0, 5], [9], UNLIKE[CHOSEN_UNLIKE])]
)
def test_chosen_formula_matches_search_order(snapshot, like, unlike, score):
    space = Space(snapshot.X.astype(np.float64))
    nobody = np.zeros(len(space.X), dtype=bool)
    scores = score(space, Case("", np.array(like), np.array(unlike, dtype=np.int64), nobody, nobody))
    order = [row for row in np.argsort(scores, kind="stable").tolist() if row not in {*like, *unlike}]
    ids = snapshot.row_ids
    query = Examples(tuple(ids[like].tolist()), tuple(ids[unlike].tolist()))
    hits = find_similar(snapshot, query, 12, max_per_artist=None, hub_reduction=True)
    assert [hit.song.id for hit in hits] == ids[order].tolist()


def test_results_are_scored_by_ranks_of_relevant_songs():
    space = Space(np.array([[0.0], [1.0], [2.0], [3.0], [9.0]]))
    right, unwanted = np.array([0, 1, 0, 1, 0], bool), np.array([0, 0, 1, 0, 0], bool)
    precision, share = evaluate(space, Case("", np.array([0]), NONE, right, unwanted), lambda s, c: s.D[0])
    assert precision == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert share == pytest.approx(1 / 4)
