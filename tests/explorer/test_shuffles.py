"""Tests of shuffled evidence: its amounts stay, and everything else mixes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import sparse

from musicsim.explorer.learning.from_answers import Answered
from musicsim.explorer.learning.shuffles import deal_votes, permute_within, swap_groups, trade_entries
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.learning.task import LearningSettings, LearningTask
from musicsim.explorer.snapshot.snapshot import take_snapshot


@given(table=arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, max_side=9)), seed=st.integers(0, 99))
def test_traded_table_keeps_row_and_column_sums(table, seed):
    traded = trade_entries(sparse.csr_array(table.astype(float)), seed).toarray()
    assert set(np.unique(traded)) <= {0.0, 1.0}
    np.testing.assert_array_equal(traded.sum(axis=0), table.sum(axis=0))
    np.testing.assert_array_equal(traded.sum(axis=1), table.sum(axis=1))


def test_all_tables_with_same_sums_are_equally_likely():
    """The permutation matrices of three rows: brute force has six of them."""
    table = sparse.csr_array(np.eye(3))
    rng = np.random.default_rng(0)
    found = [tuple(trade_entries(table, rng).toarray().argmax(axis=1).tolist()) for _ in range(1_200)]
    counts = np.array([found.count(order) for order in set(found)])
    assert len(counts) == 6
    # 200 each; the standard deviation is 13
    assert np.abs(counts - 200).max() < 65


def test_two_tastes_mix():
    """Before, no listener of the first half shares an artist with one of the second half."""
    table = np.kron(np.eye(2), np.ones((40, 20))) * (np.random.default_rng(0).random((80, 40)) < 0.5)
    traded = trade_entries(sparse.csr_array(table), 1).toarray()
    own = traded[:40, :20].sum() / traded[:40].sum()
    # of about 400 entries, half are in each block; the standard deviation is .025
    assert own == pytest.approx(table[:, :20].sum() / table.sum(), abs=0.1)


@given(groups=st.lists(st.sampled_from("abcdefghijklmnopqrst"), min_size=1, max_size=60), seed=st.integers(0, 99))
def test_swapped_groups_are_a_permutation(groups, seed):
    assert sorted(swap_groups(groups, seed)) == list(range(len(groups)))


def test_groups_of_one_size_trade_as_a_whole():
    groups = np.repeat([f"artist {i}" for i in range(50)], 3)
    source = swap_groups(groups, 0)
    new = groups[source].reshape(50, 3)
    assert (new == new[:, :1]).all()
    assert sorted(new[:, 0]) == sorted(set(groups))
    assert np.mean(new[:, 0] == groups[::3]) < 0.2  # about one of 50 stays by chance


def test_groups_trade_with_groups_of_about_their_size():
    sizes = np.random.default_rng(0).integers(1, 30, 80)
    groups = np.repeat([f"artist {i:02}" for i in range(80)], sizes)
    moved = groups[swap_groups(groups, 1)]
    size_of = dict(zip(sorted(set(groups)), sizes.tolist(), strict=True))
    apart = [abs(size_of[old] - size_of[new]) for old, new in zip(groups, moved, strict=True)]
    assert np.mean(apart) < 5  # of 30; bins have about eight groups
    assert np.mean(groups == moved) < 0.35


def test_rows_stay_in_their_part():
    parts = [np.array([0, 3, 5]), np.array([1, 2])]
    moved = [permute_within(parts, 8, seed) for seed in range(30)]
    for source in moved:
        assert [set(source[part]) for part in parts] == [set(part) for part in parts]
        assert source[[4, 6, 7]].tolist() == [4, 6, 7]
    assert len({tuple(source) for source in moved}) > 8  # of 12


def test_votes_stay_with_their_query():
    votes = {(q, r): 1 if r < 3 + q else -1 for q in range(4) for r in range(10, 0, -1)}
    dealt = deal_votes(votes, 0)
    assert dealt.keys() == votes.keys()
    assert dealt != votes
    for q in range(4):
        assert sorted(dealt[q, r] for r in range(1, 11)) == sorted(votes[q, r] for r in range(1, 11))


def test_half_of_questions_are_flipped_as_a_whole():
    answered = Answered(
        [np.array([(i, 1, i, 2), (i, 1, i, 3)]) for i in range(200)], [("q", i // 2) for i in range(200)]
    )
    flipped = answered.flip(0)
    is_flipped = [not np.array_equal(a, b) for a, b in zip(answered.comparisons, flipped.comparisons, strict=True)]
    assert is_flipped[::2] == is_flipped[1::2]
    assert 0.3 < np.mean(is_flipped) < 0.7  # 100 questions: the standard deviation is .05
    first = is_flipped.index(True)
    assert flipped.comparisons[first].tolist() == [[first, 2, first, 1], [first, 3, first, 1]]
    assert answered.flip(0).comparisons[first].tolist() == flipped.comparisons[first].tolist()


@pytest.mark.parametrize("kind", ["plays", "genre", "artist", "folder"])
def test_shuffled_supervision_keeps_split(taught, kind):
    """No label is on both sides of the split, and held-out songs are as often relevant as before."""
    task = LearningTask.from_settings(take_snapshot(taught), LearningSettings(kind), [])
    parts = (task.split.train, task.split.validation, task.split.test)
    shuffled = task.supervision.shuffle(parts, 0)
    groups = np.asarray(shuffled.groups)
    named = [set(groups[part].tolist()) for part in parts]
    assert not named[0] & named[2]
    assert not named[0] & named[1]
    assert sorted(groups) == sorted(task.supervision.groups)
    before, after = (s.relevance_among(task.split.train).n_relevant() for s in (task.supervision, shuffled))
    if kind != "plays":  # with plays, only the ten best artists are relevant
        assert sorted(before) == pytest.approx(sorted(after), abs=8)
    assert any(
        set(task.supervision.relevance_among(task.split.train).relevant(i))
        != set(shuffled.relevance_among(task.split.train).relevant(i))
        for i in range(len(before))
    )


def test_shuffling_leaves_original_supervision_alone(taught):
    snapshot = take_snapshot(taught)
    supervision, same = Supervision(snapshot, "artist"), Supervision(snapshot, "artist")
    supervision.shuffle([np.arange(200)], 0)
    assert supervision.groups == same.groups
    assert supervision.labels == same.labels
    assert [supervision.relevance().relevant(i).tolist() for i in range(200)] == [
        same.relevance().relevant(i).tolist() for i in range(200)
    ]


def test_popularity_counts_listeners_and_lists(taught):
    songs = taught.songs()
    taught.add_playlists([("a", None, [songs[0].id, songs[1].id]), ("b", None, [songs[1].id])], source="test")
    snapshot = take_snapshot(taught)
    assert Supervision(snapshot, "playlists").popularity[:3].tolist() == [1.0, 2.0, 0.0]
    plays = taught.plays()
    supervision = Supervision(snapshot, "plays", threshold=20)
    rows = snapshot.rows_of(plays.song_id)
    counts = {}
    for who, row, n in zip(plays.listener.tolist(), rows.tolist(), plays.count.tolist(), strict=True):
        key = who, supervision.groups[row]
        counts[key] = counts.get(key, 0) + n
    for row in (0, 60, 199):
        own = sum(n >= 20 for (_, artist), n in counts.items() if artist == supervision.groups[row])
        assert supervision.popularity[row] == own
