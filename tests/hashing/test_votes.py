"""Tests of votes and means of the nearest bins, against the definition."""

import numpy as np
import pytest

from musicsim.hashing import bin_mean, bin_vote, hamming_distances, pack_bits
from musicsim.hashing.votes import bin_edges


def neighbors(codes, query, n_bins):
    """Return the rows of the n_bins nearest nonempty bins, and their distances."""
    distances = hamming_distances(query[None], codes)[0]
    bins = sorted(set(distances.tolist()))[:n_bins]
    rows = np.flatnonzero(np.isin(distances, bins))
    return rows, distances[rows]


def majority(labels, distances):
    """Return the class with most votes. Ties go to the most votes in the nearest bin, then to the lowest class."""
    nearest = labels[distances == distances.min()]
    return max(sorted(set(labels.tolist())), key=lambda c: ((labels == c).sum(), (nearest == c).sum()))


@pytest.fixture(params=[5, 70])
def codes(request, rng):
    return pack_bits(rng.random((60, request.param)) < 0.4), pack_bits(rng.random((25, request.param)) < 0.4)


@pytest.mark.parametrize("n_bins", [1, 3, 100])
def test_votes_match_definition(codes, rng, n_bins):
    known, queries = codes
    labels = rng.integers(4, size=len(known))
    truth = []
    for query in queries:
        rows, distances = neighbors(known, query, n_bins)
        truth.append(majority(labels[rows], distances))
    assert bin_vote(known, labels, queries, n_bins=n_bins).tolist() == truth


def test_levels_are_voted_top_down(codes, rng):
    known, queries = codes
    wide = rng.integers(2, size=len(known))
    table = np.stack([wide, 10 * wide + rng.integers(3, size=len(known))], axis=1)
    truth = []
    for query in queries:
        rows, distances = neighbors(known, query, 3)
        top = majority(table[rows, 0], distances)
        agree = table[rows, 0] == top
        narrow = table[rows[agree], 1]
        # the nearest bin of all neighbors, which may not contain any of those that agree
        votes = {
            c: ((narrow == c).sum(), (narrow[distances[agree] == distances.min()] == c).sum())
            for c in sorted(set(narrow.tolist()))
        }
        truth.append([top, max(votes, key=lambda c: votes[c])])
    assert bin_vote(known, table, queries).tolist() == truth


def test_means_match_definition(codes, rng):
    known, queries = codes
    targets = rng.normal(size=len(known))
    truth = [targets[neighbors(known, query, 3)[0]].mean() for query in queries]
    np.testing.assert_allclose(bin_mean(known, targets, queries), truth, rtol=1e-12)


def test_block_size_does_not_change_votes(codes, rng, monkeypatch):
    known, queries = codes
    labels = rng.integers(3, size=len(known))
    whole = bin_vote(known, labels, queries)
    monkeypatch.setattr("musicsim.hashing.votes.BLOCK_ENTRIES", 4 * len(known))
    assert np.array_equal(bin_vote(known, labels, queries), whole)


def test_accepts_text_labels():
    known = pack_bits([[0, 0, 0, 0], [0, 0, 0, 1], [1, 1, 1, 1]])
    assert bin_vote(known, ["rock", "rock", "folk"], pack_bits([[0, 0, 1, 0]]), n_bins=2).tolist() == ["rock"]
    assert bin_vote(known, ["rock", "rock", "folk"], known[:0]).tolist() == []


@pytest.mark.parametrize("unknown", [None, float("nan"), "", " "])
def test_unknown_labels_do_not_vote(unknown):
    known = pack_bits([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [1, 1, 1, 1]])
    labels = [unknown, unknown, "rock", "folk"]
    assert bin_vote(known, labels, known[:1], n_bins=2).tolist() == ["rock"]
    # unlabeled songs do not fill a bin either
    assert bin_vote(known, labels, known[:1], n_bins=1).tolist() == ["rock"]
    with pytest.raises(ValueError, match="all labels are unknown"):
        bin_vote(known, [unknown] * 4, known)


@pytest.mark.parametrize(("dtype", "unknown"), [(np.int64, -1), (np.float64, np.nan), (np.float32, -1)])
def test_unknown_numbers_do_not_vote(codes, rng, dtype, unknown):
    known, queries = codes
    labels = rng.integers(4, size=len(known)).astype(dtype)
    missing = rng.random(len(known)) < 0.4
    labels[missing] = unknown
    found = bin_vote(known, labels, queries)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, bin_vote(known[~missing], labels[~missing], queries))


def test_level_unknown_to_all_voters_stays_unknown():
    known = pack_bits([[0, 0, 0, 0], [0, 0, 0, 1], [1, 1, 1, 1], [1, 1, 1, 0]])
    table = np.array([["A", None, "x"], ["A", None, "y"], ["B", "b", "z"], [None, "b", "z"]], object)
    assert bin_vote(known, table, known[[0, 2]], n_bins=2).tolist() == [["A", None, None], ["B", "b", "z"]]
    assert bin_vote(known, table, known[3:], n_bins=1).tolist() == [["B", "b", "z"]]


def test_rejects_unorderable_labels():
    known = pack_bits([[0], [1]])
    with pytest.raises(ValueError, match="cannot be sorted"):
        bin_vote(known, np.array(["rock", 1], object), known)


def test_excluded_documents_fill_no_bin():
    distances = np.array([[0, 3, 5, 9], [-1, 3, 5, 9], [-1, -1, -1, 7]])
    assert bin_edges(distances, 2, 10).tolist() == [3, 5, 7]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [0, 1]}, r"labels has shape \(2,\); it must be \(60,\)"),
        ({"n_bins": 0}, "n_bins=0 should be an integer"),
        ({"queries": np.zeros((3, 7), np.uint64)}, "the widths must be equal"),
        ({"codes": np.zeros((60, 1))}, "codes must be uint64, .* not float64"),
    ],
)
def test_rejects_bad_arguments(codes, change, message):
    given = {"codes": codes[0], "labels": np.zeros(60), "queries": codes[1], **change}
    with pytest.raises(ValueError, match=message):
        bin_vote(**given)


def test_means_require_one_target_per_code(codes):
    with pytest.raises(ValueError, match=r"targets has shape \(1,\)"):
        bin_mean(codes[0], [1.0], codes[1])
