"""Searches among vectors: data, recall by definition, the time at a recall, and vectors on the disk."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from benchmarks import search, ten_million
from benchmarks.large_library import drawn_vectors
from benchmarks.search import Case, Contender, claims, depth_for, geometric, leads, n_lists, recall, time_at
from benchmarks.support.search_data import hard, hold_out, separated
from benchmarks.ten_million import VECTOR_DIMENSIONS, write

# --- search ----------------------------------------------------------------------------------------------


DRAWS = [hard, separated]


# --- data -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", DRAWS)
def test_same_seed_gives_same_vectors(draw):
    first, again, other = draw(500, 20, seed=3), draw(500, 20, seed=3), draw(500, 20, seed=4)
    for one, two, different in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(one, two)
        assert not np.any(one == different)


@pytest.mark.parametrize("draw", DRAWS)
def test_queries_differ_from_rows(draw):
    X, Q = draw(2_000, 50)
    assert (X.shape, Q.shape) == ((2_000, 100), (50, 100))
    assert X.dtype == Q.dtype == np.float32
    assert np.isfinite(X).all()
    assert cdist(Q, X).min() > 0.5


def test_blocks_are_distinct():
    X, _ = hard(70_000, 0)  # more than a block of 65,536
    assert len(np.unique(X[:, 0])) > 69_000  # float32: some values of one column coincide


def test_hard_vectors_have_20_dimensions_and_noise():
    X, _ = hard(20_000, 0)
    spectrum = np.linalg.eigvalsh(np.cov(X, rowvar=False))
    # the 80 least eigenvalues are the noise's variance 0.01; at 200 rows a dimension they spread by some 15 %
    np.testing.assert_allclose(spectrum[:80], 0.01, rtol=0.2)
    assert spectrum[80] > 20 * 0.01


def test_separated_clusters_contain_their_neighbors():
    X, _ = separated(2_000, 0, n_clusters=20, seed=1)
    # typically sqrt(2 * 100) = 14.1 within a cluster, sqrt(2 * 100 * (1 + 1.35 ** 2)) = 23.8 between two
    near = cdist(X, X[:200]) < 18.5
    assert near.sum(axis=0).mean() == pytest.approx(2_000 / 20, rel=0.2)
    # a ball's greatest eigenvalue, estimated from 100 songs in 100 dimensions, is near (1 + 1) ** 2 = 4
    spectrum = np.linalg.eigvalsh(np.cov(X[near[:, 0]], rowvar=False))
    assert spectrum.max() > 5.0


def test_held_out_rows_are_disjoint():
    X = np.arange(300, dtype=np.float32).reshape(100, 3)
    rest, queries = hold_out(X, 10, seed=0)
    assert (len(rest), len(queries)) == (90, 10)
    np.testing.assert_array_equal(np.sort(np.concatenate([rest, queries])[:, 0]), X[:, 0])


# --- recall -----------------------------------------------------------------------------------------


LINE = np.arange(6, dtype=np.float32)[:, None]
ASKED = np.array([[0.1], [2.0]], dtype=np.float32)
TRUE = np.array([[0, 1], [2, 1]])


@pytest.mark.parametrize(
    ("found", "share"),
    [
        ([[0, 1], [2, 1]], 1.0),
        ([[1, 0], [1, 2]], 1.0),  # in any order
        ([[0, 1], [2, 3]], 1.0),  # 1 and 3 are as far from 2
        ([[0, 2], [2, 5]], 0.5),
        ([[0, 0], [2, 2]], 0.5),  # the same row twice counts once
        ([[0, -1], [-1, -1]], 0.25),  # nothing found
    ],
)
def test_recall_matches_definition(found, share):
    assert recall(LINE, ASKED, np.array(found), TRUE) == share


# --- time at a recall ---------------------------------------------------------------------------------


_LOG_LINEAR = [0.5, 0.7, 0.8, 0.95]


@pytest.mark.parametrize(
    ("level", "recalls", "ms", "expected"),
    [
        *(
            pytest.param(level, _LOG_LINEAR, [math.exp(3 * r - 1) for r in _LOG_LINEAR], math.exp(3 * level - 1))
            for level in (0.6, 0.75, 0.9, 0.949)
        ),
        pytest.param(0.8, [0.5, 0.8, 0.9], [1.0, 2.0, 5.0], 2.0, id="measured"),
        pytest.param(0.95, [0.5, 0.9], [1.0, 2.0], None, id="beyond the last setting"),
        pytest.param(0.95, [], [], None, id="no setting"),
        pytest.param(0.9, [0.97, 0.99], [1.0, 2.0], 1.0, id="below the first setting"),
        pytest.param(0.9, [0.8, 0.92, 0.89, 0.95], [1.0, 2.0, 3.0, 4.0], 2 ** (0.1 / 0.12), id="recall drops"),
        pytest.param(0.9, [0.8, 0.9, 0.99], [1.0, 5.0, 3.0], 3.0, id="a later setting is faster"),
        pytest.param(0.5, [0.8, 0.9], [2.0, 1.0], 1.0, id="the last setting is fastest"),
    ],
)
def test_time_at_a_recall_is_log_linear_between_settings(level, recalls, ms, expected):
    assert time_at(level, recalls, ms) == (expected if expected is None else pytest.approx(expected))


def test_settings_are_half_an_octave_apart():
    values = geometric(10, 640)
    assert values[0] == 10
    assert values[-1] == 640
    ratios = np.divide(values[1:], values[:-1])
    assert np.all((ratios > 1.3) & (ratios < 1.5))
    assert geometric(1, 8) == (1, 2, 3, 4, 6, 8)  # rounded, none twice


@pytest.mark.parametrize("spill", [0.0, 0.05, 0.1])
@pytest.mark.parametrize("leaf_size", [100, 1000])
def test_depth_gives_approximate_leaf_size(spill, leaf_size):
    left = 200_000 * (0.5 + spill) ** depth_for(leaf_size, 200_000, spill)
    assert abs(math.log(left / leaf_size)) <= -0.5 * math.log(0.5 + spill) + 1e-9  # half a split off at most


def test_ivf_list_counts():
    assert [n_lists(n) for n in (10_000, 200_000, 1_000_000)] == [256, 1024, 2048]


# --- a whole case -----------------------------------------------------------------------------------


class Prefix:
    """An index that looks at the first `value` rows only, so that its recall is known by counting."""

    def __init__(self, X):
        self.X = X

    def ask(self, Q, value):
        distances = np.linalg.norm(self.X[None, : value or None] - Q[:, None], axis=2)
        return np.argsort(distances, axis=1)[:, :10]

    @staticmethod
    def n_bytes():
        return 2_000_000


def test_case_gives_one_row_per_index():
    X, Q = separated(400, 40, n_clusters=4)
    swept = Contender("prefix", "", Prefix, (200, 300, 400, 4_000))
    whole = Contender("whole", "no knob", Prefix, n_queries=5)
    absent = Contender("absent", "", Prefix, rival="no-such-distribution")
    rows = search.measure(Case("tiny", "separated", X, Q, [swept, absent, whole]), lambda line: None)
    assert [row["index"] for row in rows] == ["prefix", "whole"]
    first, second = rows
    assert first["ms_90"] is not None  # all 400 rows find everything
    assert first["ms"] is None
    assert second["recall"] == 1.0
    assert second["ms_90"] is None
    assert {row["mb"] for row in rows} == {2.0}
    assert {row["rows"] for row in rows} == {400}


def _row(index, build_s, ms_90, ms_95, ms_98):
    return {"index": index, "build_s": build_s, "ms_90": ms_90, "ms_95": ms_95, "ms_98": ms_98}


def test_claims_use_goals_and_fastest_annoy():
    rows = [
        _row("musicsim SpillForest", 2.0, 0.1, 0.2, 0.4),
        _row("annoy", 5.0, 0.4, 0.5, None),
        _row("annoy", 9.0, 0.3, 0.6, 0.6),
        _row("voyager", 28.0, 0.1, 0.1, 0.1),
    ]
    on_hard = {claim.claim: claim for claim in claims("hard", "hard", rows)}
    assert [claim.goal for claim in on_hard.values()] == [15.0, 2.0, 2.0, 2.0, 0.3]
    assert [claim.value for claim in on_hard.values()] == pytest.approx([14.0, 3.0, 2.5, 1.5, 0.2])
    assert [claim.holds for claim in on_hard.values()] == [False, True, True, False, True]
    on_other = claims("separated", "separated", rows)
    assert [claim.goal for claim in on_other] == [15.0, 1.0, 1.0, 1.0]


def test_leads_compare_with_best_rival():
    rows = [
        _row("musicsim SpillForest", 2.0, 0.2, 0.4, 0.4) | {"mb": 50.0},
        _row("musicsim PartitionIndex", 0.5, 0.1, 0.2, None) | {"mb": 11.0},
        _row("musicsim ExactIndex", 0.0, None, None, None) | {"mb": 0.0},
        _row("faiss IVF", 3.0, 0.05, 0.3, 0.5) | {"mb": 10.0},
        _row("voyager", 6.0, 0.1, 0.4, 0.4) | {"mb": 30.0},
        _row("faiss HNSW", 4.0, 0.1, 0.5, 0.6) | {"mb": 30.0},
    ]
    made = leads("hard", rows)
    assert [claim.value for claim in made] == pytest.approx([0.5, 1.5, 1.0, 8.0, 1.1])
    assert [claim.holds for claim in made] == [False, True, True, False, True]
    without_graphs = leads("hard", rows[:4])
    assert [claim.value for claim in without_graphs] == pytest.approx([0.5, 1.5, 1.25])
    assert [claim.value for claim in leads("hard", rows[:2])] == [None, None, None]


def test_claims_without_measurement_fail():
    rows = [_row("musicsim SpillForest", 2.0, 0.1, 0.2, None)]
    made = claims("hard", "hard", rows)
    assert [claim.holds for claim in made] == [False, False, False, False, True]
    assert [claim.value for claim in made] == [None, None, None, None, 0.2]


# --- ten million -----------------------------------------------------------------------------------------


def test_files_contain_drawn_rows_and_queries(tmp_path):
    songs = write(tmp_path, 2_500, seed=3)
    drawn = np.concatenate(list(drawn_vectors(2_500 + 1_000 + 200, VECTOR_DIMENSIONS, 3)))
    np.testing.assert_array_equal(songs.rows(3_500), drawn[:3_500])
    np.testing.assert_array_equal(songs.queries(), drawn[3_500:])
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1.0, rtol=1e-5)


def test_measurement_reaches_recall(tmp_path):
    pytest.importorskip("psutil")
    rows = {row["what"]: row for row in ten_million.measure(tmp_path, 4_000, 0, print, rivals=())}
    for level in (0.95, 0.99):
        assert rows[f"query at recall {level:.2f}"]["recall"] >= level
    for what in ("of 10.0% of the songs", "hubs reduced", "open with 1,000 more"):
        assert rows[what]["recall"] > 0.9
    assert all(row["mb"] > 0 for row in rows.values())
